"""Each check is red over the input that its description names, and green before: one that cannot fail says nothing.

A workspace is made by the stages, with every check green. Each case makes a copy of it bad in the way that "Fails when"
tells, by a model on loopback or by what may happen to the files of a workspace, and then the check alone is run.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from docs.generate import fails_when
from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.distillation.periods import Period
from memory_pipeline.distillation.stage import DistillationStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.evaluation import judge_invented_times
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Script, openai_server
from memory_pipeline_tests.loaded import defs
from memory_pipeline_tests.observations.test_checks_by_day import OUTPUT, SECRET, run, stored
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    events,
    observation,
    pattern,
    proposal,
    put,
    record_showings,
    say,
    use_encoder,
    workspace,
)

TURNS = (
    "user: Never deploy on a Friday, because nobody is there to watch it.",
    "assistant: The root cause was a stale lock file in /var/run/worker.pid that nobody removed.",
    f"tool: {OUTPUT}",
    "user: From now on we always use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)


@dataclass(frozen=True)
class Bad:
    """A workspace that is about to be made bad."""

    patch: pytest.MonkeyPatch
    folder: Path

    @property
    def settings(self) -> Settings:
        return load_settings()

    @property
    def lake(self) -> Lake:
        return Lake(self.settings.lake_dir)

    @property
    def workspace(self) -> Workspace:
        return Workspace.open(self.settings)

    def change(self, table: str, *columns: pl.Expr, day: date = DAY) -> None:
        """As if somebody had put another file in the table's place: no stage makes it anew."""
        self.replace(table, self.lake.read(table, [day]).with_columns(*columns), day)

    def replace(self, table: str, frame: pl.DataFrame, day: date = DAY) -> None:
        self.lake.replace(table, frame, [day], {day: self.lake.fingerprint(table, day) or ""})

    @contextmanager
    def model(self, name: str, script: Script) -> Iterator[None]:
        """OBSERVER or REFLECTOR is a model that answers so; it stays set."""
        with openai_server(script) as server:
            self.patch.setenv(f"{name}_MODEL", "openai:gpt-5-mini")
            self.patch.setenv(f"{name}_BASE_URL", server.url)
            self.patch.setenv("OPENAI_API_KEY", "sk-test")
            self.patch.setenv("MEMORY_MODEL_RETRIES", "0")
            yield

    def observed(self, script: Script) -> None:
        """By a model, through the stage."""
        with self.model("OBSERVER", script):
            bring_up_to_date(ObservationsStage.from_workspace(self.workspace), self.lake, DAY)

    def observed_extractively(self) -> None:
        bring_up_to_date(ObservationsStage(self.workspace, ExtractiveObserver()), self.lake, DAY)

    def reflected(self) -> None:
        bring_up_to_date(ReflectionsStage.from_workspace(self.workspace), self.lake, DAY)


def facts(*lines: str) -> str:
    return "\n".join(["<observations>", *(f"* {line}" for line in lines), "</observations>"])


def one_message_is_lost(bad: Bad) -> None:
    bad.replace("messages", bad.lake.read("messages", [DAY])[1:])


def a_row_bears_another_time(bad: Bad) -> None:
    bad.change("observations", pl.col("observed_at") + pl.duration(minutes=30))


def messages_have_other_words(bad: Bad) -> None:
    bad.change("messages", pl.col("text").str.slice(3, 20))


def a_pattern_of_other_words(bad: Bad) -> None:
    evidence = [{"message_id": "gone", "start": 0, "end": 9}]
    put(bad.lake, "friction_clusters", pattern(1, "Use uv.", day=DAY, evidence=evidence))


def a_secret_from_before_redaction(bad: Bad) -> None:
    say(bad.lake, "s2", f"user: Never use the key {SECRET} on a Friday.", *TURNS[1:])
    bad.observed_extractively()


def a_time_on_every_line(bad: Bad) -> None:
    said = ("Never deploy on a Friday", "From now on we always use uv instead of pip", "nobody removed the lock file")
    bad.observed(facts(*(f"🟡 rule (03:33) [#{n}] {text}" for n, text in zip((1, 4, 2), said, strict=True))))


def a_model_refuses(bad: Bad) -> None:
    bad.observed("I'm sorry, but I can't help with that.")


def one_line_of_a_long_day(bad: Bad) -> None:
    say(bad.lake, "s2", *TURNS, *TURNS[-8:] * 40)
    bad.observed(facts("🟡 rule [#1] Never on a Friday."))


def names_that_nobody_said(bad: Bad) -> None:
    bad.observed(
        facts("🟡 rule [#1] Never deploy 9.9.9 to /opt/nowhere on a Friday, because nobody is there to watch it.")
    )


