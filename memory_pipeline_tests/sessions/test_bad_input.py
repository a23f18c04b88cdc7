"""Every sort of bad input beside good sessions, in one run: what cannot be read is named with file, line and reason, in
`memory status` and in the UI; everything else is read; and what was read of a file before it went bad is kept.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import upath  # Dagster imports it when it needs it, which nobody may do from root's Python

from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.sessions import judge_windows
from memory_pipeline.harnesses import records, sqlite
from memory_pipeline.redaction.redactor import find_secrets
from memory_pipeline.text.languages.identify import language_of_speaker
from memory_pipeline_tests.conftest import conversation, user, utc, write_session
from memory_pipeline_tests.harnesses.test_opencode import Talk
from memory_pipeline_tests.harnesses.test_opencode import database as opencode_with
from memory_pipeline_tests.loaded import read_sessions
from memory_pipeline_tests.sessions.machine import Machine

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")
MEGABYTE = 1 << 20
INCOMPLETE = "The last line is incomplete; it may still be being written."
NOT_JSON = "The line, or its beginning, is not valid JSON."


@pytest.fixture
def machine(
    open_tmp: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance, request: pytest.FixtureRequest
) -> Machine:
    """Of somebody who may not read everything, as root may."""
    upath.UPath  # noqa: B018 - and this is loaded when it is first asked for
    find_secrets("a password")  # so are the detectors,
    language_of_speaker(["Wir schreiben das so, weil es kürzer ist."])  # and the model of languages
    request.getfixturevalue("as_nobody")
    return Machine(open_tmp, monkeypatch, instance)


# --- records: a good session of ten messages with one bad line in it, its third ---


NUMBERS = count()
"""Of ids: a message with the id and the time of another, or without an id with its words, is taken for it."""


def said(text: str, **fields: Any) -> dict[str, Any]:
    """A prompt between the second and the third message of the session, unless the fields say otherwise."""
    message = {"role": "user", "content": text, "timestamp": round(utc("2025-03-05T09:01:30").timestamp() * 1000)}
    return {
        "type": "message",
        "id": f"x{next(NUMBERS)}",
        "timestamp": "2025-03-05T09:01:30.000Z",
        "message": message,
    } | fields


def line(text: str, **fields: Any) -> bytes:
    return json.dumps(said(text, **fields)).encode()


WRONG_TIMES = ["9999-99-99T00:00:00Z", "0001-01-01T00:00:00Z", "+275760-09-13", 1e308, -1, True, [], {}]

# the line (None: it is the last one, and not ended), the problem that is told of it, the texts that are read of it
RECORDS: dict[str, tuple[bytes, str | None, list[str]]] = {
    "not-utf-8": (
        line("caf%").replace(b"%", b"\xe9"),
        "The line holds bytes that are not UTF-8; they were replaced.",
        ["caf\ufffd"],
    ),
    "nul-bytes": (line("a%b").replace(b"%", b"\x00"), "The line holds NUL bytes; they were left out.", ["ab"]),
    "only-nul-bytes": (bytes(5000), "The line holds NUL bytes; they were left out.", []),
    "surrogates": (line("a%b").replace(b"%", rb"\ud800"), None, ["ab"]),
    "ten-megabytes": (line("x", more="y" * 10 * MEGABYTE), None, ["x"]),
    "too-long": (line("x" * 13 * MEGABYTE), "The line is longer than 12 MB; it was left out.", []),
    "broken": (b'{"type":"message","id":"x","message":{"role":"user", broken', NOT_JSON, []),
    "prose": (b"a line that somebody wrote with an editor", NOT_JSON, []),
    "number": (b"42", "The line holds a JSON value that is not an object.", []),
    "list": (b'[{"type":"message"}]', "The line holds a JSON value that is not an object.", []),
    "glued": (line("one") + line("two", id="y"), None, ["one", "two"]),
    "stub-glued": (line("lost")[:60] + line("saved"), NOT_JSON, ["saved"]),
    "deep": (b'{"type":"message","id":"x","more":' + b"[" * 100_000 + b"]" * 100_000 + b"}", NOT_JSON, []),
    "deep-objects": (b'{"type":' * 100_000 + b"1" + b"}" * 100_000, NOT_JSON, []),
    "deep-and-open": (b'{"type":"message","message":{"content":' + b'[{"a":' * 100_000, NOT_JSON, []),
    "no-ids": (line("x", id=None), None, ["x"]),
    "strange-ids": (line("y", id={"a": [1]}, parentId=7), None, ["y"]),
    "its-own-parent": (line("x", id="x", parentId="x"), None, ["x"]),
    **{
        f"time-{number}": (
            line("x", timestamp=time, message={"role": "user", "content": "x", "timestamp": time}),
            None,
            ["x"],
        )
        for number, time in enumerate(WRONG_TIMES)
    },
}


def write_with(machine: Machine, name: str, bad: bytes) -> Path:
    path = machine.write(f"{name}.jsonl", *conversation(NINE, topic=name))
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:3], bad, *lines[3:]]) + b"\n")
    return path


# --- whole files ---


def loop_of_links(path: Path) -> None:
    path.symlink_to(path)


def no_permission(path: Path) -> None:
    write_session(path, *conversation(NINE))
    path.chmod(0o000)


def no_permission_of_its_folder(path: Path) -> None:
    path.mkdir()
    write_session(path / "inside.jsonl", *conversation(NINE))
    path.chmod(0o000)


def of(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


HEADER = b'{"type":"session","version":3,"id":"x","timestamp":"2025-03-05T09:00:00Z","cwd":"/"}\n'
NO_PERMISSION = "The file cannot be read: permission denied."
FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty.jsonl": (of(b""), "The file is empty."),
    "prose.json": (of(b"# Notes\n"), "It is not JSON."),
    "binary.jsonl": (of(bytes(range(256)) * 20), "It is not JSON."),
    "nul.jsonl": (of(bytes(10_000)), "It is not JSON."),
    "deep-lists.json": (of(b"[" * 100_000 + b"]" * 100_000), "It is not JSON."),
    "deep-objects.json": (of(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "It is not JSON."),
    "of-another-program.json": (of(b'{"a": 1}'), "It is JSON, but not a session of a known coding agent."),
    "header-only.jsonl": (of(HEADER), "It is a pi file, but has no messages."),
    "pipe.jsonl": (os.mkfifo, "It is a pipe, a socket or a device, not a file."),
    "device.jsonl": (lambda p: p.symlink_to("/dev/zero"), "It is a pipe, a socket or a device, not a file."),
    "loop.jsonl": (loop_of_links, "The file cannot be read: too many levels of symbolic links."),
    "closed.jsonl": (no_permission, NO_PERMISSION),
    "closed-folder": (
        no_permission_of_its_folder,
        "The folder cannot be listed: permission denied. Allow reading it, then run again.",
    ),
}


def test_what_is_bad_is_told_and_nothing_else_is_lost(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 12 * MEGABYTE)
    for name, (bad, _, _) in RECORDS.items():
        write_with(machine, name, bad)
    unended = write_with(machine, "cut-off", b"{}")
    unended.write_bytes(unended.read_bytes()[:-20])
    for name, (make, _) in FILES.items():
        make(machine.sessions / name)
    strange = Path(os.fsdecode(os.fsencode(machine.sessions) + b"/\xff.jsonl"))
    write_session(strange, *conversation(NINE), session_id="strange")
    (machine.sessions / "up").symlink_to(machine.sessions)
    cycle = machine.write_lines(
        "cycle.jsonl",
        {"type": "session", "version": 3, "id": "cycle", "timestamp": "2025-03-05T09:00:00Z", "cwd": "/"},
        *(said(f"turn {n}", id=f"c{n}", parentId=f"c{(n + 1) % 3}") for n in range(3)),
    )
    left_out = machine.write("left-out.jsonl", user(NINE, "DO NOT INDEX"), *conversation(NINE, topic="secrets"))
    good = machine.write("good.jsonl", *conversation(NINE, topic="good"))

    metadata = materialize()

    told = machine.status(capsys)
    assert told["files_not_read"] == {
        **{str(machine.sessions / name): reason for name, (_, reason) in FILES.items()},
        str(machine.sessions / "\\udcff.jsonl"): "The file's name is not UTF-8; rename it to have it read.",
    }
    expected = [f"{machine.sessions / name}.jsonl:4: {why}" for name, (_, why, _) in RECORDS.items() if why]
    assert sorted(told["records_not_read"]) == sorted([*expected, f"{unended}:12: {INCOMPLETE}"])
    assert told["sessions_left_out"] == {str(left_out): "line 2 says DO NOT INDEX"}
    assert told["session_files"] == {"pi": len(RECORDS) + 4}

    stored: dict[str, list[str]] = {}
    for row in machine.rows("messages"):
        stored.setdefault(row["session_id"], []).append(row["text"])
    assert stored.pop("good") == texts_of("good")
    assert stored.pop("cut-off") == texts_of("cut-off")[:-1]
    assert sorted(stored.pop("cycle")) == ["turn 0", "turn 1", "turn 2"]
    assert stored == {name: [*texts_of(name)[:2], *read, *texts_of(name)[2:]] for name, (_, _, read) in RECORDS.items()}
    assert judge_windows(machine.lake, DAY).passed

    # and in the UI: of the files of this day, and of all
    assert metadata["dagster/row_count"] == len(RECORDS) + 3
    assert (metadata["files_not_read"], metadata["all_files_not_read"]) == (0, len(FILES) + 1)
    assert (metadata["records_not_read"], metadata["all_records_not_read"]) == (len(expected) + 1,) * 2
    assert (metadata["left_out"], metadata["all_left_out"]) == (1, 1)
    not_read, all_not_read = (metadata[name].replace("\\_", "_") for name in ("not_read", "all_not_read"))
    assert f"| {left_out} | line 2 says DO NOT INDEX |" in not_read
    assert f"| {unended}:12 | {INCOMPLETE} |" in not_read
    assert f"| {machine.sessions / 'closed.jsonl'} | {NO_PERMISSION} |" in all_not_read
    assert metadata["all_not_read"].endswith(f"and {len(FILES) + 1 + len(expected) + 2 - 20} more")
    assert good.exists() and cycle.exists()


def texts_of(topic: str) -> list[str]:
    return [entry.fields["message"]["content"][0]["text"] for entry in conversation(NINE, topic=topic)]


def materialize() -> dict[str, Any]:
    """A run of the day in Dagster; what the UI then shows of `sessions`."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [read_sessions], instance=instance, partition_key=f"{DAY}", resources={"workspace": WorkspaceResource()}
        )
        (found,) = (
            event.step_materialization_data.materialization.metadata
            for event in result.get_asset_materialization_events()
            if event.asset_key == dg.AssetKey("sessions")
        )
    return {name: value.value for name, value in found.items()}


