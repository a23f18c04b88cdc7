"""Planning: the stages in the order of the graph, a day up to date exactly when no stage has anything to do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.planning import Stages
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import Built, bring_up_to_date, is_current
from memory_pipeline_tests.conftest import Entry, assistant, conversation, user, utc, write_session

DAY = date(2025, 3, 5)
NOW = utc("2025-09-01T00:00")


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sessions"
    path.mkdir()
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(path))
    return path


def stages() -> Stages:
    """As a new process makes them."""
    made = Stages.from_settings(load_settings(), now=NOW)
    made.sessions.look()
    return made


def run(made: Stages, *days: date) -> list[str]:
    """Bring the days up to date in the way of a run over a range; the stages and days that had something to do."""
    lake = made.sessions.lake
    return [f"{s.tables[-1]} {day:%d}" for s in made.all() for day in days if bring_up_to_date(s, lake, day)]


def talk(day: date) -> list[Entry]:
    """A conversation from which there is something to observe."""
    start = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
    rules = ["Never use npm here, always use pnpm.", "Always run make check before a commit.", "Do not touch the lock."]
    said: list[Entry] = []
    for number, text in enumerate([*rules, "Why does the build fail?", "Good, commit it."]):
        asked = start + timedelta(minutes=2 * number)
        said.append(user(asked, text, f"{day} {number} user"))
        said.append(assistant(asked + timedelta(minutes=1), "The cause was a stale lockfile.", f"{day} {number} model"))
    return said


# --- one stage, one day ---


class Counting:
    """A stage over one plain table, whose inputs are what a test says they are."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.inputs, self.built = lake, "inputs", 0
        self.tables: tuple[str, ...] = ("ledger",)

    def fingerprint(self, day: date) -> str:
        return self.inputs

    def build(self, day: date) -> Built:
        self.built += 1
        frame = pl.DataFrame({"day": [day], "call_id": [self.inputs]})
        return Built({name: frame if name == "ledger" else frame.select("day") for name in self.tables})


@pytest.fixture
def stage(tmp_path: Path) -> Counting:
    return Counting(Lake(tmp_path / "lake"))


def test_a_day_is_built_once_for_the_same_inputs(stage: Counting) -> None:
    assert [bool(bring_up_to_date(stage, stage.lake, DAY)) for _ in range(3)] == [True, False, False]
    assert stage.built == 1
    assert is_current(stage, stage.lake, DAY)


def test_other_inputs_make_a_day_out_of_date(stage: Counting) -> None:
    bring_up_to_date(stage, stage.lake, DAY)
    stage.inputs = "other inputs"
    assert not is_current(stage, stage.lake, DAY)
    assert bring_up_to_date(stage, stage.lake, DAY)
    assert stage.lake.read("ledger")["call_id"].to_list() == ["other inputs"]


def test_a_day_is_current_when_all_of_its_tables_are(stage: Counting) -> None:
    """A run that died between two tables is not done."""
    stage.tables = ("ledger", "events")
    stage.lake.replace("ledger", stage.build(DAY).frames["ledger"], [DAY], {DAY: "inputs"})
    assert not is_current(stage, stage.lake, DAY)
    assert bring_up_to_date(stage, stage.lake, DAY)
    assert is_current(stage, stage.lake, DAY)


