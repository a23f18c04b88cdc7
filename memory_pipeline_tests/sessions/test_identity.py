"""One message in several files is one row: forks, clones, resumed and exported copies, lines written twice.

`Machine.run` asserts after each run that every message lies in exactly one window.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline_tests.conftest import conversation, user, utc
from memory_pipeline_tests.sessions.machine import Machine

pytestmark = pytest.mark.usefixtures("only_the_first_stage")

MONDAY, TUESDAY, WEDNESDAY = (date(2025, 3, 3) + timedelta(days=number) for number in range(3))
TOLD = conversation("2025-03-03T23:56", topic="parcels")  # two turns on Monday, three on Tuesday
MORE = conversation("2025-03-04T09:00", topic="invoices")


def owners(machine: Machine, day: date) -> dict[str, int]:
    """How many messages of the day each session has."""
    return {row["session_id"]: row["messages"] for row in machine.rows("windows", day)}


# --- pi ---


def test_a_fork_of_pi_over_two_days_has_only_what_was_said_in_it(machine: Machine) -> None:
    machine.write("1-parent.jsonl", *TOLD)
    machine.write("2-fork.jsonl", *TOLD[:6], *MORE)
    machine.run()
    assert owners(machine, MONDAY) == {"1-parent": 4}
    assert owners(machine, TUESDAY) == {"1-parent": 6, "2-fork": 10}


def test_a_clone_of_pi_adds_nothing_until_something_is_said_in_it(machine: Machine) -> None:
    machine.write("1-parent.jsonl", *TOLD)
    machine.run()
    machine.write("2-clone.jsonl", *TOLD)
    machine.run()
    assert owners(machine, MONDAY) | owners(machine, TUESDAY) == {"1-parent": 6}
    machine.write("2-clone.jsonl", *TOLD, user("2025-03-05T09:00", "in the clone"))
    assert machine.due() == [WEDNESDAY]
    machine.run()
    assert owners(machine, WEDNESDAY) == {"2-clone": 1}
    assert len(machine.texts()) == len(TOLD) + 1
    assert machine.tables() == machine.made_anew()


def test_a_fork_whose_parent_arrives_late_gives_back_what_it_shares(machine: Machine) -> None:
    path = machine.write("2-fork.jsonl", *TOLD, *MORE)
    header, *entries = path.read_text().splitlines()
    made = json.loads(header) | {"timestamp": "2025-03-04T23:00:00.000Z"}  # when it was forked
    path.write_text("\n".join([json.dumps(made), *entries]) + "\n")
    machine.run()
    assert owners(machine, TUESDAY) == {"2-fork": 16}
    machine.write("1-parent.jsonl", *TOLD)
    assert machine.due() == [MONDAY, TUESDAY]
    machine.run()
    assert owners(machine, TUESDAY) == {"1-parent": 6, "2-fork": 10}
    assert machine.tables() == machine.made_anew()


def test_an_export_with_a_later_header_adds_nothing(machine: Machine) -> None:
    """Its header is younger than all that it holds, and it leaves out the branches that were left."""
    path = machine.write("session.jsonl", *TOLD)
    machine.run()
    before = machine.tables()
    header, *entries = path.read_text().splitlines()
    later = json.loads(header) | {"timestamp": "2025-03-07T09:00:00.000Z", "id": "another-id"}
    (machine.sessions / "z-export.jsonl").write_text("\n".join([json.dumps(later), *entries[:8]]) + "\n")
    machine.run()
    assert machine.tables() == before
    assert machine.due() == []


@pytest.mark.parametrize("glue", ["\n", ""], ids=["on lines of their own", "glued to the first"])
def test_lines_that_were_written_twice_count_once(glue: str, machine: Machine) -> None:
    path = machine.write("session.jsonl", *TOLD)
    machine.run()
    before = machine.texts()
    path.write_text("".join(f"{line}{glue}{line}\n" for line in path.read_text().splitlines()))
    machine.run()
    assert machine.texts() == before
    assert machine.tables() == machine.made_anew()


# --- Claude Code ---


def claude(session: str, number: int, at: datetime, text: str) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": session,
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "cwd": "/src/parcels",
        "message": {"role": "user", "content": text},
    }


def claude_turns(session: str, turns: int) -> list[dict[str, Any]]:
    first = utc("2025-03-03T23:57")
    return [claude(session, n, first + timedelta(minutes=n), f"turn {n}") for n in range(turns)]


def test_a_resumed_copy_of_claude_code_under_another_session_id_adds_only_what_is_new(machine: Machine) -> None:
    """Older versions copied the history into a new file: another `sessionId` in every record, the old `uuid`."""
    machine.write_lines("p/1-old.jsonl", *claude_turns("1-old", 6))
    machine.run()
    machine.write_lines("p/2-new.jsonl", *claude_turns("2-new", 9))
    machine.run()
    assert owners(machine, MONDAY) == {"1-old": 3}
    assert owners(machine, TUESDAY) == {"1-old": 3, "2-new": 3}
    assert machine.tables() == machine.made_anew()


def test_a_resumed_copy_that_outlives_its_original_keeps_every_message_once(machine: Machine) -> None:
    """Claude Code deletes its files after 30 days."""
    original = machine.write_lines("p/1-old.jsonl", *claude_turns("1-old", 6))
    machine.write_lines("p/2-new.jsonl", *claude_turns("2-new", 9))
    machine.run()
    before = machine.tables()
    original.unlink()
    assert machine.due() == []
    machine.write("other.jsonl", *MORE)  # the day is built anew
    machine.run()
    assert [row for row in machine.tables()["messages"] if row["session_id"] != "other"] == before["messages"]


# --- Codex, whose forks repeat what was said under new times ---


def codex(at: datetime, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at.isoformat().replace("+00:00", "Z"), "type": kind, "payload": payload}


def prompt(at: datetime, text: str) -> dict[str, Any]:
    return codex(at, "event_msg", type="user_message", message=text)


PARENT_AT, FORKED_AT = utc("2025-03-03T10:00"), utc("2025-03-04T10:00")


def parent_records(turns: int = 5) -> list[dict[str, Any]]:
    meta = codex(PARENT_AT, "session_meta", id="parent", cwd="/src/parcels")
    return [meta, *(prompt(PARENT_AT + timedelta(minutes=n), f"parent {n}") for n in range(1, turns + 1))]


def child_records(name: str = "child") -> list[dict[str, Any]]:
    """A copy of the parent, written at once, and what was said then, until the day after."""
    copied = [record | {"timestamp": "2025-03-04T10:00:00.010Z"} for record in parent_records()]
    own = [prompt(FORKED_AT + timedelta(hours=5 * n), f"{name} {n}") for n in range(1, 5)]
    return [codex(FORKED_AT, "session_meta", id=name, cwd="/src/parcels"), *copied, *own]


PARENT, CHILD = "2025/03/03/rollout-parent.jsonl", "2025/03/04/rollout-child.jsonl"
PARENT_TEXTS, CHILD_TEXTS = [f"parent {n}" for n in range(1, 6)], [f"child {n}" for n in range(1, 5)]


def test_without_its_parent_a_fork_of_codex_has_all_of_it(machine: Machine) -> None:
    machine.write_lines(CHILD, *child_records())
    machine.run()
    assert sorted(machine.texts(TUESDAY)) == sorted([*PARENT_TEXTS, *CHILD_TEXTS[:2]])
    assert machine.texts(WEDNESDAY) == CHILD_TEXTS[2:]


def test_a_parent_that_arrives_late_takes_over_what_is_its_own(machine: Machine) -> None:
    machine.write_lines(CHILD, *child_records())
    machine.run()
    wednesday = machine.rows("messages", WEDNESDAY)
    machine.write_lines(PARENT, *parent_records())
    assert machine.due() == [MONDAY, TUESDAY]  # on the last day the fork repeats nothing
    machine.run()
    assert (machine.texts(MONDAY), machine.texts(TUESDAY)) == (PARENT_TEXTS, CHILD_TEXTS[:2])
    assert machine.rows("messages", WEDNESDAY) == wednesday
    assert machine.tables() == machine.made_anew()


def go_bad(path: Path) -> None:
    path.write_bytes(b"")


def make_private(path: Path) -> None:
    """Nothing of the parent may be stored, so nothing of it may come in through its fork."""
    record = prompt(PARENT_AT + timedelta(minutes=9), "DO NOT INDEX")
    path.write_text("".join(f"{json.dumps(r)}\n" for r in [*parent_records(), record]))


@pytest.mark.parametrize(
    ("change", "left"),
    [(Path.unlink, PARENT_TEXTS), (go_bad, PARENT_TEXTS), (make_private, [])],
    ids=["vanished", "gone bad", "not to be stored"],
)
def test_what_becomes_of_a_parent_does_not_bring_its_words_back_with_the_fork(
    change: Any, left: list[str], machine: Machine
) -> None:
    path = machine.write_lines(PARENT, *parent_records())
    machine.write_lines(CHILD, *child_records())
    machine.run()
    change(path)
    machine.run()
    machine.write("other.jsonl", *MORE)  # the fork's day is built anew
    machine.run()
    assert machine.texts(MONDAY) == left
    assert [text for text in machine.texts(TUESDAY) if "part" not in text] == CHILD_TEXTS[:2]


def test_two_forks_of_one_parent_and_the_fork_of_a_fork(machine: Machine) -> None:
    machine.write_lines(CHILD, *child_records())
    machine.write_lines("2025/03/04/rollout-twin.jsonl", *child_records("twin"))
    copied = [record | {"timestamp": "2025-03-05T12:00:00.010Z"} for record in child_records()]
    at = utc("2025-03-05T12:00")
    grandchild = [codex(at, "session_meta", id="grandchild", cwd="/"), *copied, prompt(at + timedelta(hours=1), "last")]
    machine.write_lines("2025/03/05/rollout-grandchild.jsonl", *grandchild)
    machine.write_lines(PARENT, *parent_records())
    machine.run()
    expected = [*PARENT_TEXTS, *CHILD_TEXTS, *(f"twin {n}" for n in range(1, 5)), "last"]
    assert sorted(machine.texts()) == sorted(expected)
    assert machine.tables() == machine.made_anew()
