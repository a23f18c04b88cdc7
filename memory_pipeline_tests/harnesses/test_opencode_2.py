"""Sessions of OpenCode 2.x: databases with the new tables, alone and beside those of 1.x, and exported files."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline import harnesses
from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError, ParsedSession, Source
from memory_pipeline.harnesses.opencode.reader import OpenCode
from memory_pipeline.sessions.discovery import default_roots, find_sources
from memory_pipeline.sessions.images import load_image
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.harnesses import test_opencode as old

SCHEMA = """
CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, fork_session_id text,
    fork_boundary text, slug text NOT NULL, directory text NOT NULL, title text, version text NOT NULL, revert text,
    time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE session_inbox (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, payload text NOT NULL,
    delivery text NOT NULL, enqueued_seq integer NOT NULL, time_created integer NOT NULL);
"""
NOON = old.NOON
LATER = NOON + 3_600_000


class Talk:
    """One session of 2.x; its messages are numbered from the first sequence number on."""

    def __init__(self, identity: str = "ses_1", first: int = 0, **session: Any) -> None:
        self.session = {"id": identity, "directory": "/home/ada/shop", "title": "Parcels"} | session
        self.rows: list[tuple[str, str, int, dict[str, Any]]] = []
        self.waiting: list[tuple[str, str, dict[str, Any]]] = []
        self.first = first

    def add(self, kind: str, at: int = LATER, **data: Any) -> Talk:
        number = self.first + len(self.rows)
        time = at + number * 1000
        times = {"created": time} | data.pop("time", {})
        self.rows.append((f"msg_{self.session['id']}_n{number}", kind, number, data | {"time": times}))
        return self

    def user(self, text: str, **data: Any) -> Talk:
        return self.add("user", text=text, **data)

    def assistant(self, text: str, *content: dict[str, Any], **data: Any) -> Talk:
        return self.add("assistant", content=[{"type": "text", "text": text}, *content], finish="stop", **data)

    def copied(self, fork: Talk, before: int) -> Talk:
        """Begin a fork with what stands before a number, as OpenCode copies it."""
        fork.session |= {"fork_session_id": self.session["id"], "fork_boundary": json.dumps({"type": "before"})}
        fork.rows = [(f"msg_{fork.session['id']}_{n}", kind, n, data) for _, kind, n, data in self.rows if n < before]
        fork.first = max(n for _, _, n, _ in fork.rows) + 1 - len(fork.rows)
        return fork

    def write(self, connection: sqlite3.Connection) -> None:
        s, last = self.session, LATER + 100_000
        revert = json.dumps(s["revert"]) if "revert" in s else None
        row: tuple[Any, ...] = (s["id"], "p", s.get("parent_id"), s.get("fork_session_id"), s.get("fork_boundary"))
        row += ("slug", s["directory"], s["title"], "2.0.12", revert, NOON, s.get("updated", last))
        connection.execute(f"INSERT INTO session_v2 VALUES ({','.join('?' * 12)})", row)
        for identity, kind, number, data in self.rows:
            time = data["time"]["created"]
            row = (identity, s["id"], kind, number, time, time, json.dumps(data))
            connection.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?,?)", row)
        for place, (identity, kind, payload) in enumerate(self.waiting, start=1000):
            row = (identity, s["id"], kind, json.dumps(payload), "queue", place, LATER + place)
            connection.execute("INSERT INTO session_inbox VALUES (?,?,?,?,?,?,?)", row)


def database(place: Path, *talks: Talk, upgraded: tuple[old.Talk, ...] = (), log: bool = False) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(place)) as connection:
        if log:
            connection.execute("PRAGMA journal_mode = wal")
        connection.executescript(SCHEMA)
        if upgraded:
            connection.executescript(old.SCHEMA)
        for before in upgraded:
            before.into_database(connection)
        for talk in talks:
            talk.write(connection)
        connection.commit()
    return place


def sessions(place: Path) -> dict[str, ParsedSession]:
    return {session.session_id: session for session in map(parse, old.sources(place.parent))}


def ids(session: ParsedSession) -> list[str]:
    return [message.message_id for message in session.messages]


def tool(name: str, *content: dict[str, Any], status: str = "completed", call: str = "c-1", **state: Any) -> Any:
    times = {"created": LATER + 500, "ran": LATER + 600, "completed": LATER + 700}
    return {
        "type": "tool",
        "id": call,
        "name": name,
        "time": times,
        "state": {"status": status, "content": content} | state,
    }


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_what_is_said(tmp_path: Path) -> None:
    shot = {"type": "file", "uri": old.PNG, "mime": "image/png"}
    question = {"questions": [{"header": "Tests", "question": "Which runner?", "options": [{"label": "pytest"}]}]}
    talk = Talk().user(
        "Look at this.",
        files=[
            {"data": "aGVsbG8=", "mime": "image/png", "source": {"type": "inline"}, "name": "x.png"},
            {"uri": "file:///a.txt", "mime": "text/plain", "name": "a.txt"},
        ],
        agents=[{"name": "explore"}],
        skills=[{"id": "s", "name": "deploy", "text": "How to deploy."}],
    )
    talk.add("agent-switched", agent="plan").add("model-switched", model={}).add("location-switched", location={})
    talk.add("system", text="Today is Friday.").add("skill", skill="s", name="s", text="A skill.")
    talk.assistant(
        "I will look.",
        {"type": "reasoning", "text": "hm"},
        tool("read", text("1: x"), shot, input={"path": "/a.py"}),
        tool("shell", text("no"), text("Command exited with code 3."), call="c-2", input={}, metadata={"exit": 3}),
        tool("edit", status="error", call="c-3", input={"path": "/b.py"}, error={"type": "t", "message": "No file"}),
        tool("grep", status="running", call="c-4", input={"pattern": "x"}),
        tool("question", text("User has answered"), call="c-5", input=question, metadata={"answers": [["pytest"]]}),
        snapshot={"files": ["/c.py"]},
    )
    talk.add("assistant", content=[], error={"type": "provider.error", "message": "Refused."})
    talk.add("synthetic", text="Put in.").add("shell", shellID="sh_1", command="ls", status="exited", exit=0, output={})
    talk.add("idle", outcome="succeeded").add("novelty", text="?")
    place = database(tmp_path / "opencode.db", talk)
    session = sessions(place)["ses_1"]
    assert sorted(old.shape(session)) == [
        ("assistant", "I will look."),
        ("injected", "A skill."),
        ("injected", "How to deploy."),
        ("injected", "Put in."),
        ("injected", "Today is Friday."),
        ("injected", "[file: a.txt, text/plain]"),
        ("injected", "provider.error: Refused."),
        ("tool", "(no output)"),
        ("tool", "1: x\n[image: image/png, line 8, number 1]"),
        ("tool", "No file"),
        ("tool", "User has answered"),
        ("tool", "edit(path=/b.py)"),
        ("tool", "grep(pattern=x)"),
        ("tool", "no\nCommand exited with code 3."),
        ("tool", 'question(questions=[{"header":"Tests","question":"Which runner?","options":[{"label":"pytest"}]}])'),
        ("tool", "read(path=/a.py)"),
        ("tool", "shell()"),
        ("tool", "shell(command=ls)"),
        ("user", "Look at this.\n[image: image/png, line 2, number 1]"),
        ("user", "pytest"),
    ]
    assert [m.text for m in session.messages if m.is_error] == ["no\nCommand exited with code 3.", "No file"]
    assert (session.name, session.cwd) == ("Parcels", "/home/ada/shop")
    assert (session.files_read, session.files_modified) == (("/a.py",), ("/c.py",))
    assert (session.unknown_records, session.problems) == ({"message/novelty": 1}, ())
    assert load_image(f"{place}#ses_1", 2, 0).data == load_image(f"{place}#ses_1", 8, 0).data == b"hello"


def test_a_sub_agents_prompts_are_its_parents(tmp_path: Path) -> None:
    place = database(
        tmp_path / "opencode.db", Talk("ses_1").user("Go."), Talk("ses_2", parent_id="ses_1").user("Read.")
    )
    assert [old.shape(session) for session in sessions(place).values()] == [[("user", "Go.")], [("injected", "Read.")]]


def test_reverted_turns_are_voided(tmp_path: Path) -> None:
    talk = Talk(revert={"messageID": "msg_ses_1_n2", "files": []}).user("One").assistant("Uno").user("Two")
    place = database(tmp_path / "opencode.db", talk.assistant("Due"))
    assert [m.text for m in sessions(place)["ses_1"].messages if m.voided] == ["Two", "Due"]


def test_nothing_of_a_fork_counts_twice(tmp_path: Path) -> None:
    talk = Talk("ses_1").user("One").assistant("Uno", tool("ls", input={})).user("Two").assistant("Due")
    fork = talk.copied(Talk("ses_2"), before=2).user("In the fork").assistant("Si")
    second = fork.copied(Talk("ses_3"), before=3).user("Two")
    found = sessions(database(tmp_path / "a/opencode.db", talk, fork, second))
    said = ids(found["ses_1"])
    assert ids(found["ses_2"])[:4] == said[:4] and not set(ids(found["ses_2"])[4:]) & set(said)
    assert ids(found["ses_3"])[:5] == ids(found["ses_2"])[:5] and ids(found["ses_3"])[5] not in said
    # where the session that it is a fork of is gone, the copies stand for themselves
    alone = sessions(database(tmp_path / "b/opencode.db", fork))["ses_2"]
    assert old.shape(alone) == old.shape(found["ses_2"])


def test_compactions(tmp_path: Path) -> None:
    talk = Talk().user("One").assistant("Uno").add("compaction", status="failed", reason="auto", error={"type": "e"})
    talk.add("compaction", status="completed", reason="auto", summary="## One was said", recent="").user("Two")
    talk.add("compaction", status="running", reason="manual", summary="## Hal", recent="")
    session = sessions(database(tmp_path / "opencode.db", talk))["ses_1"]
    texts = {m.message_id: m.text for m in session.messages}
    assert [[texts[i] for i in gone.message_ids] for gone in session.compactions] == [["One", "Uno", "e: no message"]]
    assert old.shape(session)[3:] == [("injected", "## One was said"), ("user", "Two")]


def test_a_prompt_that_waits_is_the_same_once_it_is_delivered(tmp_path: Path) -> None:
    talk = Talk().user("One").assistant("Uno")
    talk.waiting = [("msg_w1", "user", {"text": "Then two"}), ("msg_w2", "synthetic", {"text": "Put in."})]
    talk.waiting.append(("msg_w3", "user", {"text": "Then three"}))
    place = database(tmp_path / "opencode.db", talk)
    (before,) = old.sources(tmp_path)
    waiting = parse(before)
    assert old.shape(waiting)[2:] == [("user", "Then two"), ("user", "Then three")]
    with closing(sqlite3.connect(place)) as connection:
        data = json.dumps({"text": "Then two", "time": {"created": LATER + 50_000}})
        row = ("msg_w1", "ses_1", "user", 7, LATER + 50_000, LATER + 50_000, data)
        connection.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?,?)", row)
        connection.execute("DELETE FROM session_inbox WHERE id = 'msg_w1'")
        connection.commit()
    (after,) = old.sources(tmp_path)
    assert after != before
    assert sorted(ids(parse(after))) == sorted(ids(waiting))


def upgrade(before: old.Talk, first: int = 0, **session: Any) -> Talk:
    """The session as 2.0 copies it into the new tables: without times of parts, what was put in apart."""
    talk = Talk(before.session["id"], **session)
    for message, parts in before.messages:
        spoken = "\n\n".join(part["text"] for part in parts if part["type"] == "text" and not part.get("synthetic"))
        put_in = [part["text"] for part in parts if part.get("synthetic")]
        content = [text(part["text"]) for part in parts if part["type"] == "text"]
        data = {"text": spoken} if message["role"] == "user" else {"content": content, "finish": "stop"}
        rows = [(message["id"], message["role"], data)]
        rows += (
            [(f"{message['id'][:8]}Xy{len(talk.rows)}", "synthetic", {"text": "\n\n".join(put_in)})] if put_in else []
        )
        for identity, kind, told in rows:
            talk.rows.append((identity, kind, len(talk.rows), told | {"time": message["time"]}))
    return talk


def test_a_session_of_both_generations_is_one_and_keeps_its_ids(tmp_path: Path) -> None:
    before = old.Talk().user("One", {"type": "text", "text": "Put in.", "synthetic": True}).assistant("Uno")
    before.user("Two").assistant("Due", old.tool("ls", input={}))
    other = old.Talk("ses_2").user("Not copied yet")
    alone = sessions(old.database(tmp_path / "before", before, other))
    upgraded = upgrade(before, title="Renamed").user("Three").assistant("Tre")
    after = sessions(database(tmp_path / "after/opencode.db", upgraded, upgraded=(before, other)))
    assert ids(after["ses_1"])[:7] == ids(alone["ses_1"])
    assert old.shape(after["ses_1"])[7:] == [("user", "Three"), ("assistant", "Tre")]
    assert after["ses_1"].name == "Renamed" and not any(m.voided for m in after["ses_1"].messages)
    assert ids(after["ses_2"]) == ids(alone["ses_2"])
    # a fork that 2.x made of it has the ids of 1.x too
    fork = upgraded.copied(Talk("ses_3"), before=4).user("In the fork")
    found = sessions(database(tmp_path / "fork/opencode.db", upgraded, fork, upgraded=(before,)))
    assert set(ids(found["ses_3"])[:4]) < set(ids(alone["ses_1"]))
    assert old.shape(found["ses_3"])[4:] == [("user", "In the fork")]


def test_what_was_taken_back_after_the_upgrade_is_voided(tmp_path: Path) -> None:
    before = old.Talk().user("One").assistant("Uno").user("Two").assistant("Due")
    cut = upgrade(before)
    cut.rows = cut.rows[:2]
    cut.first = 5
    session = sessions(database(tmp_path / "a/opencode.db", cut.user("Three"), upgraded=(before,)))["ses_1"]
    assert [(m.text, m.voided) for m in session.messages] == [
        ("One", False),
        ("Uno", False),
        ("Two", True),
        ("Due", True),
        ("Three", False),
    ]
    # what 1.x said after the upgrade was never in the new tables, so it was not taken back there
    cut = upgrade(before, updated=NOON + 2500)
    cut.rows = cut.rows[:2]
    session = sessions(database(tmp_path / "b/opencode.db", cut, upgraded=(before,)))["ses_1"]
    assert [m.text for m in session.messages if m.voided] == []
    # a mark of 1.x for what was taken back is not copied, but still meant
    before.session["revert"] = {"messageID": "msg_ses_1_3"}
    session = sessions(database(tmp_path / "c/opencode.db", upgrade(before), upgraded=(before,)))["ses_1"]
    assert [m.text for m in session.messages if m.voided] == ["Two", "Due"]


@each("change", ["time_updated = time_updated + 1", "title = 'Other'", "revert = '{}'"])
def test_the_state_changes_with_the_session(tmp_path: Path, change: str) -> None:
    place = database(tmp_path / "opencode.db", Talk("ses_1").user("One"), Talk("ses_2").user("Other"))
    before, other = old.sources(tmp_path)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(f"UPDATE session_v2 SET {change} WHERE id = 'ses_1'")
        connection.commit()
    after, still = old.sources(tmp_path)
    assert after != before and still == other


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute("UPDATE session_message SET data = replace(data, 'One', 'Written')")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE session_message SET data = replace(data, 'Written', 'Uncommitted')")
print("written", flush=True)
sys.stdin.read()
"""


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """While a program has a change in the log of the database, and another one begun."""
    command = [sys.executable, "-c", WRITER, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stdout.readline() == b"written\n"
        yield
        writer.communicate()


def test_a_database_in_use_is_read_with_its_log(tmp_path: Path) -> None:
    place = database(tmp_path / "opencode.db", Talk().user("One"), log=True)
    with writing(place):
        assert (tmp_path / "opencode.db-wal").stat().st_size
        with old.untouched(tmp_path):
            assert old.shape(old.read(tmp_path)) == [("user", "Written")]


def test_bad_databases_cost_only_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.harnesses.sqlite._BUSY_SECONDS", 0.01)
    locked = database(tmp_path / "opencode-a.db", Talk("ses_1").user("One"))
    cut = database(tmp_path / "opencode-b.db", *(Talk(f"ses_b{n}").user("x" * 5000) for n in range(20)))
    cut.write_bytes(cut.read_bytes()[:20000])
    with closing(sqlite3.connect(tmp_path / "opencode-c.db")) as connection:
        connection.execute("CREATE TABLE session_v2 (id text)")
        connection.commit()
    database(tmp_path / "opencode-d.db", Talk("ses_4").user("Four"))
    reasons: dict[str, set[str]] = {}
    with closing(sqlite3.connect(locked, isolation_level=None)) as agent:
        agent.execute("PRAGMA locking_mode = EXCLUSIVE")
        agent.execute("BEGIN EXCLUSIVE")
        for source in old.sources(tmp_path):
            try:
                parse(source)
                reason = "read"
            except NotReadableNowError as error:
                reason = f"again: {error}"
            except NotASessionError as error:
                reason = str(error)
            reasons.setdefault(Path(source.path).name, set()).add(reason)
    assert reasons == {
        "opencode-a.db": {"again: The database is locked by another program; it is tried again."},
        "opencode-b.db": {"The database is damaged."},
        "opencode-c.db": {"It is an SQLite database, but not one of OpenCode."},
        "opencode-d.db": {"read"},
    }
    assert old.shape(parse(old.sources(tmp_path)[0])) == [("user", "One")]


def test_a_bad_row_costs_nothing_else(tmp_path: Path) -> None:
    place = database(tmp_path / "opencode.db", Talk().user("One").user("Two").assistant("Tre").user("Four"))
    with closing(sqlite3.connect(place)) as connection:
        for number, data in enumerate(('{"text":', "[1]", '{"content":[3,null,{"type":5}],"time":7}')):
            connection.execute("UPDATE session_message SET data = ? WHERE seq = ?", (data, number))
        connection.commit()
    session = sessions(place)["ses_1"]
    assert old.shape(session) == [("user", "Four")]
    assert [problem.line for problem in session.problems] == [2, 3]


EXPORT_TIMES = {"created": NOON, "updated": NOON}


def exported(place: Path, info: dict[str, Any], messages: list[Any], indent: int | None = 2) -> list[Source]:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"info": info | {"time": EXPORT_TIMES}, "messages": messages}, indent=indent))
    return list(find_sources([place.parent]))


