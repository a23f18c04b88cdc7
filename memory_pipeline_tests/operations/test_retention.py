"""Words that are old enough go, what was made of them stays, and no later run brings them back."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.embeddings.health import vector_problems
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage, rebuild
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.stage import EmbeddingsStage, IndexStage, SummaryEmbeddingsStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations import stage as observing
from memory_pipeline.observations.evaluation import judge_evidence, judge_specifics, judge_timestamps
from memory_pipeline.operations.retention import (
    PASSING,
    Retired,
    due_days,
    retire,
    retire_rows,
    retire_words,
)
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.cards import cards_of
from memory_pipeline.proposals.context import NOT_KEPT
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.recall.origin import origin
from memory_pipeline.recall.tools import Caller, NoAnswerError, show
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import Settings
from memory_pipeline.stages import INCOMPLETE, bring_up_to_date
from memory_pipeline.web.reading import session_screen
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import conversation, user, write_session
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.rows import MissingEncoder, WordEncoder, changed, day_after, put, use_encoder, workspace

OLD, NEXT, NEW = day_after(0), day_after(1), day_after(20)
RULE = "Never deploy the parcels on a Friday without a backup."
TALK = "lighthouse keepers paint their stairs"
TODAY = NEW
"""A day on which the first two are old, and the third is not."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where each test has its sessions and workspace in turn; tables name the paths of sessions."""
    folder = tmp_path_factory.mktemp("retained")
    yield folder / "now"
    shutil.rmtree(folder)


