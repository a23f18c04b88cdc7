"""Threads of Codex that lie in several files, because they were resumed or reverted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.cli.status import status
from memory_pipeline.harnesses.codex import reader
from memory_pipeline.harnesses.model import Source
from memory_pipeline.lake.rows import FilePartRow, FileRow
from memory_pipeline.planning import Stages
from memory_pipeline.recall.origin import origin
from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.forgotten import MESSAGE, Forgotten, id_digest
from memory_pipeline.sessions import catalogue
from memory_pipeline.sessions.file_rows import new_row
from memory_pipeline.sessions.forks import withdrawn
from memory_pipeline.sessions.reading import Readings, parse_file
from memory_pipeline.settings.marks import SALT_BYTES
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.sessions.machine import Machine

THREAD = "01990000-0000-7000-8000-0000000000aa"
RESUMED = "01990000-0000-7000-8000-0000000000bb"
REVERTED = "01990000-0000-7000-8000-0000000000cc"
MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)
START = datetime(2026, 3, 2, 9, tzinfo=UTC)

Records = list[dict[str, Any]]


def record(ordinal: int, at: datetime, kind: str, **payload: Any) -> dict[str, Any]:
    written = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"timestamp": written, "ordinal": ordinal, "type": kind, "payload": payload}


def turns(first: int, at: datetime, *said: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """Turns of four records each: what was asked as an item and as an event, the answer, the end."""
    for number, (asked, answered) in enumerate(said):
        ordinal, time = first + 4 * number, at + timedelta(minutes=number)
        block = {"type": "input_text", "text": asked}
        yield record(ordinal, time, "response_item", type="message", role="user", content=[block])
        prompt = {"type": "UserMessage", "id": f"u{ordinal}", "content": [{"type": "text", "text": asked}]}
        yield record(ordinal + 1, time + timedelta(milliseconds=3), "event_msg", type="item_completed", item=prompt)
        block = {"type": "output_text", "text": answered}
        time += timedelta(seconds=20)
        yield record(ordinal + 2, time, "response_item", type="message", role="assistant", content=[block])
        yield record(ordinal + 3, time, "event_msg", type="task_complete", turn_id=f"t{ordinal}")


def rollout(at: datetime, *said: tuple[str, str], base: tuple[str, int] | None = None, thread: str = THREAD) -> Records:
    first = base[1] if base else 0
    history = (
        {"history_base": {"thread_id": base[0], "end_ordinal_exclusive": first, "end_byte_offset": 1}} if base else {}
    )
    meta = {"id": thread, "session_id": thread, "cwd": "/home/ada/kiln", "originator": "codex-tui", "source": "cli"}
    header = record(first, at, "session_meta", **meta, history_mode="paginated", **history)
    return [header, *turns(first + 1, at + timedelta(minutes=1), *said)]


ANSWER = (
    "I have looked at the kiln, the bricks and the papers that came with them, and I shall keep to this from here on."
)
AGAIN = ("go on", ANSWER)
BASE = rollout(START, ("lay the first row of bricks", "The first row is laid."), AGAIN, ("paint it red", "It is red."))
RED = 9
"""Number of the record in which the red paint is asked for."""
NEXT = [AGAIN, ("From now on always fire with wood, never with coal", f"Wood it is. {ANSWER}")]


def write(machine: Machine, records: Records, name: str = "") -> Path:
    """Where Codex writes it: a folder a day, the name of the thread and of the rollout."""
    day = f"{records[0]['timestamp'][:10]}".replace("-", "/")
    rollout_id = f"_{name}" if name else ""
    thread = records[0]["payload"]["id"]
    return machine.write_lines(f"{day}/rollout-{day.replace('/', '-')}T09-00-00-{thread}{rollout_id}.jsonl", *records)


def read(machine: Machine) -> list[date]:
    """Bring the first stage up to date; the days that were built."""
    sessions = Stages.from_settings(machine.settings).sessions
    sessions.look()
    return [day for day in sessions.catalogue.days() if bring_up_to_date(sessions, sessions.lake, day)]


def state(machine: Machine) -> dict[str, bool]:
    """What the user said, with whether it was voided."""
    rows = machine.rows("messages")
    ids = [row["message_id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert {row["session_id"] for row in rows} == {THREAD}
    return {f"{row['said_at']:%d %H:%M} {row['text']}": row["voided"] for row in rows if row["role"] == "user"}


@pytest.mark.parametrize("later", [timedelta(days=1), timedelta(hours=1)], ids=["the next day", "the same day"])
def test_a_resumed_thread_is_one_session(machine: Machine, later: timedelta) -> None:
    write(machine, BASE)
    write(machine, rollout(START + later, *NEXT, base=(THREAD, 13)), RESUMED)
    assert read(machine) == sorted({MONDAY, (START + later).date()})
    assert len(state(machine)) == 5 and not any(state(machine).values())
    assert len(machine.rows("messages")) == 10
    assert all(row["observed"] for row in machine.rows("windows"))  # the five prompts of both files are enough together
    assert machine.tables() == machine.made_anew()


def test_a_revert_voids_what_earlier_files_say_on_earlier_days(machine: Machine) -> None:
    write(machine, BASE)
    write(machine, rollout(START + timedelta(days=1), *NEXT, base=(THREAD, 13)), RESUMED)
    read(machine)
    assert not any(state(machine).values())
    write(machine, rollout(START + timedelta(days=1, hours=1), base=(THREAD, RED)), REVERTED)  # nothing is said yet
    assert read(machine) == [MONDAY, TUESDAY]
    alive = ["02 09:01 lay the first row of bricks", "02 09:02 go on"]
    assert [said for said, is_voided in state(machine).items() if not is_voided] == alive
    said = ("paint it blue, never red", "It is blue.")
    write(machine, rollout(START + timedelta(days=1, hours=1), said, base=(THREAD, RED)), REVERTED)
    assert read(machine) == [TUESDAY]
    alive.append("03 10:01 paint it blue, never red")
    assert [said for said, is_voided in state(machine).items() if not is_voided] == alive
    assert read(machine) == []
    assert machine.tables() == machine.made_anew()


def test_a_part_of_which_everything_was_forgotten_today_breaks_nothing(machine: Machine) -> None:
    now = datetime.now(UTC)
    path = write(machine, rollout(now - timedelta(minutes=5), AGAIN, base=(THREAD, RED)), REVERTED)
    read(machine)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    read(machine)
    assert machine.rows("messages") == []


def test_a_thread_is_counted_once_and_one_without_words_can_be_shown(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine, rollout(START, base=(THREAD, RED)), REVERTED)
    read(machine)
    assert machine.status(capsys)["session_files"] == {"codex": 1}
    status()
    write(machine, BASE)
    write(machine, rollout(START + timedelta(days=1), *NEXT, base=(THREAD, 13)), RESUMED)
    read(machine)
    assert machine.status(capsys)["session_files"] == {"codex": 1}


def test_a_file_that_moves_to_the_archive_is_the_same(machine: Machine) -> None:
    write(machine, BASE)
    path = write(machine, rollout(START + timedelta(days=1), *NEXT, base=(THREAD, 13)), RESUMED)
    read(machine)
    before = [row["message_id"] for row in machine.rows("messages")]
    (machine.sessions / "archived").mkdir()
    path.rename(machine.sessions / "archived" / path.name)
    read(machine)
    assert [row["message_id"] for row in machine.rows("messages")] == before


def part(name: str, hour: int, end: int, base: str = "", base_end: int = 0) -> FilePartRow:
    return {"name": name, "began_at": START + timedelta(hours=hour), "base": base, "base_end": base_end, "end": end}


CASES: dict[str, tuple[list[FilePartRow], dict[str, int]]] = {
    "alone": ([part("t", 0, 9)], {}),
    "resumed": ([part("t", 0, 9), part("a", 1, 20, "t", 9)], {}),
    "the base goes on being written": ([part("t", 0, 12), part("a", 1, 20, "t", 9)], {"t": 9}),
    "resumed twice": ([part("t", 0, 9), part("a", 1, 20, "t", 9), part("b", 2, 30, "a", 20)], {}),
    "resumed twice, by the name of the thread": (
        [part("t", 0, 9), part("a", 1, 20, "t", 9), part("b", 2, 30, "t", 20)],
        {},
    ),
    "reverted within the resumed part": (
        [part("t", 0, 9), part("a", 1, 20, "t", 9), part("b", 2, 30, "a", 15)],
        {"a": 15},
    ),
    "reverted behind the resumed part": (
        [part("t", 0, 9), part("a", 1, 20, "t", 9), part("b", 2, 30, "t", 5)],
        {"t": 5, "a": 0},
    ),
    "reverted, and what came of it too": (
        [part("t", 0, 9), part("a", 1, 20, "t", 5), part("b", 2, 30, "t", 7), part("c", 3, 40, "b", 12)],
        {"t": 7, "a": 0, "b": 12},
    ),
    "the base is gone": ([part("a", 1, 20, "t", 9)], {}),
    "the part between is gone": ([part("t", 0, 9), part("b", 2, 30, "a", 20)], {}),
    "a fork of another thread": ([part("f", 1, 20, "t", 9), part("a", 2, 30, "f", 15)], {"f": 15}),
    "a fork that is reverted to what it was forked from": (
        [part("f", 1, 20, "t", 9), part("a", 2, 30, "t", 5)],
        {"f": 0},
    ),
    "each names the other": ([part("a", 1, 20, "b", 9), part("b", 2, 30, "a", 15)], {"a": 15}),
}


def test_what_later_parts_took_out_of_earlier_ones() -> None:
    wrong = {}
    for case, (parts, expected) in CASES.items():
        rows: list[FileRow] = [
            {**new_row(p["name"], Source(p["name"]), ""), "harness": "codex", "session_id": "t", "part": p}
            for p in parts
        ]
        if (found := withdrawn(reversed(rows))) != expected:
            wrong[case] = found
    assert not wrong


def test_a_fork_by_reference_takes_nothing_from_its_parent(machine: Machine) -> None:
    write(machine, BASE)
    fork = rollout(START + timedelta(hours=1), *NEXT, base=(THREAD, RED), thread=RESUMED)
    write(machine, fork)
    read(machine)
    rows = machine.rows("messages")
    assert not any(row["voided"] for row in rows)
    assert {row["session_id"]: row["messages"] for row in machine.rows("windows")} == {THREAD: 6, RESUMED: 4}


def without_bases(patch: pytest.MonkeyPatch) -> None:
    """Headers name no other file."""
    header = reader.Reader._header
    patch.setattr(
        reader.Reader, "_header", lambda self, payload, at: header(self, payload | {"history_base": None}, at)
    )
    patch.setattr(reader.Reader, "part_of_session", lambda *_: None)


def read_as_at_46ebf5e(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs as that version did: a file knew of no other, and its words and their number in it were an identity."""
    with monkeypatch.context() as patch:
        without_bases(patch)
        patch.setattr(catalogue, "READER_VERSION", "10")
        patch.setattr(catalogue, "_READINGS", Readings())
        machine.run()