@each("indent", [None, 2])
def test_exports_of_both_generations_are_the_session_itself(tmp_path: Path, indent: int | None) -> None:
    before = old.Talk().user("One").assistant("Uno", old.tool("ls", input={}))
    in_database = sessions(old.database(tmp_path / "a", before))["ses_1"]
    info: dict[str, Any] = {"id": "ses_1", "slug": "s", "projectID": "p", "directory": "/home/ada/shop"}
    info["title"] = "Parcels"
    messages: list[Any] = [{"info": message, "parts": parts} for message, parts in before.messages]
    (source,) = exported(tmp_path / "x/one.json", info, messages, indent)
    session = parse(source)
    assert (ids(session), session.cwd, session.name) == (ids(in_database), "/home/ada/shop", "Parcels")

    talk = Talk("ses_2").user("Two", files=[{"data": "aGVsbG8=", "mime": "image/png"}]).assistant("Due")
    in_database = sessions(database(tmp_path / "b/opencode.db", talk))["ses_2"]
    info = {"id": "ses_2", "projectID": "p", "title": "Parcels", "location": {"directory": "/home/ada/shop"}}
    messages = [{"id": identity, "type": kind} | data for identity, kind, _, data in talk.rows]
    (source,) = exported(tmp_path / "y/two.json", info, messages, indent)
    session = parse(source)
    assert (ids(session), session.cwd, session.harness) == (ids(in_database), "/home/ada/shop", "opencode")
    assert load_image(source.path, 2, 0).data == b"hello"


