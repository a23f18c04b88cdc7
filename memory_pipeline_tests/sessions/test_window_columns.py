"""What a window says of itself in the tables, and the days that windows lie on where days are not 24 hours long."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory_pipeline.sessions.stage import WINDOW_VERSION
from memory_pipeline_tests.conftest import Entry, assistant, compaction, user, utc
from memory_pipeline_tests.sessions.machine import Machine

pytestmark = pytest.mark.usefixtures("only_the_first_stage")

DAY = date(2025, 3, 5)


def call(at: str, name: str, path: str) -> Entry:
    """The model reads or changes a file."""
    content = [{"type": "toolCall", "id": f"call {at}", "name": name, "arguments": {"path": path}}]
    said = assistant(at, "")
    return Entry(said.at, said.fields | {"message": said.fields["message"] | {"content": content}})


def columns(machine: Machine, *names: str) -> list[list[Any]]:
    rows = sorted(machine.rows("windows"), key=lambda row: row["started_at"])
    return [[row[name] for name in names] for row in rows]


# --- what a window says of itself ---


@pytest.fixture
def compacted(machine: Machine) -> Machine:
    """Two compactions and what came after, in one session."""
    machine.write(
        "s.jsonl",
        user("2025-03-05T09:00", "one"),
        call("2025-03-05T09:01", "read", "/src/a.py"),
        call("2025-03-05T09:02", "edit", "/src/b.py"),
        user("2025-03-05T09:03", "two", "kept"),
        compaction("2025-03-05T09:10", kept="kept"),
        call("2025-03-05T09:11", "read", "/src/b.py"),
        call("2025-03-05T09:12", "write", "/src/a.py"),
        compaction("2025-03-05T09:20"),
        user("2025-03-05T09:30", "three"),
        call("2025-03-05T09:31", "read", "/src/a.py"),
        call("2025-03-05T09:32", "read", "/src/c.py"),
        call("2025-03-05T09:33", "write", "/src/c.py"),
        user("2025-03-05T09:34", "four"),
    )
    machine.run()
    return machine


def test_a_window_is_complete_at_its_compaction_or_with_its_last_message(compacted: Machine) -> None:
    assert columns(compacted, "trigger", "started_at", "ended_at", "captured_at") == [
        ["compaction", *map(utc, ("2025-03-05T09:00", "2025-03-05T09:02", "2025-03-05T09:10"))],
        ["compaction", *map(utc, ("2025-03-05T09:03", "2025-03-05T09:12", "2025-03-05T09:20"))],
        ["shutdown", *map(utc, ("2025-03-05T09:20", "2025-03-05T09:34", "2025-03-05T09:34"))],
    ]


def test_the_size_of_the_context_is_that_of_the_compaction(compacted: Machine) -> None:
    assert columns(compacted, "trigger", "tokens_before") == [
        ["compaction", 100],
        ["compaction", 100],
        ["shutdown", None],
    ]


def test_the_files_of_a_window_are_those_of_its_own_calls(compacted: Machine) -> None:
    """A file that is read and changed in one window counts as changed there, and as read where it was only read."""
    assert columns(compacted, "files_read", "files_modified") == [
        [["/src/a.py"], ["/src/b.py"]],
        [["/src/b.py"], ["/src/a.py"]],
        [["/src/a.py"], ["/src/c.py"]],
    ]


def test_every_window_has_the_version_of_its_columns(compacted: Machine) -> None:
    assert columns(compacted, "schema_version") == [[WINDOW_VERSION]] * 3


def test_a_message_that_was_written_down_late_makes_the_window_complete_then(machine: Machine) -> None:
    """pi writes an answer when it has ended, with the time at which it began."""
    late = user("2025-03-05T09:01", "two")
    machine.write("s.jsonl", user("2025-03-05T09:00", "one"), Entry(utc("2025-03-05T09:07"), late.fields))
    machine.run()
    assert columns(machine, "ended_at", "captured_at") == [[utc("2025-03-05T09:01"), utc("2025-03-05T09:07")]]


def test_a_compaction_after_midnight_leaves_the_evening_a_window_of_its_own(machine: Machine) -> None:
    """What was observed yesterday is not taken back today."""
    evening = user("2025-03-05T23:50", "evening")
    machine.write("s.jsonl", evening)
    machine.run()
    before = columns(machine, "dedupe_key", "captured_at", "tokens_before")
    machine.write("s.jsonl", evening, user("2025-03-06T00:10", "night"), compaction("2025-03-06T00:20"))
    machine.run()
    assert columns(machine, "dedupe_key", "captured_at", "tokens_before")[:1] == before
    assert columns(machine, "day", "trigger", "tokens_before", "captured_at")[1:] == [
        [DAY + timedelta(days=1), "compaction", 100, utc("2025-03-06T00:20")],
        [DAY + timedelta(days=1), "shutdown", None, utc("2025-03-06T00:20")],
    ]


# --- days ---


def midnights(zone: str, day: date) -> tuple[datetime, datetime]:
    """When the day begins and ends there, in UTC."""
    begin, end = (datetime(d.year, d.month, d.day, tzinfo=ZoneInfo(zone)) for d in (day, day + timedelta(days=1)))
    return begin.astimezone(UTC), end.astimezone(UTC)


DAYS = [
    ("UTC", "2025-03-05", 24),
    ("Europe/Berlin", "2025-03-30", 23),  # 02:00 is 03:00
    ("Europe/Berlin", "2025-10-26", 25),  # 03:00 is 02:00 again
    ("America/St_Johns", "2025-03-09", 23),  # half an hour beside the full hours of UTC
    ("America/St_Johns", "2025-11-02", 25),
    ("Australia/Lord_Howe", "2025-04-06", 24.5),  # clocks go back by half an hour
    ("Pacific/Kiritimati", "2025-03-05", 24),  # 14 hours ahead of UTC
    ("Pacific/Pago_Pago", "2025-03-05", 24),  # 11 hours behind it
]


@pytest.mark.parametrize(("zone", "day", "hours"), DAYS, ids=[f"{zone} {day}" for zone, day, _ in DAYS])
def test_a_day_has_all_of_its_hours_and_no_others(
    zone: str, day: str, hours: float, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that says something each half hour from before the day until after it."""
    monkeypatch.setenv("MEMORY_TIMEZONE", zone)
    chosen = date.fromisoformat(day)
    begin, end = midnights(zone, chosen)
    assert (end - begin) == timedelta(hours=hours)
    steps = int(hours * 2)
    moments = [begin + timedelta(minutes=30 * n) for n in range(-1, steps + 1)]
    last = end - timedelta(milliseconds=1)
    machine.write("s.jsonl", *(user(moment, f"at {moment:%d %H:%M}") for moment in sorted([*moments, last])))
    machine.run()
    assert len(machine.texts(chosen)) == steps + 1
    assert [len(machine.texts(chosen + timedelta(days=step))) for step in (-1, 1)] == [1, 1]
    (window,) = machine.rows("windows", chosen)
    assert (window["started_at"], window["ended_at"]) == (begin, last)
    assert window["messages"] == steps + 1
    assert machine.due() == []


def test_a_session_over_midnight_is_a_window_on_each_of_its_days(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the user's midnight: in UTC it is the middle of the day."""
    monkeypatch.setenv("MEMORY_TIMEZONE", "Pacific/Kiritimati")
    noon = utc("2025-03-05T10:00")
    times = [noon + timedelta(minutes=n) for n in (-2, -1, 0, 1, 2)]
    machine.write("s.jsonl", *(user(time, f"{number}") for number, time in enumerate(times)))
    machine.run()
    assert machine.texts(DAY) == ["0", "1"]
    assert machine.texts(DAY + timedelta(days=1)) == ["2", "3", "4"]
    assert columns(machine, "day", "started_at", "ended_at") == [
        [DAY, times[0], times[1]],
        [DAY + timedelta(days=1), times[2], times[4]],
    ]
    assert len({row["dedupe_key"] for row in machine.rows("windows")}) == 2
