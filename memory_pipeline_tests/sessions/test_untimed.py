"""Messages whose time nobody recorded are marked; their place in the session is told instead."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.harnesses.model import ParsedSession, source_of
from memory_pipeline.harnesses.opencode.reader import OpenCode
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.conftest import conversation, utc
from memory_pipeline_tests.sessions.machine import Machine
from memory_pipeline_tests.sessions.untimed import CHANGED, untimed_sessions

pytestmark = pytest.mark.usefixtures("only_the_first_stage")

NINE, DAY = "2025-03-05T09:00", date(2025, 3, 5)


def read(path: Path) -> ParsedSession:
    claimed = OpenCode().claims(path.parent, {"storage"}) if path.is_dir() else None
    return parse(claimed[0][0] if claimed else source_of(path))


def test_no_harness_takes_another_time_for_a_messages_own(tmp_path: Path) -> None:
    sessions = {session.harness: session for session in map(read, untimed_sessions(tmp_path))}
    assert len(sessions) == 5
    for name, session in sessions.items():
        assert [m.is_timed for m in session.messages] == [False] * 12, name
        assert [m.role for m in session.messages] == ["user", "assistant"] * 6, name
    assert sessions["claude_code"].messages[0].said_at == utc(CHANGED)  # nothing in the file says when, not even a day


def without_times(path: Path, *lines: int) -> None:
    """Take the times out of these lines of a session, from 1."""
    kept = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        record = json.loads(line)
        if number in lines:
            del record["timestamp"], record["message"]["timestamp"]
        kept.append(json.dumps(record) + "\n")
    path.write_text("".join(kept), "utf-8")


def test_a_message_between_timed_ones_keeps_its_place_and_has_no_time(machine: Machine) -> None:
    path = machine.write("a.jsonl", *conversation(NINE, users=30))
    without_times(path, 4, 50)
    machine.run(DAY)
    rows = machine.rows("messages", DAY)
    told = {row["source_line"]: row["untimed"] for row in rows if row["untimed"]}
    assert told == {4: "early in session", 50: "later in session"}
    before, untimed = (next(row for row in rows if row["source_line"] == line) for line in (3, 4))
    assert before["said_at"] == untimed["said_at"]  # it only says the day and the order
    assert [row["source_line"] for row in rows] == sorted(row["source_line"] for row in rows)
    assert [window["untimed"] for window in machine.rows("windows", DAY)] == [None]


def test_what_is_kept_of_a_file_that_is_gone_stays_untimed(machine: Machine) -> None:
    path = machine.write("a.jsonl", *conversation(NINE))
    without_times(path, 4)
    machine.run(DAY)
    path.unlink()
    machine.write("b.jsonl", *conversation("2025-03-05T15:00", topic="invoices"))
    machine.run(DAY)
    assert [row["source_line"] for row in machine.rows("messages", DAY) if row["untimed"]] == [4]