def test_a_build_that_fails_leaves_the_day_as_it_was(stage: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_up_to_date(stage, stage.lake, DAY)
    stage.inputs = "other inputs"
    monkeypatch.setattr(stage, "build", lambda day: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bring_up_to_date(stage, stage.lake, DAY)
    assert stage.lake.read("ledger")["call_id"].to_list() == ["inputs"]
    assert not is_current(stage, stage.lake, DAY)


def test_what_changes_during_a_build_is_found_by_the_next_run(stage: Counting) -> None:
    """The fingerprint is taken before: a session that grows meanwhile must not count as read."""
    build = stage.build

    def slow(day: date) -> Mapping[str, pl.DataFrame]:
        frames = build(day)
        stage.inputs = "grown"
        return frames

    stage.build = slow  # type: ignore[method-assign]
    bring_up_to_date(stage, stage.lake, DAY)
    assert not is_current(stage, stage.lake, DAY)


# --- all stages ---


def test_the_stages_are_in_the_order_of_the_graph() -> None:
    assert [s.tables for s in stages().all()] == [
        ("sessions", "messages", "windows"),
        ("segments", "observations"),
        ("embeddings",),
        ("reflections",),
        ("supports", "proposals"),
        ("friction_clusters",),
        ("summary_embeddings",),
        ("message_embeddings",),
    ]


def test_each_table_has_at_most_one_stage() -> None:
    made = [table for s in stages().all() for table in s.tables]
    assert len(made) == len(set(made))
    assert set(made) <= {name for name, table in TABLES.items() if table.daily}


def test_all_stages_share_one_lake_and_one_encoder() -> None:
    made = stages()
    assert len({id(s.lake) for s in made.all()}) == 1  # type: ignore[attr-defined]
    assert made.embeddings.encoder is made.reflections.encoder
    assert stages().embeddings.encoder is made.embeddings.encoder  # also the next ones in the same process


def test_an_untouched_workspace_has_nothing_to_run() -> None:
    assert stages().runs_for([]) == []


def test_after_a_run_every_stage_of_every_day_is_current_and_no_byte_changes(sessions: Path) -> None:
    days = [DAY, DAY + timedelta(days=1)]
    for day in days:
        write_session(sessions / f"{day}.jsonl", *talk(day))
    made = stages()
    assert not any(made.is_current(day) for day in days)
    assert len(run(made, *days)) == 8 * len(days)
    lake = made.sessions.lake
    assert lake.read("observations").height and lake.read("embeddings").height == lake.read("observations").height

    before = {path: path.read_bytes() for path in lake.root.rglob("*.parquet")}
    again = stages()
    assert all(again.is_current(day) for day in days)
    assert again.runs_for(days) == []
    assert run(again, *days) == []
    assert {path: path.read_bytes() for path in lake.root.rglob("*.parquet")} == before


def test_a_session_that_grew_makes_every_stage_of_its_day_look_again(sessions: Path) -> None:
    later = DAY + timedelta(days=2)
    for day in (DAY, later):
        write_session(sessions / f"{day}.jsonl", *talk(day))
    run(stages(), DAY, later)
    more = user(datetime(2025, 3, 5, 10, tzinfo=UTC), "Never push to main without a review, please.")
    write_session(sessions / f"{DAY}.jsonl", *talk(DAY), more)
    made = stages()
    assert (made.is_current(DAY), made.is_current(later)) == (False, True)  # as far as can be told before
    assert made.runs_for([DAY, later]) == [(DAY, DAY), (later, later)]  # so the days after it are looked at too
    assert {"windows 05", "observations 05", "embeddings 05", "reflections 05", "reflections 07"} <= set(
        done := run(made, DAY, later)
    )
    assert "windows 07" not in done


# --- which runs ---


def days_with_sessions(sessions: Path, *offsets: int) -> list[date]:
    days = [DAY + timedelta(days=offset) for offset in offsets]
    for day in days:
        start = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        write_session(sessions / f"{day}.jsonl", *conversation(start, users=1, topic=f"{day}"))
    return days


def test_no_run_goes_over_a_day_without_sessions(sessions: Path) -> None:
    days = days_with_sessions(sessions, 0, 1, 3, 2400)
    assert stages().runs_for(reversed(days)) == [(days[0], days[1]), (days[2], days[2]), (days[3], days[3])]


def test_a_day_that_gets_a_session_later_is_due(sessions: Path) -> None:
    days = days_with_sessions(sessions, 0, 2)
    run(stages(), *days)
    (later,) = days_with_sessions(sessions, 1)
    assert stages().runs_for(sorted([*days, later])) == [(later, days[1])]  # the day after it looks back on it


def test_runs_begin_with_the_first_day_that_is_out_of_date(sessions: Path) -> None:
    days = days_with_sessions(sessions, 0, 20, 40, 41)
    run(stages(), *days[:2])
    assert stages().runs_for(days) == [(days[2], days[3])]
    days_with_sessions(sessions, 21)
    write_session(sessions / f"{days[1]}.jsonl", user(datetime(2025, 3, 25, 9, tzinfo=UTC), "changed"))
    assert stages().runs_for(days) == [(days[1], days[1]), (days[2], days[3])]
