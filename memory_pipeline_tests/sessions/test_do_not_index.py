"""A session that says DO NOT INDEX is named and not stored, and what was made of it before goes with it."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline_tests.conftest import Entry, conversation, user, utc
from memory_pipeline_tests.harnesses.test_claude_code import record
from memory_pipeline_tests.harnesses.test_codex import FORKED, copied, line, prompt, turns
from memory_pipeline_tests.harnesses.test_opencode import Talk, database
from memory_pipeline_tests.sessions.machine import Machine

MONDAY, TUESDAY, WEDNESDAY = (date(2025, 3, 3) + timedelta(days=number) for number in range(3))
OF_POINTS = ("embeddings", "summary_embeddings", "message_embeddings")
DERIVED = ("sessions", "messages", "windows", "segments", "observations", "reflections", *OF_POINTS)
PRIVATE = "From now on we always book the parcels at the Zanzibar bank."
PUBLIC = "From now on we always use uv instead of pip for the parcels."
MARK = "Please, DO NOT INDEX what we talked about."


def day_of(day: date, rule: str, topic: str) -> list[Entry]:
    return [user(utc(f"{day}T08:00"), rule, f"{topic}-{day}"), *conversation(f"{day}T09:00", topic=f"{topic} {day:%A}")]


@pytest.fixture
def private(machine: Machine) -> list[Entry]:
    """A private session over two days beside another one, all of it made into memory."""
    entries = [*day_of(MONDAY, PRIVATE, "zanzibar"), *day_of(TUESDAY, PRIVATE, "zanzibar")]
    machine.write("private.jsonl", *entries)
    machine.write("public.jsonl", *day_of(TUESDAY, PUBLIC, "parcels"))
    machine.run()
    assert all("anzibar" in f"{machine.rows(name)}" for name in ("messages", "segments", "observations", "reflections"))
    assert "Zanzibar" in log(machine, MONDAY) and "Zanzibar" in log(machine, TUESDAY)
    assert points(machine, MONDAY) == recorded(machine, MONDAY) and machine.rows("observations", MONDAY)
    return entries


def log(machine: Machine, day: date) -> str:
    return machine.settings.daily_log(day).read_text("utf-8")


def points(machine: Machine, day: date) -> set[str]:
    """Of both collections: what was observed, and what was said."""
    found: set[str] = set()
    for base in (COLLECTION, MESSAGES):
        with open_index(machine.settings, 384, base) as index:
            found |= index.ids(day)
    return found


def recorded(machine: Machine, day: date) -> set[str]:
    """The points of that day, as the tables have them."""
    return {row["point_id"] for name in OF_POINTS for row in machine.rows(name, day)}


def test_the_mark_takes_out_all_days_of_the_session_and_all_that_was_made_of_them(
    private: list[Entry], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machine.write("private.jsonl", *private, user(utc(f"{WEDNESDAY}T09:00"), MARK))
    assert machine.due() == [MONDAY, TUESDAY, WEDNESDAY]
    machine.run()
    for name in DERIVED:
        assert "anzibar" not in f"{machine.rows(name)}", name
        assert machine.rows(name, MONDAY) == [], name
        assert {row.get("session_id", "public") for row in machine.rows(name)} <= {"public"}, name
    assert "Zanzibar" not in log(machine, MONDAY) + log(machine, TUESDAY)
    assert "uv instead of pip" in log(machine, TUESDAY)
    assert points(machine, MONDAY) == set()
    assert points(machine, TUESDAY) == recorded(machine, TUESDAY)
    assert machine.tables() == machine.made_anew()
    told = machine.status(capsys)
    line = path.read_text().splitlines().index(next(x for x in path.read_text().splitlines() if MARK in x)) + 1
    assert told["sessions_left_out"] == {str(path): f"line {line} says DO NOT INDEX"}
    assert told["days_out_of_date"] == []


def test_the_mark_reaches_what_is_kept_of_a_copy_that_vanished(private: list[Entry], machine: Machine) -> None:
    """The session was moved, and marked in its new place."""
    (machine.sessions / "private.jsonl").unlink()
    machine.write("archived/private.jsonl", *private, user(utc(f"{WEDNESDAY}T09:00"), MARK))
    machine.run()
    assert "anzibar" not in "".join(f"{machine.rows(name)}" for name in DERIVED)


def test_a_mark_that_is_taken_out_again_brings_the_session_back(private: list[Entry], machine: Machine) -> None:
    before = machine.tables()
    machine.write("private.jsonl", *private, user(utc(f"{WEDNESDAY}T09:00"), MARK))
    machine.run()
    machine.write("private.jsonl", *private)
    machine.run()
    assert machine.tables() == before


def test_a_session_that_is_marked_from_the_start_is_stored_on_no_day(machine: Machine, tmp_path: Path) -> None:
    machine.write("private.jsonl", user(utc(f"{MONDAY}T07:00"), MARK), *day_of(TUESDAY, PRIVATE, "zanzibar"))
    machine.run()
    assert all(machine.rows(name) == [] for name in DERIVED)
    stored = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"anzibar" in path.read_bytes()]


@pytest.mark.parametrize("order", [("a-new", "z-old"), ("z-new", "a-old")])
def test_the_mark_in_one_copy_reaches_an_older_copy_without_it(order: tuple[str, str], machine: Machine) -> None:
    for name in order:
        mark = [user(utc(f"{TUESDAY}T12:00"), MARK)] if "new" in name else []
        machine.write(f"{name}.jsonl", *day_of(MONDAY, PRIVATE, "zanzibar"), *mark, session_id="private")
    machine.run()
    assert all(machine.rows(name) == [] for name in DERIVED)


def test_the_mark_reaches_the_sub_agents_of_a_claude_session(machine: Machine) -> None:
    machine.write_lines("s-1.jsonl", record(1, "user", "Hello."), record(2, "user", MARK))
    helper = [record(n, "user", PRIVATE, isSidechain=True, agentId="x", uuid=f"x{n}") for n in range(3)]
    machine.write_lines("s-1/subagents/agent-x.jsonl", *helper)
    machine.write_lines("s-2.jsonl", record(1, "user", PUBLIC, sessionId="s-2", uuid="other"))
    machine.run()
    assert {row["session_id"] for row in machine.rows("files")} == {"s-1", "s-1/x", "s-2"}
    assert machine.texts() == [PUBLIC]


def test_the_mark_reaches_the_sub_agents_of_an_opencode_session(machine: Machine) -> None:
    child = Talk("ses_2", parent_id="ses_1").user(PRIVATE).assistant("Yes.")
    grandchild = Talk("ses_3", parent_id="ses_2").user(PRIVATE).assistant("No.")
    database(machine.sessions, Talk("ses_1").user(MARK), child, grandchild, Talk("ses_4").user(PUBLIC))
    machine.run()
    assert machine.texts() == [PUBLIC]


@pytest.mark.parametrize("vanishes", [False, True])
def test_a_fork_of_a_session_with_the_mark_keeps_its_own_words(vanishes: bool, machine: Machine) -> None:
    """It was forked before the mark was set, so it holds none."""
    head = line(0, "session_meta", id="parent", cwd="/")
    parent = machine.write_lines("parent.jsonl", head, *turns(PRIVATE), *prompt(9, MARK))
    head = line(0, "session_meta", id="fork", cwd="/")
    machine.write_lines("fork.jsonl", head, FORKED, *copied(*turns(PRIVATE)), *prompt(30, PUBLIC))
    assert len(machine.due()) == 1
    if vanishes:
        parent.unlink()
    machine.run(date(2026, 5, 1))
    assert machine.texts() == [PUBLIC]