# of a workspace with the salt below, as 46ebf5e stored them
OLD_IDS = {
    "go on": "codex-60957d6565558d37",
    NEXT[1][0]: "codex-85b0039ce93c63e4",
    NEXT[1][1]: "codex-1701ff74d53fdac4",
}


@pytest.mark.slow
@pytest.mark.parametrize("is_moved", [True, *nightly(False)])
def test_what_an_earlier_version_stored_stays_one_message(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, is_moved: bool
) -> None:
    monkeypatch.setenv("MEMORY_MIN_USER_MESSAGES", "1")
    machine.settings.lake_dir.mkdir(parents=True)
    (machine.settings.lake_dir / "salt").write_bytes(bytes(range(SALT_BYTES)))
    write(machine, BASE)
    path = write(machine, rollout(START + timedelta(days=1), *NEXT, base=(THREAD, 13)), RESUMED)
    read_as_at_46ebf5e(machine, monkeypatch)
    old = {row["text"]: row["message_id"] for row in machine.rows("messages", TUESDAY)}
    assert {text: old[text] for text in OLD_IDS} == OLD_IDS
    assert old["go on"] in [row["message_id"] for row in machine.rows("messages", MONDAY)]
    offered = [row for row in machine.rows("proposals") if row["text"] == NEXT[1][0]]
    observed = [row for row in machine.rows("observations", TUESDAY) if row["text"] == NEXT[1][0]]
    names = [offered[0]["proposal_id"], observed[0]["observation_id"]]
    before = [origin(machine.settings, name)["said"] for name in names]
    assert all(NEXT[1][0] in [said["quote"] for said in of] for of in before)
    if is_moved:
        (machine.sessions / "archived").mkdir()
        path.rename(machine.sessions / "archived" / path.name)
    machine.run()
    assert len(state(machine)) == 5
    assert len(machine.rows("messages")) == 10
    new = {row["text"]: row["message_id"] for row in machine.rows("messages", TUESDAY)}
    assert {text: name for text, name in new.items() if name != old[text]}.keys() == set(AGAIN)
    after = [origin(machine.settings, name)["said"] for name in names]
    assert [[(said["quote"], said["message_id"]) for said in of] for of in after] == [
        [(said["quote"], said["message_id"]) for said in of] for of in before
    ]
    known = {row["message_id"] for row in machine.rows("messages")}
    for row in (*machine.rows("observations"), *machine.rows("proposals")):
        assert {span["message_id"] for span in row["evidence"]} <= known
    assert machine.due() == []


def test_what_was_forgotten_under_an_old_id_stays_forgotten(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(machine, rollout(START, *NEXT, base=(THREAD, 13)), RESUMED)
    with monkeypatch.context() as patch:
        without_bases(patch)
        old = parse_file(path).messages
    salt = b"salt"
    forgotten = Forgotten(salt, messages=frozenset({id_digest(salt, MESSAGE, old[2].message_id)}))
    new = parse_file(path, redactor=Redactor(b"", forgotten)).messages
    assert [message.text for message in new] == [*AGAIN, NEXT[1][1]]