def a_listing_is_copied(bad: Bad) -> None:
    bad.observed(facts(f"🟡 progress [#3] {OUTPUT}"))


def all_that_a_model_says_is_high(bad: Bad) -> None:
    rules = (
        "Never push to main without a review.",
        "Always run the tests before you commit.",
        "Never store prices as floats.",
        "From now on we always use pnpm instead of npm for the pages.",
        "We decided to keep Postgres, because SQLite locks under load.",
    )
    for table in ("messages", "windows"):
        bad.replace(table, bad.lake.read(table, [DAY])[:0])
    say(bad.lake, "highs", *(f"user: {rule}" for rule in rules), *TURNS[-4:])
    bad.observed(facts(*(f"🔴 rule [#{number}] {rule}" for number, rule in enumerate(rules, 1))))


def a_passage_is_lost(bad: Bad) -> None:
    """Without the table's row, as of a copy of the tables that is older than the index."""
    rows = bad.lake.read("message_embeddings", [DAY])
    assert rows.height > 1
    bad.replace("message_embeddings", rows[1:])


def the_index_is_gone(bad: Bad) -> None:
    shutil.rmtree(bad.settings.index_dir)


def nothing_can_be_left_out(bad: Bad) -> None:
    words = [f"{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10]}" * 3 for n in range(60)]
    rows = [
        observation(f"Never deploy {word} to the {word[::-1]} service on {word}days.", session="s1") for word in words
    ]
    put(bad.lake, "observations", *rows)
    bad.reflected()


def a_reflector_of_no_use(bad: Bad) -> None:
    with bad.model("REFLECTOR", "There was a lot to read."):
        bad.reflected()


def lines_are_lost(level: int) -> Callable[[Bad], None]:
    def case(bad: Bad) -> None:
        stage = DistillationStage.from_workspace(bad.workspace, level)
        last = Period.containing(DAY, level).last
        bring_up_to_date(stage, bad.lake, last)
        rows = bad.lake.read(stage.table, [last])
        assert rows.height
        bad.replace(stage.table, rows[:0], last)

    return case


def lines_lost_words(level: int) -> Callable[[Bad], None]:
    """As distilling once did: frequent and short words went first."""

    def case(bad: Bad) -> None:
        stage = DistillationStage.from_workspace(bad.workspace, level)
        last = Period.containing(DAY, level).last
        bring_up_to_date(stage, bad.lake, last)
        rows = bad.lake.read(stage.table, [last])
        assert rows.height
        shorter = [row | {"text": " ".join(w for w in row["text"].split() if len(w) > 4)} for row in rows.to_dicts()]
        bad.replace(stage.table, type(rows)(shorter, schema=rows.schema), last)

    return case


def memory_is_gone(bad: Bad) -> None:
    assert events(bad.lake, "promoted").height
    bad.settings.memory_file.unlink()


def nobody_has_time(bad: Bad) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=15)
    for day in bad.lake.days("events"):
        bad.replace("events", bad.lake.read("events", [day]).with_columns(happened_at=long_ago), day)
    put(bad.lake, "proposals", proposal(901, "Never deploy on a Sunday."))
    record_showings(bad.workspace, {f"p-{DAY:%Y%m%d}-901": None}, long_ago, surface="REVIEW.md")


def no_identity_files(bad: Bad) -> None:
    (bad.folder / "empty").mkdir()
    bad.patch.setenv("MEMORY_IDENTITY_DIRECTORY", str(bad.folder / "empty"))


