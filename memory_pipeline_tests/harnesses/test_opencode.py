"""The reader of OpenCode sessions, on small databases of the real schema and on folders of the same sessions."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Image, NotASessionError, ParsedSession, Source
from memory_pipeline.harnesses.opencode.reader import OpenCode, image_parts
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.cases import each

SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
    directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text,
    time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""
NOON = 1777636800000  # 2026-05-01T12:00:00Z
PNG = "data:image/png;base64,aGVsbG8="


class Talk:
    """One session, which can be put into a database or into folders."""

    def __init__(self, identity: str = "ses_1", **session: Any) -> None:
        self.session = {"id": identity, "directory": "/home/ada/shop", "title": "Parcels"} | session
        self.messages: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []

    def add(self, role: str, *parts: dict[str, Any], at: int | None = None, **fields: Any) -> Talk:
        number = len(self.messages) + 1
        time = NOON + (number if at is None else at) * 1000
        message = {"id": f"msg_{self.session['id']}_{number}", "role": role, "time": {"created": time}} | fields
        named = [{"id": f"prt_{self.session['id']}_{number}_{n}"} | part for n, part in enumerate(parts)]
        self.messages.append((message, named))
        return self

    def user(self, text: str, *parts: dict[str, Any], **fields: Any) -> Talk:
        return self.add("user", {"type": "text", "text": text}, *parts, **fields)

    def assistant(self, text: str, *parts: dict[str, Any], **fields: Any) -> Talk:
        start = NOON + (fields.get("at") or len(self.messages) + 1) * 1000
        said = {"type": "text", "text": text, "time": {"start": start, "end": start}}
        return self.add("assistant", said, *parts, **({"finish": "stop"} | fields))

    def into_database(self, connection: sqlite3.Connection, shift: int = 0) -> None:
        s, base = self.session, NOON + shift
        revert = json.dumps(s["revert"]) if "revert" in s else None
        row: tuple[Any, ...]
        row = (s["id"], "p", s.get("parent_id"), "slug", s["directory"], s["title"], "1.2.3", revert, base, base)
        connection.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        for message, parts in self.messages:
            data = {name: value for name, value in message.items() if name != "id"}
            times = (message["time"]["created"], message["time"]["created"] + shift)
            row = (message["id"], s["id"], *times, json.dumps(data))
            connection.execute("INSERT INTO message VALUES (?,?,?,?,?)", row)
            for part in parts:
                data = {name: value for name, value in part.items() if name != "id"}
                row = (part["id"], message["id"], s["id"], times[1], times[1], json.dumps(data))
                connection.execute("INSERT INTO part VALUES (?,?,?,?,?,?)", row)

    def into_folders(self, folder: Path) -> None:
        storage = folder / "storage"
        session = self.session | {"projectID": "p", "time": {"created": NOON, "updated": NOON}}
        write(storage / "session/p" / f"{session['id']}.json", session)
        for message, parts in self.messages:
            write(storage / "message" / session["id"] / f"{message['id']}.json", message)
            for part in parts:
                write(storage / "part" / message["id"] / f"{part['id']}.json", part)


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def tool(name: str, output: str = "done", status: str = "completed", call: str = "c-1", **state: Any) -> dict[str, Any]:
    times = {"start": NOON + 2000, "end": NOON + 2500}
    told = {"error": output} if status == "error" else {"output": output} if status == "completed" else {}
    return {"type": "tool", "tool": name, "callID": call, "state": {"status": status, "time": times} | told | state}


def database(folder: Path, *talks: Talk, name: str = "opencode.db", log: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / name)) as connection:
        if log:
            connection.execute("PRAGMA journal_mode = wal")
        connection.executescript(SCHEMA)
        for talk in talks:
            talk.into_database(connection)
        connection.commit()
    return folder / name


def sources(folder: Path) -> list[Source]:
    claimed = OpenCode().claims(folder, {path.name for path in folder.iterdir()})
    assert claimed is not None
    return claimed[0]


def read(folder: Path) -> ParsedSession:
    (source,) = sources(folder)
    return parse(source)


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    before = contents(folder)
    yield
    assert contents(folder) == before


def test_folders_and_database_say_the_same(tmp_path: Path) -> None:
    talk = Talk().user("Fix the parcel list.")
    talk.assistant(
        "I will look.",
        {"type": "reasoning", "text": "hm"},
        tool("read", input={"filePath": "/a.py"}),
        tool("bash", "no", call="c-2", input={"command": "false"}, metadata={"exit": 3}),
        tool("edit", "No such file", "error", "c-3", input={"filePath": "/b.py"}),
        tool("task", status="running", call="c-4", input={}),
        {"type": "patch", "files": ["/c.py"]},
        {"type": "novelty"},
    )
    talk.add("assistant", error={"name": "APIError", "data": {"message": "Refused."}})
    database(tmp_path / "new", talk)
    talk.into_folders(tmp_path / "old")
    new, old = read(tmp_path / "new"), read(tmp_path / "old")
    assert sorted(shape(new)) == [
        ("assistant", "I will look."),
        ("injected", "APIError: Refused."),
        ("tool", "No such file"),
        ("tool", "bash(command=false)"),
        ("tool", "done"),
        ("tool", "edit(filePath=/b.py)"),
        ("tool", "no"),
        ("tool", "read(filePath=/a.py)"),
        ("tool", "task()"),
        ("user", "Fix the parcel list."),
    ]
    assert shape(new) == shape(old)
    assert [m.message_id for m in new.messages] == [m.message_id for m in old.messages]
    assert [m.text for m in new.messages if m.is_error] == ["no", "No such file"]
    assert (new.session_id, new.name, new.cwd) == ("ses_1", "Parcels", "/home/ada/shop")
    assert (new.files_read, new.files_modified) == (("/a.py",), ("/c.py",))
    assert new.unknown_records == {"part/novelty": 1}


def test_who_speaks(tmp_path: Path) -> None:
    talk = Talk(title="New session - 2026-05-01T12:00:00.000Z").user(
        "Look at this.",
        {"type": "file", "mime": "image/png", "filename": "x.png", "url": PNG},
        {"type": "text", "text": "Called the Read tool", "synthetic": True},
        {"type": "text", "text": "Only shown", "ignored": True},
        {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///a.txt"},
        {"type": "agent", "name": "explore"},
    )
    talk.user('"two \\"words\\""').user('"one"').user('Say "this" and "that"')
    shot = {"type": "file", "mime": "image/jpeg", "url": "data:image/jpeg;base64,aGVsbG8="}
    talk.add("assistant", tool("read", "", attachments=[shot], input={}))
    database(tmp_path, talk)
    session = read(tmp_path)
    assert [(m.role, m.text) for m in session.messages if m.role != "tool"] == [
        ("user", "Look at this.\n[image: image/png, line 2, number 1]"),
        ("injected", "Called the Read tool"),
        ("injected", "Only shown"),
        ("injected", "[file: a.txt, text/plain]"),
        ("user", 'two "words"'),
        ("user", '"one"'),
        ("user", 'Say "this" and "that"'),
    ]
    assert session.name.startswith("Look at this.")
    assert [m.images for m in session.messages if m.images] == [
        (Image(2, 0, "image/png"),),
        (Image(6, 0, "image/jpeg"),),
    ]
    (source,) = sources(tmp_path)
    record = dict(OpenCode().records(source, []))[2]
    assert [part["url"] for part in image_parts(record["parts"])] == [PNG]


def test_a_sub_agents_prompts_are_injected(tmp_path: Path) -> None:
    database(tmp_path / "new", Talk(parent_id="ses_0").user("Read a.txt.").assistant("hi"))
    Talk(parentID="ses_0").user("Read a.txt.").assistant("hi").into_folders(tmp_path / "old")
    for folder in ("new", "old"):
        assert shape(read(tmp_path / folder)) == [("injected", "Read a.txt."), ("assistant", "hi")]


@each("part", [False, True])
def test_reverted_turns_are_voided(tmp_path: Path, part: bool) -> None:
    revert = {"messageID": "msg_ses_1_3"} | ({"partID": "prt_ses_1_4_1"} if part else {})
    talk = Talk(revert=revert).user("One").assistant("Uno").user("Two").assistant("Due", tool("ls", input={}))
    database(tmp_path, talk.user("Three"))
    voided = {m.text for m in read(tmp_path).messages if m.voided}
    assert voided == {"ls()", "done", "Three"} | (set() if part else {"Two", "Due"})


def test_a_fork_has_the_ids_of_its_origin(tmp_path: Path) -> None:
    def said(identity: str) -> Talk:
        return Talk(identity).user("One").assistant("Uno", tool("ls", input={})).user("Two")

    database(tmp_path, said("ses_1"), said("ses_2").user("In the fork"))
    first, fork = map(parse, sources(tmp_path))
    ids = [m.message_id for m in first.messages]
    assert [m.message_id for m in fork.messages][:-1] == ids
    assert fork.messages[-1].text == "In the fork" and fork.messages[-1].message_id not in ids
    # the same words at another time are another message
    database(tmp_path / "later", Talk("ses_3").user("One", at=50))
    assert read(tmp_path / "later").messages[0].message_id not in ids


def test_compactions(tmp_path: Path) -> None:
    talk = Talk().user("One").assistant("Uno").user("Two").assistant("Due")
    talk.add("user", {"type": "compaction", "auto": False, "tail_start_id": "msg_ses_1_3"})
    talk.assistant("## One was said", summary=True, parentID="msg_ses_1_5")
    talk.add("user", {"type": "compaction", "auto": True})
    talk.add("assistant", summary=True, parentID="msg_ses_1_7", error={"name": "APIError", "data": {}})
    talk.user("Too long").add("user", {"type": "compaction", "auto": True, "overflow": True})
    talk.assistant("## All was said", summary=True, parentID="msg_ses_1_10").user("Too long").assistant("Done")
    database(tmp_path, talk)
    session = read(tmp_path)
    texts = {m.message_id: m.text for m in session.messages}
    assert [[texts[i] for i in compaction.message_ids] for compaction in session.compactions] == [
        ["One", "Uno"],
        ["Two", "Due", "## One was said", "APIError: no message", "Too long"],
    ]
    assert shape(session)[-3:] == [("injected", "## All was said"), ("injected", "Too long"), ("assistant", "Done")]
    assert sum(m.role == "user" for m in session.messages) == 3


def test_only_folders_of_opencode_are_claimed(tmp_path: Path) -> None:
    (tmp_path / "storage/session").mkdir(parents=True)
    assert OpenCode().claims(tmp_path, ["storage"]) is None
    assert OpenCode().claims(tmp_path, ["a.jsonl", "other.db"]) is None
    talk = Talk().user("Hello")
    talk.into_folders(tmp_path)
    inner = tmp_path / "storage"
    assert sources(inner) == sources(tmp_path) != []
    assert [source.key for source in sources(tmp_path)] == [str(inner / "session/p/ses_1.json")]


def test_a_session_in_both_comes_from_the_database(tmp_path: Path) -> None:
    moved, left = Talk("ses_1").user("Hello"), Talk("ses_2").user("Left")
    moved.into_folders(tmp_path)
    left.into_folders(tmp_path)
    database(tmp_path, moved, name="opencode-beta.db")
    assert [Path(source.key).name for source in sources(tmp_path)] == ["opencode-beta.db#ses_1", "ses_2.json"]


def test_the_state_changes_with_the_session(tmp_path: Path) -> None:
    place = database(tmp_path / "new", Talk("ses_1").user("Hello"), Talk("ses_2").user("Other"))
    before, other = sources(tmp_path / "new")
    assert sources(tmp_path / "new") == [before, other]
    changes = (
        "UPDATE part SET time_updated = time_updated + 1 WHERE session_id = 'ses_1'",
        """UPDATE session SET revert = '{"messageID":"msg_ses_1_1"}' WHERE id = 'ses_1'""",
        "DELETE FROM part WHERE session_id = 'ses_1'",
    )
    for change in changes:
        with closing(sqlite3.connect(place)) as connection:
            connection.execute(change)
            connection.commit()
        os.utime(place, ns=(0, before.modified_ns + len(change)))
        after, still = sources(tmp_path / "new")
        assert after != before and still == other
        before = after
    talk = Talk().user("Hello")
    talk.into_folders(tmp_path / "old")
    (first,) = sources(tmp_path / "old")
    talk.assistant("Hi").into_folders(tmp_path / "old")
    assert sources(tmp_path / "old") != [first]


def test_an_unchanged_database_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database(tmp_path, Talk().user("Hello"))
    found = sources(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", None)
    assert sources(tmp_path) == found


@each("log", [False, True])
@each("name", ["plain", "a b?c#d%20e"])
def test_reading_leaves_no_trace(tmp_path: Path, name: str, log: bool) -> None:
    folder = tmp_path / name
    database(folder, Talk().user("Hello"), log=log)
    folder.chmod(0o500)
    with untouched(folder):
        assert shape(read(folder)) == [("user", "Hello")]
    folder.chmod(0o700)


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("UPDATE part SET data = replace(data, 'Hello', 'Written'), time_updated = time_updated + 1")
print("written", flush=True)
sys.stdin.read()
"""


