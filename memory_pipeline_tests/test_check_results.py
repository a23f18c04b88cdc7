"""What the UI shows under Checks: every day of a run with its result, and all stored days of a run without days."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionResolvedStatus as Status

from memory_pipeline.defs.check_results import over_days
from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.types import UNGROUNDED_SPECIFICS
from memory_pipeline.settings import load_settings
from memory_pipeline.verdict import Verdict
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import FakeEncoder, day_after, say, use_encoder, workspace

TURNS = (
    "user: Never deploy on a Friday, because nobody is there to watch it.",
    "assistant: The root cause was a stale lock file in /var/run/worker.pid that nobody removed.",
    "user: From now on we always use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)
DAYS = [f"{day_after(i)}" for i in range(3)]
RANGE = {"dagster/asset_partition_range_start": DAYS[0], "dagster/asset_partition_range_end": DAYS[-1]}
JUDGED = {"windows": ["every_message_in_one_window"], "observations": ["compression_ratio", "times_are_recorded"]}
READ = ["sessions", "messages", "windows", "segments", "observations"]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A workspace with a session on each of three days, and no session files."""
    use_encoder(monkeypatch, FakeEncoder("uv", "friday", "lock", dimension=384))
    _, lake = workspace(tmp_path / "workspace")
    for back in range(3):
        say(lake, f"s{back}", *TURNS, day=day_after(back))
    return lake


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(f"{tmp_path / 'dagster'}", {"telemetry": {"enabled": False}}) as made:
        yield made


def keys() -> list[dg.AssetCheckKey]:
    return [dg.AssetCheckKey(dg.AssetKey(asset), name) for asset, names in JUDGED.items() for name in names]


def run(instance: dg.DagsterInstance, **how: Any) -> dg.ExecuteInProcessResult:
    """The assets up to the observations with their checks."""
    defs = build_definitions(Placement(load_settings()))
    assets = [a for a in defs.assets or [] if {key.path[-1] for key in a.keys} <= set(READ)]
    checks = [c for c in defs.asset_checks or [] if {*c.check_keys} & {*keys()}]
    return dg.materialize([*assets, *checks], instance=instance, resources=defs.resources, run_config=QUIET, **how)