CASES: dict[str, Callable[[Bad], None]] = {
    "windows:every_message_in_one_window": one_message_is_lost,
    "observations:times_are_recorded": a_row_bears_another_time,
    "observations:evidence_is_verbatim": messages_have_other_words,
    "observations:no_secrets": a_secret_from_before_redaction,
    "observations:hallucinated_timestamps": a_time_on_every_line,
    "observations:no_silent_zero": a_model_refuses,
    "observations:compression_ratio": one_line_of_a_long_day,
    "observations:ungrounded_specifics": names_that_nobody_said,
    "observations:regurgitation": a_listing_is_copied,
    "observations:high_is_rare": all_that_a_model_says_is_high,
    "embeddings:index_matches_tables": the_index_is_gone,
    "friction_clusters:evidence_is_stored": a_pattern_of_other_words,
    "summary_embeddings:index_matches_tables": the_index_is_gone,
    "message_embeddings:index_matches_tables": a_passage_is_lost,
    "reflections:compression_ratio": nothing_can_be_left_out,
    "reflections:no_silent_zero": a_reflector_of_no_use,
    "day_distillations:recall_loss": lines_are_lost(1),
    "week_distillations:recall_loss": lines_are_lost(2),
    "month_distillations:recall_loss": lines_are_lost(3),
    "day_distillations:lines_are_whole": lines_lost_words(1),
    "week_distillations:lines_are_whole": lines_lost_words(2),
    "month_distillations:lines_are_whole": lines_lost_words(3),
    "memory_file:one_decision_each": memory_is_gone,
    "memory_file:review_backlog": nobody_has_time,
    "memory_file:identity_files": no_identity_files,
}
LEVELS = {"week_distillations": 2, "month_distillations": 3}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of one day, as a run leaves it, with every proposal approved and every check green."""
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setenv("MEMORY_WORKSPACE", str(folder / "workspace"))
        use_encoder(patch, FakeEncoder("uv", "friday", "lock", dimension=384))
        settings, lake = workspace(folder / "workspace")
        say(lake, "s1", *TURNS)
        assert run(instance, partition_key=f"{DAY}").success
        review = settings.review_file
        review.write_text(review.read_text("utf-8").replace("- [ ] `p-", "- [x] `p-"), "utf-8")
        assert run(instance, partition_key=f"{DAY}").success
        for name in CASES:
            asset, check = name.split(":")
            results = stored(instance, asset, check).values()
            assert all(results) and (results or asset in LEVELS), name
    return folder / "workspace"


def checked(asset: str, check: str) -> bool:
    """What the check says, run alone: nothing is made anew before it."""
    found, key = build_definitions(Placement(load_settings())), dg.AssetCheckKey(dg.AssetKey(asset), check)
    partitions = found.resolve_asset_graph().get(key).partitions_def
    with warnings.catch_warnings():  # dagster 1.13 infers the partitions of assets only
        warnings.simplefilter("ignore", DeprecationWarning)
        job = dg.define_asset_job("alone", selection=dg.AssetSelection.checks(key), partitions_def=partitions)
    alone = dg.Definitions(found.assets, resources=found.resources, jobs=[job], asset_checks=found.asset_checks)
    period = Period.containing(DAY, LEVELS[asset]).key if asset in LEVELS else DAY
    with dg.DagsterInstance.ephemeral() as instance:
        done = alone.resolve_job_def("alone").execute_in_process(
            instance=instance,
            tags={"dagster/partition": f"{period}"} if partitions else None,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    (evaluation,) = done.get_asset_check_evaluations()
    return evaluation.passed


@pytest.mark.parametrize("name", CASES)
def test_the_check_is_red(name: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asset, check = name.split(":")
    copied(good, tmp_path / "workspace")
    assert os.environ["MEMORY_WORKSPACE"] == str(tmp_path / "workspace")
    use_encoder(monkeypatch, FakeEncoder("uv", "friday", "lock", dimension=384))
    CASES[name](Bad(monkeypatch, tmp_path))
    assert not checked(asset, check)


def test_every_check_says_when_it_fails_and_has_its_case() -> None:
    graph = defs.resolve_asset_graph()
    about = {
        f"{key.asset_key.to_user_string()}:{key.name}": graph.get(key).description for key in graph.asset_check_keys
    }
    assert about.keys() == CASES.keys()
    assert [name for name, description in about.items() if len(fails_when(description)) < 40] == []


@pytest.mark.parametrize("check", ["compression_ratio", "no_silent_zero"])
def test_nothing_worth_keeping_is_a_valid_answer(
    check: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(good, tmp_path / "workspace")
    bad = Bad(monkeypatch, tmp_path)
    bad.observed("<observations>nothing worth keeping</observations>")
    assert bad.lake.read("observations", [DAY]).is_empty()
    assert bad.lake.read("windows", [DAY])["tokens_said"].sum() > 200
    assert checked("observations", check)


def test_one_time_of_forty_is_a_slip(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(good, tmp_path / "workspace")
    bad = Bad(monkeypatch, tmp_path)
    lines = [f"assistant: Note {chr(97 + n % 26) * 5}{n} says that the parcel {n * 7} is late." for n in range(40)]
    say(bad.lake, "s2", *lines, day=DAY + timedelta(1), clock="10:00")
    told = [f"🟡 statement ({10 + n // 60}:{n % 60:02d}) [#{n + 1}] {line[11:]}" for n, line in enumerate(lines)]
    told[7] = told[7].replace("10:07", "03:33")
    task = "\n<current-task>Wait for the parcels until 10:39.</current-task>"
    with bad.model("OBSERVER", facts(*told) + task):
        bring_up_to_date(ObservationsStage.from_workspace(bad.workspace), bad.lake, DAY + timedelta(1))
    (segment,) = bad.lake.read("segments", [DAY + timedelta(1)]).to_dicts()
    assert (segment["times_written"], segment["times_invented"]) == (41, 1)
    assert judge_invented_times(bad.workspace, DAY + timedelta(1)).passed
