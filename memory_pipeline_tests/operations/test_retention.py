"""Words that are old enough go, what was made of them stays, and no later run brings them back."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from memory_pipeline.embeddings.health import vector_problems
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations import stage as observing
from memory_pipeline.observations.evaluation import judge_evidence, judge_specifics, judge_timestamps
from memory_pipeline.operations.retention import Retired, due_days, retire_words
from memory_pipeline.planning import Stages
from memory_pipeline.recall.origin import origin
from memory_pipeline.recall.tools import Asked, NothingToTellError, show
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import Settings
from memory_pipeline.stage import bring_up_to_date, is_current
from memory_pipeline.workspace import Workspace
from memory_pipeline_tests.conftest import conversation, user, write_session
from memory_pipeline_tests.rows import WordEncoder, changed, day_after, use_encoder, workspace

OLD, NEXT, NEW = day_after(0), day_after(1), day_after(20)
RULE = "Never deploy the parcels on a Friday without a backup."
TALK = "lighthouse keepers paint their stairs"
TODAY = NEW
"""A day on which the first two are old, and the third is not."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three days of sessions, all done."""
    encoder = WordEncoder()
    use_encoder(monkeypatch, encoder)
    monkeypatch.setattr("memory_pipeline.embeddings.health.encoder_of", lambda name: encoder)
    for day in (OLD, NEXT, NEW):
        said = conversation(f"{day}T09:00:00", users=4, topic=f"ticket {day.day}")
        later = [user(f"{day}T10:00:00", f"{RULE} It is {day:%j}.", f"rule-{day.day}")]
        later += [user(f"{day}T10:05:00", f"By the way, {TALK} {day.day}.", f"talk-{day.day}")]
        write_session(tmp_path / "sessions" / f"s{day.day}.jsonl", *said, *later)
    settings, _ = workspace(tmp_path / "workspace", start_date=OLD, friction_min_points=1, keep_words_days=15)
    run(settings, tmp_path)
    return settings


def run(settings: Settings, folder: Path) -> list[tuple[str, date]]:
    """Bring all up to date; what was made."""
    lake = Lake(settings.lake_dir)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(find_sources([folder / "sessions"]))
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


def test_no_later_run_makes_anything_anew(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retire_words(settings, TODAY)
    before = tables(settings)
    assert run(settings, tmp_path) == []
    assert retire_words(settings, TODAY) == Retired([], [])
    monkeypatch.setattr(observing, "VERSION", "another")
    path = tmp_path / "sessions" / f"s{OLD.day}.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")  # read again, and nothing of it stored again
    made = run(settings, tmp_path)
    assert ("observations", NEW) in made, "what is kept is observed anew"
    assert not [one for one in made if one[1] in (OLD, NEXT) and one[0] != "proposals"]
    now = tables(settings)
    kept = ("messages/", "observations/", "segments/")
    of_old = [name for name in now if name.startswith(kept) and f"{NEW}" not in name]
    assert len(of_old) == 6 and all(now[name] == before[name] for name in of_old)


def test_what_looks_back_over_such_a_day_stays_too(settings: Settings, tmp_path: Path) -> None:
    """Friction looks back a week, and would no longer find what it found."""
    lake = Lake(settings.lake_dir)
    friction = Stages.from_settings(settings).friction_clusters
    late = OLD + timedelta(days=4)
    bring_up_to_date(friction, lake, late)
    retire_words(settings, TODAY)
    assert is_current(friction, lake, late)


def test_a_day_that_is_not_done_waits(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(settings.lake_dir)
    lake.path("reflections", OLD).unlink()
    assert retire_words(settings, TODAY) == Retired([NEXT], [OLD])
    assert RULE in "".join(lake.read("messages", [OLD])["text"])
    run(settings, tmp_path)
    assert retire_words(settings, TODAY) == Retired([OLD], [])


def test_what_was_killed_on_the_way_is_finished(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("memory_pipeline.operations.retention.remove_points", dies)
        retire_words(settings, TODAY)
    lake = Lake(settings.lake_dir)
    assert due_days(settings, lake, TODAY) == [OLD, NEXT]
    assert retire_words(settings, TODAY) == Retired([OLD, NEXT], [])
    assert not vector_problems(Workspace(settings, lake)) and not due_days(settings, lake, TODAY)


def test_a_day_comes_back_when_its_file_is_deleted(settings: Settings, tmp_path: Path) -> None:
    lake = Lake(settings.lake_dir)
    observed, said = lake.read("observations", [OLD]), lake.read("messages", [OLD])
    retire_words(settings, TODAY)
    lake.path("messages", OLD).unlink()
    made = run(settings, tmp_path)
    assert {table for table, day in made if day == OLD} >= {"windows", "message_embeddings"}
    assert lake.read("messages", [OLD]).equals(said) and lake.read("observations", [OLD]).equals(observed)
    assert lake.read("message_embeddings", [OLD]).height


def test_it_is_off_by_default(settings: Settings) -> None:
    assert Settings.model_fields["keep_words_days"].default == 0
    assert retire_words(changed(settings, keep_words_days=0), TODAY) == Retired([], [])
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
    with pytest.raises(NothingToTellError, match=f"It was said on {OLD}, and the words are no longer kept"):
        show(Asked(settings, tmp_path), said["message_id"])


def test_checks_that_compare_with_the_words_pass(settings: Settings) -> None:
    retire_words(settings, TODAY)
    opened = Workspace(settings, Lake(settings.lake_dir))
    for judge in (judge_evidence, judge_timestamps, judge_specifics):
        verdict = judge(opened, OLD)
        assert verdict.passed and "no longer kept" in verdict.sentence
        assert judge(opened, NEW).numbers, "of the others it still compares"


def test_rows_that_are_replaced_stay_retired(settings: Settings) -> None:
    """As `memory forget` replaces some."""
    retire_words(settings, TODAY)
    lake = Lake(settings.lake_dir)
    lake.replace("messages", lake.read("messages", [OLD]).head(1), [OLD])
    assert lake.is_retired("messages", OLD) and not lake.is_retired("messages", NEW)