def execute_all(instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """As the button on the Checks tab does: a run of checks alone, without a partition."""
    job = build_definitions(Placement(load_settings())).get_repository_def().get_implicit_global_asset_job_def()
    chosen = job.get_subset(asset_check_selection={*keys()}, asset_selection=set())
    return chosen.execute_in_process(instance=instance, run_config=QUIET)


def shown(instance: dg.DagsterInstance) -> dict[str, dict[str, list[str]]]:
    """By check and status the days, as Checks -> Partitions shows them."""
    partitions = dg.DailyPartitionsDefinition(start_date="2025-03-01", timezone="UTC", end_offset=1)
    states = instance.event_log_storage.get_asset_check_state([(key, partitions) for key in keys()])
    return {
        key.name: {
            status.value: sorted(subset.subset_value.get_partition_keys())
            for status, subset in state.subsets.items()
            if not subset.is_empty
        }
        for key, state in states.items()
    }


def evaluations(instance: dg.DagsterInstance, check: str) -> list[dg.AssetCheckEvaluation]:
    """The newest first."""
    (key,) = (key for key in keys() if key.name == check)
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
    return [record.evaluation for record in records if record.evaluation]


def of_the_run(instance: dg.DagsterInstance, check: str) -> dg.AssetCheckEvaluation:
    """The newest result over all days of a run."""
    return next(evaluation for evaluation in evaluations(instance, check) if evaluation.partition is None)


@pytest.mark.parametrize("how", [{"tags": RANGE}, {"partition_key": DAYS[1]}])
def test_every_day_of_a_run_has_passed(lake: Lake, instance: dg.DagsterInstance, how: dict[str, Any]) -> None:
    assert run(instance, **how).success
    days = DAYS if "tags" in how else [DAYS[1]]
    passed = {Status.SUCCEEDED.value: days}
    assert shown(instance) == {key.name: passed for key in keys()}


def test_a_result_says_what_was_judged_and_what_is_wrong(lake: Lake, instance: dg.DagsterInstance) -> None:
    assert run(instance, tags=RANGE).success
    of_all, *by_day = evaluations(instance, "compression_ratio")
    assert of_all.description == "3 days: no problems."
    assert all("tokens of" in f"{e.description}" and f"{e.description}".endswith("no problems.") for e in by_day)
    frame = lake.read("observations", [day_after(1)])
    lake.replace("observations", frame.with_columns(frame["tokens"] * 100), [day_after(1)])
    assert execute_all(instance).success
    of_all = of_the_run(instance, "compression_ratio")
    assert not of_all.passed
    assert f"3 days, 1 of them failed: {DAYS[1]}: " in f"{of_all.description}"
    assert "hardly condensed" in f"{of_all.description}"
    assert shown(instance)["compression_ratio"][Status.FAILED.value] == [DAYS[1]]


@pytest.mark.slow
def test_execute_all_judges_all_stored_days(lake: Lake, instance: dg.DagsterInstance) -> None:
    assert run(instance, tags=RANGE | {"dagster/asset_partition_range_end": DAYS[1]}).success
    assert execute_all(instance).success
    latest = {key.name: of_the_run(instance, key.name) for key in keys()}
    assert all(evaluation.passed for evaluation in latest.values())
    assert latest["compression_ratio"].metadata["days"].value == "2"
    assert shown(instance)["compression_ratio"] == {Status.SUCCEEDED.value: DAYS[:2]}
    assert shown(instance)["every_message_in_one_window"] == {Status.SUCCEEDED.value: DAYS}  # all are stored


def test_execute_all_of_nothing_stored_is_no_failure(lake: Lake, instance: dg.DagsterInstance) -> None:
    assert execute_all(instance).success
    assert of_the_run(instance, "compression_ratio").description == "0 days: no problems."


def test_names_that_nobody_said_are_named(lake: Lake, instance: dg.DagsterInstance) -> None:
    from memory_pipeline.observations.evaluation import judge_specifics
    from memory_pipeline.workspace.workspace import Workspace

    assert run(instance, partition_key=DAYS[0]).success
    day = date.fromisoformat(DAYS[0])
    frame = lake.read("observations", [day])
    flags = pl.Series("flags", [[UNGROUNDED_SPECIFICS]] * frame.height)
    invented = frame.with_columns(flags, text=frame["text"] + " on /opt/nowhere/9.9.9")
    lake.replace("observations", invented, [day])
    verdict = judge_specifics(Workspace.open(load_settings()), day)
    assert not verdict.passed
    assert "/opt/nowhere" in verdict.sentence
    assert "/opt/nowhere" in f"{verdict.numbers['nobody_said']}"
    assert [o for o in verdict.offenders[1:] if "/opt/nowhere" in o]


@each(
    ("offenders", "sentence"),
    [
        ([], "23 texts: no problems."),
        (["o-1 is wrong."], "23 texts: o-1 is wrong."),
        (["o-1 is wrong", "o-2 is too"], "23 texts: o-1 is wrong. And 1 more."),
    ],
)
def test_a_verdict_is_a_sentence(offenders: Sequence[str], sentence: str) -> None:
    assert Verdict(not offenders, {}, list(offenders), "23 texts").sentence == sentence


def test_days_that_failed_are_told_with_their_reasons() -> None:
    good, bad = Verdict(True, judged="1 text"), Verdict(False, {}, ["o-1 is wrong"], "2 texts")
    total = over_days({date(2026, 3, 1): good, date(2026, 3, 2): bad})
    assert total.sentence == "2 days, 1 of them failed: 2026-03-02: 2 texts: o-1 is wrong."
    assert total.numbers == {"days": "2", "days_failed": "1"}
