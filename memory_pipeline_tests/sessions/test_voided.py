"""Turns that the user undid are stored and marked, and nothing is learnt from them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions import reading
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.conftest import Entry, assistant, conversation, user, utc
from memory_pipeline_tests.sessions.machine import Machine

MONDAY, TUESDAY = date(2025, 3, 3), date(2025, 3, 4)
NINE = utc("2025-03-03T09:00")
KEPT = [
    *conversation(NINE, users=5, topic="parcels"),
    user(NINE + timedelta(minutes=20), "From now on we always use uv instead of pip.", "uv"),
    assistant(NINE + timedelta(minutes=21), "The root cause was a stale lock file that nobody removed.", "lock"),
]
TAKEN_BACK = [
    user(NINE + timedelta(minutes=30), "Never deploy on a Friday, because nobody is there to watch it.", "friday"),
    assistant(NINE + timedelta(minutes=31), "Shall I write that into the release guide?", "guide"),
]


def write(machine: Machine, *after: Entry) -> Path:
    """A session in which what comes `after` was said instead of what is taken back."""
    path = machine.write("s.jsonl", *KEPT, *TAKEN_BACK, *after)
    if after:
        records = [json.loads(line) for line in path.read_text().splitlines()]
        first = next(record for record in records if record.get("id") == after[0].id)
        first["parentId"] = "lock"
        machine.write_lines("s.jsonl", *records)
    return path


def instead(at: str) -> list[Entry]:
    return [user(at, "Deploy whenever you like.", "instead"), assistant(at, "I will.", "will")]


def learnt(machine: Machine) -> str:
    """All that was made of the session's words."""
    derived = [machine.rows(name) for name in ("segments", "observations", "reflections", "friction_clusters")]
    logs = [path.read_text() for path in (machine.settings.workspace / "memory").glob("*.md")]
    return f"{derived}{logs}"


def test_a_turn_that_was_taken_back_is_stored_and_nothing_is_made_of_it(machine: Machine) -> None:
    write(machine, *instead("2025-03-03T10:00"))
    machine.run()
    (window,) = machine.rows("windows")
    messages = machine.rows("messages")
    standing = [*KEPT, *instead("2025-03-03T10:00")]
    assert [m["text"] for m in messages if m["voided"]] == [text_of(entry) for entry in TAKEN_BACK]
    assert [m["text"] for m in messages if not m["voided"]] == [text_of(entry) for entry in standing]
    assert (window["messages"], window["user_messages"]) == (16, 7)
    assert window["tokens_said"] == sum(estimate(text_of(entry)) for entry in standing)
    assert window["tokens"] == window["tokens_said"] + sum(estimate(text_of(entry)) for entry in TAKEN_BACK)
    assert (window["current_task"], window["suggested_response"]) == (
        "From now on we always use uv instead of pip.",
        "Session completed normally.",
    )
    assert machine.rows("sessions")[0]["user_messages"] == 7
    assert "uv instead of pip" in learnt(machine)
    assert "Friday" not in learnt(machine) and "release guide" not in learnt(machine)


def test_turns_that_were_taken_back_do_not_make_a_window_long_enough_to_be_observed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MIN_USER_MESSAGES", "8")
    write(machine, *instead("2025-03-03T10:00"))
    machine.run()
    assert [row["reason"] for row in machine.rows("windows")] == ["its session has fewer than 8 user messages"]


def test_a_rewind_of_today_takes_back_what_was_learnt_yesterday(machine: Machine) -> None:
    write(machine)
    machine.run()
    assert "Friday" in learnt(machine)
    write(machine, *instead("2025-03-04T10:00"))
    assert machine.due() == [MONDAY, TUESDAY]
    machine.run()
    assert [m["text"] for m in machine.rows("messages", MONDAY) if m["voided"]] == [text_of(e) for e in TAKEN_BACK]
    assert [m["voided"] for m in machine.rows("messages", TUESDAY)] == [False, False]
    assert "Friday" not in learnt(machine) and "uv instead of pip" in learnt(machine)
    assert machine.tables() == machine.made_anew()


def test_a_branch_that_is_taken_up_again_counts_again(machine: Machine) -> None:
    """In pi one may go back to a branch that was left; the other one is then the one that was left."""
    write(machine, *instead("2025-03-03T10:00"))
    machine.run()
    back: dict[str, Any] = {"type": "message", "id": "back", "parentId": "guide", "timestamp": "2025-03-03T11:00:00Z"}
    with (machine.sessions / "s.jsonl").open("a") as file:
        file.write(json.dumps(back | {"message": {"role": "user", "content": "Yes, write it."}}) + "\n")
    machine.run()
    assert [m["text"] for m in machine.rows("messages") if m["voided"]] == ["Deploy whenever you like.", "I will."]
    assert "Friday" in learnt(machine)
    assert machine.tables() == machine.made_anew()


def text_of(entry: Entry) -> str:
    text: str = entry.fields["message"]["content"][0]["text"]
    return text


def test_a_day_of_many_sessions_with_turns_that_were_taken_back_reads_each_a_few_times(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than are kept in memory."""
    reads: Counter[str] = Counter()

    class Counting(reading.Reading):
        def read(self) -> ParsedSession:
            reads[self.transcript.source.path] += 1
            return super().read()

    for number in range(150):
        path = machine.write("s.jsonl", *KEPT[:2], *TAKEN_BACK, *instead("2025-03-03T10:00"), session_id=f"s{number}")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        records[5]["parentId"] = records[2]["id"]
        path.unlink()
        for record in records[1:]:
            record["id"], record["parentId"] = f"{record['id']}-{number}", f"{record['parentId']}-{number}"
        machine.write_lines(f"s{number}.jsonl", *records)
    monkeypatch.setattr(reading, "Reading", Counting)
    machine.run(MONDAY)
    assert len(machine.rows("messages")) == 150 * 6
    assert sum(row["voided"] for row in machine.rows("messages")) == 150 * 2
    assert len(reads) == 150 and max(reads.values()) <= 4


@pytest.mark.parametrize(("session", "fork"), [("a", "b"), ("b", "a")])
def test_a_turn_that_goes_on_in_a_fork_stands_and_is_there_once(machine: Machine, session: str, fork: str) -> None:
    path = write(machine, *instead("2025-03-03T10:00"))
    path.rename(machine.sessions / f"{session}.jsonl")
    machine.write(f"{fork}.jsonl", *KEPT, *TAKEN_BACK, user("2025-03-03T11:00", "And write it down."))
    machine.run()
    messages = machine.rows("messages")
    found = [(m["text"], m["voided"]) for m in messages if m["text"] in map(text_of, TAKEN_BACK)]
    assert sorted(found) == sorted((text_of(entry), False) for entry in TAKEN_BACK)
    assert len(messages) == len({m["message_id"] for m in messages}) == len(KEPT) + len(TAKEN_BACK) + 3