def test_what_is_still_in_the_log_is_read(tmp_path: Path) -> None:
    place = database(tmp_path / "a", Talk().user("Hello"), log=True)
    command = [sys.executable, "-c", WRITER, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stdout.readline() == b"written\n"
        assert (tmp_path / "a/opencode.db-wal").stat().st_size
        with untouched(tmp_path / "a"):
            assert shape(read(tmp_path / "a")) == [("user", "Written")]
        # as after a crash, or copied without the shared memory
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        shutil.copytree(tmp_path / "a", tmp_path / "c", ignore=shutil.ignore_patterns("*-shm"))
        writer.communicate()
    for folder in ("b", "c"):
        with untouched(tmp_path / folder):
            assert shape(read(tmp_path / folder)) == [("user", "Written")]


def test_a_locked_database_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.harnesses.sqlite._BUSY_SECONDS", 0.01)
    talk = Talk().user("Hello")
    place = database(tmp_path, talk)
    talk.into_folders(tmp_path)
    with closing(sqlite3.connect(place, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        (source,) = sources(tmp_path)
        with pytest.raises(NotASessionError, match="locked by another program"):
            parse(source)
        writer.execute("ROLLBACK")
    (source,) = sources(tmp_path)
    with closing(sqlite3.connect(place, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE part SET time_updated = 1")
        assert sources(tmp_path) == [source]
        with pytest.raises(NotASessionError, match="locked by another program"):
            parse(source)
    assert shape(parse(source)) == [("user", "Hello")]


def test_what_is_no_database_of_opencode(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_bytes(b"This is not a database at all. " * 100)
    with pytest.raises(NotASessionError, match="not an SQLite database"):
        read(tmp_path)
    (tmp_path / "opencode.db").write_bytes(b"")
    assert sources(tmp_path) == []
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as connection:
        connection.execute("CREATE TABLE other (x)")
        connection.commit()
    with pytest.raises(NotASessionError, match="not one of OpenCode"):
        read(tmp_path)


def test_a_damaged_database_gives_what_it_still_has(tmp_path: Path) -> None:
    talks = [Talk(f"ses_{n}").user(f"Hello {n} " + "x" * 3000).assistant("y" * 3000) for n in range(9)]
    place = database(tmp_path, *talks)
    raw = bytearray(place.read_bytes())
    for page in [n for n in range(0, len(raw), 4096) if b"Hello 4 " in raw[n : n + 4096]]:
        raw[page : page + 4096] = b"\xff" * 4096
    place.write_bytes(bytes(raw))
    with untouched(tmp_path):
        found = sources(tmp_path)
        assert [source.session for source in found] == [f"ses_{n}" for n in range(9)]
        sessions = [parse(source) for source in found]
    texts = [[text[:7] for _, text in shape(session)] for session in sessions]
    assert texts == [["yyyyyyy"] if n == 4 else [f"Hello {n}", "yyyyyyy"] for n in range(9)]
    assert [[problem.line for problem in session.problems] for session in sessions] == [
        [2] if n == 4 else [] for n in range(9)
    ]
    assert sessions[4].problems[0].reason.startswith("The database is damaged: a row of the table part")
    place.write_bytes(bytes(raw[: len(raw) // 3]))
    assert all("damaged" in reason for reason in failures(tmp_path))


def failures(folder: Path) -> list[str]:
    reasons = []
    for source in sources(folder):
        try:
            parse(source)
        except NotASessionError as reason:
            reasons.append(str(reason))
    return reasons


def test_bad_rows_and_files_cost_nothing_else(tmp_path: Path) -> None:
    talk = Talk().user("One").user("Two").user("Three").user("Four")
    place = database(tmp_path / "new", talk)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("ALTER TABLE message ADD COLUMN novelty text")
        connection.execute("UPDATE message SET data = '{\"role\":' WHERE id = 'msg_ses_1_1'")
        connection.execute("UPDATE part SET data = '[1]' WHERE message_id = 'msg_ses_1_2'")
        connection.execute(
            "UPDATE part SET data = CAST(x'7b2274797065223a2274657874222c2274657874223a22ff227d' AS text)"
            " WHERE message_id = 'msg_ses_1_3'"
        )
        connection.commit()
    talk.into_folders(tmp_path / "old")
    storage = tmp_path / "old/storage"
    (storage / "message/ses_1/msg_ses_1_1.json").write_bytes(b'{"role":')
    (storage / "part/msg_ses_1_2/prt_ses_1_2_0.json").write_bytes(b"[1]")
    (storage / "part/msg_ses_1_3/prt_ses_1_3_0.json").write_bytes(b'{"type":"text","text":"\xff"}')
    for folder in ("new", "old"):
        session = read(tmp_path / folder)
        assert [m.text for m in session.messages] == ["�", "Four"]
        assert len(session.problems) == 3