@pytest.fixture
def settings(place: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three days of sessions, all done; made once by each worker and copied."""
    encoder = WordEncoder()
    use_encoder(monkeypatch, encoder)
    monkeypatch.setattr("memory_pipeline.embeddings.health.encoder_of", lambda name: encoder)
    settings, _ = workspace(place / "workspace", start_date=OLD, friction_min_points=1, retention_messages=15)
    done = place.with_name("done")
    shutil.rmtree(place, ignore_errors=True)
    if not done.exists():
        for day in (OLD, NEXT, NEW):
            said = conversation(f"{day}T09:00:00", users=4, topic=f"ticket {day.day}")
            later = [user(f"{day}T10:00:00", f"{RULE} It is {day:%j}.", f"rule-{day.day}")]
            later += [user(f"{day}T10:05:00", f"By the way, {TALK} {day.day}.", f"talk-{day.day}")]
            write_session(place / "sessions" / f"s{day.day}.jsonl", *said, *later)
        run(settings)
        place.rename(done)
    copied(done, place)
    return settings


def sessions_of(settings: Settings) -> Path:
    return settings.workspace.with_name("sessions")


def run(settings: Settings) -> list[tuple[str, date]]:
    """Bring all up to date; what was made."""
    lake = Lake(settings.lake_dir)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(find_sources([sessions_of(settings)]))
    stages = Stages.from_settings(settings, catalogue, datetime(2025, 4, 20, tzinfo=UTC)).all()
    return [(s.tables[-1], day) for s in stages for day in catalogue.days() if bring_up_to_date(s, lake, day)]


def tables(settings: Settings) -> dict[str, str]:
    """A hash of each file of the lake."""
    files = settings.lake_dir.rglob("*.parquet")
    return {f"{p.relative_to(settings.lake_dir)}": hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_old_words_are_gone_and_all_that_was_made_of_them_is_there(settings: Settings) -> None:
    lake, before = Lake(settings.lake_dir), tables(settings)
    observed = lake.read("observations", [OLD])
    assert observed.height and lake.read("message_embeddings", [OLD]).height
    assert retire_words(settings, TODAY) == Retired([OLD, NEXT], [])
    said = lake.read("messages", [OLD, NEXT])
    assert said.height and set(said["text"]) == {""} and not said["answered"].drop_nulls().len()
    assert all(lake.read("messages", [NEW])["text"] != "")
    touched = {name for name, content in tables(settings).items() if before[name] != content}
    assert touched == {f"{table}/{day}.parquet" for table in ("messages", "message_embeddings") for day in (OLD, NEXT)}
    left = [
        path
        for path in settings.index_dir.glob("memory_messages*/**/*")
        if path.is_file() and f"{TALK} {OLD.day}".encode() in path.read_bytes()
    ]
    assert not left, "recall would find what is no longer kept"
    assert not vector_problems(Workspace(settings, lake))


def test_no_later_run_makes_anything_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    retire_words(settings, TODAY)
    before = tables(settings)
    assert run(settings) == []
    assert retire_words(settings, TODAY) == Retired([], [])
    monkeypatch.setattr(observing, "VERSION", "another")
    path = sessions_of(settings) / f"s{OLD.day}.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")  # read again, and nothing of it stored again
    made = run(settings)
    assert ("observations", NEW) in made, "what is kept is observed anew"
    assert not [one for one in made if one[1] in (OLD, NEXT) and one[0] != "proposals"]
    now = tables(settings)
    kept = ("messages/", "observations/", "segments/")
    of_old = [name for name in now if name.startswith(kept) and f"{NEW}" not in name]
    assert len(of_old) == 6 and all(now[name] == before[name] for name in of_old)


def test_a_day_that_is_not_done_waits(settings: Settings) -> None:
    lake = Lake(settings.lake_dir)
    lake.path("reflections", OLD).unlink()
    assert retire_words(settings, TODAY) == Retired([NEXT], [OLD])
    assert RULE in "".join(lake.read("messages", [OLD])["text"])
    run(settings)
    assert retire_words(settings, TODAY) == Retired([OLD], [])


def test_what_was_killed_on_the_way_is_finished(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("memory_pipeline.operations.retention.remove_points", dies)
        retire_words(settings, TODAY)
    lake = Lake(settings.lake_dir)
    assert list(due_days(settings, lake, TODAY)) == [OLD, NEXT]
    assert retire_words(settings, TODAY) == Retired([OLD, NEXT], [])
    assert not vector_problems(Workspace(settings, lake)) and not due_days(settings, lake, TODAY)


def test_a_day_comes_back_when_its_file_is_deleted(settings: Settings) -> None:
    lake = Lake(settings.lake_dir)
    observed, said = lake.read("observations", [OLD]), lake.read("messages", [OLD])
    retire_words(settings, TODAY)
    lake.path("messages", OLD).unlink()
    made = run(settings)
    assert {table for table, day in made if day == OLD} >= {"windows", "message_embeddings"}
    assert lake.read("messages", [OLD]).equals(said) and lake.read("observations", [OLD]).equals(observed)
    assert lake.read("message_embeddings", [OLD]).height


def test_it_is_off_by_default(settings: Settings) -> None:
    assert Settings.model_fields["retention"].default.messages == 0
    assert retire_words(changed(settings, retention_messages=0), TODAY) == Retired([], [])
    assert retire_words(settings, OLD + timedelta(days=14)) == Retired([], []), "the first is 14 days old"


def test_what_is_asked_of_them_is_answered_with_a_sentence(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(settings.lake_dir)
    rows = lake.read("observations", [OLD])
    rule = next(row["observation_id"] for row in rows.to_dicts() if "Never deploy" in row["text"])
    assert origin(settings, rule)["said"][0]["quote"]
    retire_words(settings, TODAY)
    said = origin(settings, rule)["said"][0]
    assert said["not_kept"] and said["quote"] == "" and said["role"] == "user"
    assert ".jsonl:" in said["source"], "where it stood is still told"
    with pytest.raises(NoAnswerError, match=f"It is from {OLD}, and its text is no longer kept"):
        show(Caller(settings, tmp_path), said["message_id"])


def test_checks_that_compare_with_the_words_pass(settings: Settings) -> None:
    retire_words(settings, TODAY)
    opened = Workspace(settings, Lake(settings.lake_dir))
    for judge in (judge_evidence, judge_timestamps, judge_specifics):
        verdict = judge(opened, OLD)
        assert verdict.passed and "no longer kept" in verdict.sentence
        assert judge(opened, NEW).numbers, "of the others it still compares"


FAR = OLD + timedelta(days=110)
"""A day on which all three are older than the least that a table may be kept, and the third is younger than `AGE`."""
AGE = 95


def aged(settings: Settings, *tables: str) -> Settings:
    return changed(settings, retention_messages=0, **{f"retention_{table}": AGE for table in tables})


def test_tables_have_ages_of_their_own(settings: Settings) -> None:
    lake, before = Lake(settings.lake_dir), tables(settings)
    assert lake.read("embeddings", [OLD]).height and lake.read("summary_embeddings", [OLD]).height
    assert retire(aged(settings, "embeddings"), FAR) == {"embeddings": Retired([OLD, NEXT], [])}
    touched = {name for name, content in tables(settings).items() if before[name] != content}
    assert touched == {f"embeddings/{day}.parquet" for day in (OLD, NEXT)}
    done = retire(aged(settings, "message_embeddings", "summary_embeddings", "friction_clusters"), FAR)
    assert done == {
        table: Retired([OLD, NEXT], []) for table in ("message_embeddings", "summary_embeddings", "friction_clusters")
    }
    assert lake.read("message_embeddings", [OLD, NEXT]).is_empty() and lake.read("message_embeddings", [NEW]).height
    assert all(lake.read("messages", [OLD])["text"] != ""), "the words stay"


def test_what_was_offered_stays(settings: Settings) -> None:
    """A line that a user rejected is told by its vector when it comes again in other words."""
    lake = Lake(settings.lake_dir)
    offered = set(lake.read("proposals")["sources"].explode(empty_as_null=True))
    patterns = pl.DataFrame([{"day": OLD, "pattern_id": "f-1"}, {"day": OLD, "pattern_id": "f-2"}])
    known = lake.fingerprint("friction_clusters", OLD)
    assert known
    lake.replace("friction_clusters", patterns, [OLD], {OLD: known})
    put(lake, "friction_fixes", {"day": OLD, "proposal_id": "f-2", "title": "It fails."})
    retire_rows(aged(settings, *PASSING), FAR)
    assert set(lake.read("embeddings", [OLD])["source_id"]) == offered & set(
        lake.read("observations", [OLD])["observation_id"]
    )
    assert lake.read("friction_clusters", [OLD])["pattern_id"].to_list() == ["f-2"]
    assert offered and not vector_problems(Workspace(settings, lake))


def test_points_go_with_their_rows_and_stay_out_of_a_rebuilt_index(settings: Settings) -> None:
    opened = Workspace(settings, lake := Lake(settings.lake_dir))
    stages = (
        EmbeddingsStage.from_workspace(opened),
        SummaryEmbeddingsStage.from_workspace(opened),
        MessageEmbeddingsStage.from_workspace(opened),
    )
    retire_rows(aged(settings, *PASSING), FAR)

    def points(base: str, stage: IndexStage) -> set[str]:
        with open_index(settings, stages[0].encoder.dimension, base) as index:
            return index.ids(OLD, stage.records)

    def all_right() -> bool:
        return all(
            points(MESSAGES if stage is stages[2] else COLLECTION, stage)
            == set(lake.read(stage.tables[0], [OLD])["point_id"])
            for stage in stages
        )

    assert all_right() and len(stages[0].points(OLD)) == lake.read("embeddings", [OLD]).height > 0
    shutil.rmtree(settings.index_dir)
    assert vector_problems(opened)
    rebuild(opened, [NEW, NEXT, OLD], lambda day: None)
    assert all_right() and not vector_problems(opened)


def test_no_later_run_brings_rows_back_or_looks_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    run(settings)
    retire_rows(aged(settings, *PASSING), FAR)
    before = tables(settings)
    assert run(settings) == [] and tables(settings) == before
    monkeypatch.setattr("memory_pipeline.embeddings.stage.VERSION", "another")
    monkeypatch.setattr("memory_pipeline.friction.stage.VERSION", "another")
    lake = Lake(settings.lake_dir)
    kept = {table: lake.read(table, [OLD]) for table in PASSING}
    assert {table for table, day in run(settings) if day == OLD} == set(PASSING)
    assert all(lake.read(table, [OLD]).equals(rows) for table, rows in kept.items())


def test_a_model_that_went_missing_takes_nothing_that_was_kept(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    retire_rows(aged(settings, "embeddings"), FAR)
    lake = Lake(settings.lake_dir)
    kept = lake.read("embeddings", [OLD])
    use_encoder(monkeypatch, MissingEncoder())
    other = changed(settings, embedding_model="another")
    bring_up_to_date(EmbeddingsStage.from_workspace(Workspace(other, lake)), lake, OLD)
    assert lake.fingerprint("embeddings", OLD) == INCOMPLETE and lake.read("embeddings", [OLD]).equals(kept)


def test_what_was_said_last_in_a_session_stays(settings: Settings) -> None:
    lake = Lake(settings.lake_dir)
    retire_words(changed(settings, retention_keep_last=1), TODAY)
    kept = lake.read("messages", [OLD]).filter(pl.col("text") != "")["text"].to_list()
    assert kept == [f"By the way, {TALK} {OLD.day}."]
    assert lake.read("message_embeddings", [OLD]).is_empty(), "it is no longer searched"
    assert retire_words(changed(settings, retention_keep_last=1), TODAY) == Retired([], [])
    assert retire_words(settings, TODAY) == Retired([OLD, NEXT], []), "and goes where no longer so many are kept"
    assert set(lake.read("messages", [OLD])["text"]) == {""}


@each(
    ("name", "days", "expected"),
    [
        ("retention_messages", 7, "fewer days than the 7 of retention.messages"),
        ("retention_embeddings", 90, "at least 91 days"),
    ],
)
def test_an_age_at_which_today_still_needs_it_is_refused(tmp_path: Path, name: str, days: int, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        workspace(tmp_path, **{name: days})
    assert workspace(tmp_path, **{name: days + 1})


def test_ages_are_those_of_tables_that_nothing_else_is_made_from(settings: Settings) -> None:
    assert set(settings.retention.ages) == set(PASSING)
    assert set(type(settings.retention)().model_dump().values()) == {0}
    assert retire(changed(settings, retention_messages=0), FAR) == {}


def test_every_screen_says_that_words_are_no_longer_kept(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(settings.lake_dir)
    (row,) = [r for r in lake.read("messages", [OLD]).to_dicts() if r["text"].startswith("Never deploy")]
    proposal = next(p for p in ProposalLog(lake).frame.to_dicts() if p["day"] == OLD)
    retire_words(changed(settings, retention_keep_last=1), TODAY)
    last = f"By the way, {TALK} {OLD.day}."
    told = show(Caller(settings, tmp_path), row["session_id"])
    assert last in told and f"({NOT_KEPT})" in told and RULE not in told
    screen = session_screen(settings, {"id": row["session_id"]})
    assert [m["text"] for m in screen["messages"] if m["text"]] == [last] and len(screen["messages"]) > 1
    assert {words for words, _ in cards_of(Workspace(settings, lake), [proposal])[0].quotes} == {NOT_KEPT}