# --- files that were good ---


def overwrite(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def remove_and(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def link_to_nothing(path: Path) -> None:
    path.symlink_to("/nowhere")


# how a good file goes bad, and what is told of it; None: all that is known of it was read, which is nothing to tell
GONE_BAD: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "empty": (overwrite(b""), "The file is empty."),
    "zeroed": (overwrite(bytes(4096)), "It is not JSON."),
    "binary": (overwrite(bytes(range(256))), "It is not JSON."),
    "another-program": (overwrite(b'{"a": 1}'), "It is JSON, but not a session of a known coding agent."),
    "nobody-speaks": (overwrite(HEADER), "It is a pi file, but has no messages."),
    "closed": (lambda path: path.chmod(0o000), None),
    "closed-and-grown": (remove_and(no_permission), NO_PERMISSION),
    "pipe": (remove_and(os.mkfifo), "It is a pipe, a socket or a device, not a file."),
    "loop": (remove_and(loop_of_links), "The file cannot be read: too many levels of symbolic links."),
    "link-to-nothing": (remove_and(link_to_nothing), None),
    "directory": (remove_and(Path.mkdir), None),
    "gone": (Path.unlink, None),
}


def test_what_was_read_of_a_file_before_it_went_bad_is_kept(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {name: machine.write(f"{name}.jsonl", *conversation(NINE, topic=name)) for name in GONE_BAD}
    machine.run(DAY)
    before = machine.tables()
    for name, (spoil, _) in GONE_BAD.items():
        spoil(paths[name])
    assert machine.due() == []
    told = machine.status(capsys)
    assert told["files_not_read"] == {str(paths[name]): reason for name, (_, reason) in GONE_BAD.items() if reason}
    assert told["days_with_sessions"] == 1

    machine.write("new.jsonl", *conversation(NINE, topic="new"))  # the day is made anew
    machine.run()
    after = machine.tables()
    assert {name: [row for row in rows if row["session_id"] != "new"] for name, rows in after.items()} == before
    assert materialize()["files_not_read"] == len([reason for _, reason in GONE_BAD.values() if reason])


# --- databases: OpenCode keeps its sessions in SQLite ---

IN_DATABASES = date(2026, 5, 1)
LOCKED = "The database is locked by another program; it is tried again."


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.01)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While another program writes into the database."""
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        yield
        writer.execute("ROLLBACK")


def talk(name: str, turns: int = 5) -> Talk:
    made = Talk(f"ses_{name}")
    for number in range(turns):
        made.user(f"{name} asks {number}").assistant(f"{name} is answered {number}")
    return made


def database(machine: Machine, name: str) -> Path:
    return opencode_with(machine.sessions / name, talk(name), talk(f"{name}_too"))


def without_pages_of(path: Path, letter: bytes) -> None:
    """The pages that hold nothing but the letter, the middle of a long text, are lost."""
    raw = bytearray(path.read_bytes())
    for start in range(0, len(raw), 4096):
        if raw[start : start + 4096].count(letter) > 4000:
            raw[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(raw))


def test_databases_that_cannot_be_read_are_told_and_the_others_are_read(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    database(machine, "good")
    zeroed, closed, in_use = (database(machine, name) for name in ("zeroed", "closed", "locked"))
    zeroed.write_bytes(bytes(8192))
    closed.chmod(0o000)
    damaged = opencode_with(machine.sessions / "damaged", talk("whole"), talk("torn").user("z" * 9000).assistant("end"))
    without_pages_of(damaged, b"z")
    with locked(in_use):
        machine.run(IN_DATABASES)
        told = machine.status(capsys)
    assert told["files_not_read"] == {
        f"{zeroed}#*": "It is not an SQLite database.",
        f"{closed}#*": NO_PERMISSION,
        f"{in_use}#*": LOCKED,
    }
    assert told["records_not_read"]
    assert all(line.startswith(f"{damaged}#ses_torn:") for line in told["records_not_read"])
    assert sorted(machine.texts()) == sorted(
        [
            *(text for name in ("good", "good_too", "whole", "torn") for text in texts_in(talk(name))),
            "end",
        ]
    )

    assert machine.due() == [IN_DATABASES]  # it is no longer locked
    machine.run()
    assert not {f"{in_use}#*"} & machine.status(capsys)["files_not_read"].keys()
    assert set(texts_in(talk("locked"))) <= set(machine.texts())


def texts_in(talk: Talk) -> list[str]:
    return [part["text"] for _, parts in talk.messages for part in parts]


def test_what_was_read_of_a_database_before_it_went_bad_is_kept(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {name: database(machine, name) for name in ("zeroed", "cut", "closed", "gone", "locked")}
    machine.run()
    before = machine.tables()
    paths["zeroed"].write_bytes(bytes(8192))
    paths["cut"].write_bytes(paths["cut"].read_bytes()[:5000])
    paths["closed"].chmod(0o000)
    os.utime(paths["closed"])
    paths["gone"].unlink()
    machine.write("new.jsonl", *conversation("2026-05-01T15:00", topic="new"))
    with locked(paths["locked"]):
        machine.run()
        told = machine.status(capsys)["files_not_read"]
    after = machine.tables()
    assert {name: [row for row in rows if row["session_id"] != "new"] for name, rows in after.items()} == before
    assert {f"{paths['zeroed']}#*", f"{paths['closed']}#*"} <= told.keys()
    assert not [path for path in told if path.startswith(f"{paths['gone']}")]


def test_a_database_that_may_be_read_again_is(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """The right changes neither its size nor its time, and the sensor is one process for weeks."""
    path = database(machine, "closed")
    path.chmod(0o000)
    assert machine.due() == []
    path.chmod(0o600)
    assert machine.due() == [IN_DATABASES]
    assert machine.status(capsys)["files_not_read"] == {}


def test_a_part_of_opencode_with_a_name_that_is_not_utf_8_costs_only_itself(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    talk("good", 2).into_folders(machine.sessions)
    parts = machine.sessions / "storage/part/msg_ses_good_1"
    Path(os.fsdecode(os.fsencode(parts) + b"/prt_\xff.json")).write_bytes(b"{")
    machine.write("other.jsonl", *conversation("2026-05-01T15:00", topic="other", users=1))
    machine.run()
    assert sorted(machine.texts()) == sorted([*texts_in(talk("good", 2)), *texts_of("other")[:2]])
    (told,) = machine.status(capsys)["records_not_read"]
    assert told.startswith(f"{machine.sessions}/storage/session/p/ses_good.json:") and "prt_" in told