def test_an_unfinished_export_gives_what_it_has(tmp_path: Path) -> None:
    info = {"id": "ses_1", "projectID": "p", "title": "Parcels"}
    messages: list[Any] = [
        {"info": message, "parts": parts} for message, parts in old.Talk().user("A").user("B").messages
    ]
    place = tmp_path / "x/one.json"
    exported(place, info, messages)
    place.write_text(place.read_text()[:-80])
    (source,) = find_sources([place.parent])
    session = parse(source)
    assert old.shape(session) == [("user", "A")]
    assert [problem.reason for problem in session.problems] == [
        "The file is damaged or incomplete; 1 messages were read from it."
    ]


def test_databases_that_a_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "share/opencode"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    database(data / "opencode.db", Talk("ses_1").user("One"))
    database(data / "work.sqlite", Talk("ses_2").user("Two"))
    database(tmp_path / "else/any.sqlite", Talk("ses_3").user("Three"))
    (tmp_path / "else/notes.json").write_text("{}")
    cases = {"": ["ses_1"], ":memory:": ["ses_1"], "work.sqlite": ["ses_1", "ses_2"]}
    cases |= {str(tmp_path / "else/any.sqlite"): ["ses_1", "ses_3"], "../../else/any.sqlite": ["ses_1", "ses_3"]}
    found = {}
    for value in cases:
        monkeypatch.setenv("OPENCODE_DB", value)
        found[value] = [source.session for source in find_sources(filter(Path.exists, default_roots()))]
    assert found == cases


def test_agents_that_keep_theirs_in_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("MIMOCODE_HOME", str(tmp_path / "mimo"))
    database(tmp_path / "share/kilo/kilo.db", Talk("ses_1").user("One"))
    with closing(sqlite3.connect(old.database(tmp_path / "mimo/data", old.Talk("ses_2"), name="mimocode.db"))) as mimo:
        mimo.execute("ALTER TABLE message ADD COLUMN agent_id text")
        for number, agent in enumerate(("main", "", "general-1")):
            data = json.dumps({"role": "user", "time": {"created": NOON + number}})
            mimo.execute("INSERT INTO message VALUES (?,'ses_2',?,?,?,?)", (f"msg_{number}", NOON, NOON, data, agent))
            row = (f"prt_{number}", f"msg_{number}", NOON, NOON, json.dumps(text(f"Said {number}")))
            mimo.execute("INSERT INTO part VALUES (?,?,'ses_2',?,?,?)", row)
        mimo.commit()
    found = [parse(source) for source in find_sources(filter(Path.exists, default_roots()))]
    assert [(s.harness, old.shape(s)) for s in found] == [
        ("kilo", [("user", "One")]),
        ("mimocode", [("user", "Said 0"), ("user", "Said 1"), ("injected", "Said 2")]),
    ]
    assert {name for h in harnesses.HARNESSES if isinstance(h, OpenCode) for name in h.moved_by} == {
        *("XDG_DATA_HOME", "OPENCODE_DB", "KILO_DB", "MIMOCODE_DB", "MIMOCODE_HOME")
    }
    # without its folder a database is known by its name
    (source,) = find_sources([tmp_path / "share"])
    assert source.agent == "kilo"
    assert parse(source._replace(agent="")).harness == "kilo"
