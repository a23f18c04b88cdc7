"""The reader of Gemini CLI sessions, on small snapshots and logs, and on the real exports where they are there."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Image, NotASessionError, ParsedSession
from memory_pipeline.sessions.reading import parse_file

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures"
METADATA = {"sessionId": "s-1", "projectHash": "c0ffee", "startTime": "2026-05-01T12:00:00.000Z"}
PNG = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}


def said(identity: str, kind: str, content: Any, second: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "timestamp": f"2026-05-01T12:00:{second:02d}.000Z",
        "type": kind,
        "content": content,
    } | fields


def call(
    name: str, result: object = "done", identity: str = "c-1", status: str = "success", **args: Any
) -> dict[str, Any]:
    answer = {"functionResponse": {"id": identity, "name": name, "response": {"output": result}}}
    times = {"status": status, "timestamp": "2026-05-01T12:00:30.000Z"}
    return {"id": identity, "name": name, "args": args, "result": [answer]} | times


def snapshot(tmp_path: Path, *messages: Any, name: str = "session-a.json", **metadata: Any) -> ParsedSession:
    path = tmp_path / name
    path.write_text(json.dumps(METADATA | metadata | {"messages": messages}, indent=2), encoding="utf-8")
    return parse_file(path)


def log(tmp_path: Path, *records: Any, name: str = "chats/session-a.jsonl", **metadata: Any) -> ParsedSession:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in (METADATA | metadata, *records)), encoding="utf-8")
    return parse_file(path)


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


TALK = (
    said("u-1", "user", "Fix the parcel list."),
    said(
        "g-1",
        "gemini",
        "I will look.",
        5,
        thoughts=[{"subject": "Hm", "description": "hm"}],
        toolCalls=[call("read_file", file_path="a.py"), call("replace", "ok", "c-2", file_path="b.py")],
    ),
    said("i-1", "info", "An update is available.", 40),
)


def test_a_snapshot_and_the_log_of_it_say_the_same(tmp_path: Path) -> None:
    old = snapshot(tmp_path, *TALK, summary="Parcels")
    new = log(tmp_path, *TALK, {"$set": {"summary": "Parcels"}})
    assert shape(old) == [
        ("user", "Fix the parcel list."),
        ("assistant", "I will look."),
        ("tool", "read_file(file_path=a.py)"),
        ("tool", "replace(file_path=b.py)"),
        ("tool", "done"),
        ("tool", "ok"),
        ("injected", "An update is available."),
    ]
    assert [m.message_id for m in old.messages] == [m.message_id for m in new.messages]
    assert (old.session_id, old.name, old.files_read, old.files_modified) == ("s-1", "Parcels", ("a.py",), ("b.py",))
    assert (new.name, new.unknown_records, [m.line for m in new.messages][:2]) == ("Parcels", {}, [2, 3])
    assert [m.line for m in old.messages][:2] == [1, 2]


def test_the_last_version_of_a_message_counts_once(tmp_path: Path) -> None:
    first, second = said("g-1", "gemini", "I", 5), said("g-1", "gemini", "I will.", 5, toolCalls=[call("ls")])
    session = log(tmp_path, TALK[0], first, second)
    assert shape(session)[1:] == [("assistant", "I will."), ("tool", "ls()"), ("tool", "done")]
    later = log(tmp_path, TALK[0], first, name="chats/b.jsonl")
    assert later.messages[1].message_id == session.messages[1].message_id


def test_rewound_turns_are_voided(tmp_path: Path) -> None:
    turns = [said(f"u-{n}", "user", f"Prompt {n}", n) for n in range(1, 4)]
    session = log(tmp_path, *turns, {"$rewindTo": "u-2"}, said("u-9", "user", "Instead", 9))
    assert [(m.text, m.voided) for m in session.messages] == [
        ("Prompt 1", False),
        ("Prompt 2", True),
        ("Prompt 3", True),
        ("Instead", False),
    ]
    unknown = log(tmp_path, *turns, {"$rewindTo": "u-77"}, said("u-9", "user", "Instead", 9))
    assert [m.voided for m in unknown.messages] == [True, True, True, False]


def test_a_compression_is_a_compaction(tmp_path: Path) -> None:
    turns = [said("u-1", "user", "One"), said("g-1", "gemini", "Uno", 1), said("u-2", "user", "Two", 2)]
    context = [
        said("n-1", "user", [{"text": "<state_snapshot>One was said.</state_snapshot>"}], 3),
        said("n-2", "gemini", [{"text": "Got it. Thanks for the additional context!"}], 3),
        turns[2] | {"content": [{"text": "Two"}]},
    ]
    session = log(tmp_path, *turns, {"$set": {"messages": context}}, said("u-3", "user", "Three", 4))
    assert shape(session) == [
        ("user", "One"),
        ("assistant", "Uno"),
        ("user", "Two"),
        ("injected", "<state_snapshot>One was said.</state_snapshot>"),
        ("injected", "Got it. Thanks for the additional context!"),
        ("user", "Three"),
    ]
    assert [c.message_ids for c in session.compactions] == [tuple(m.message_id for m in session.messages[:2])]


def test_a_context_with_new_ids_or_without_a_failed_turn_is_nothing_new(tmp_path: Path) -> None:
    turns = [said("u-1", "user", "One"), said("g-1", "gemini", "Uno", 1), said("u-2", "user", "Two", 2)]
    again = [said("x-1", "user", [{"text": "One"}], 3), said("g-1", "gemini", "Uno", 3)]
    session = log(tmp_path, *turns, {"$set": {"messages": again}})
    assert shape(session) == [("user", "One"), ("assistant", "Uno"), ("user", "Two")]
    assert session.compactions == () and not any(m.voided for m in session.messages)


def test_what_stands_only_in_the_context_is_read(tmp_path: Path) -> None:
    opening = [said("c-0", "user", "This is the Gemini CLI. We are setting up the context for our chat.")]
    opening += [said("c-1", "gemini", "Got it. Thanks for the context!"), said("u-1", "user", "One", 1)]
    reply = said("g-1", "gemini", [{"text": "U"}], 2, toolCalls=[call("ls", "a.py")])
    masked = said("g-1", "gemini", [{"text": "Uno"}], 2, toolCalls=[call("ls", "[masked]"), call("pwd", "/", "c-2")])
    new = [said("u-2", "user", "Two", 3), said("g-2", "gemini", [{"text": "Due"}], 4)]
    contexts = ([*opening, reply], [*opening, masked, *new])
    records = [{"$set": {"messages": context, "lastUpdated": "2026-05-01T12:00:09.000Z"}} for context in contexts]
    session = log(tmp_path, *records, said("u-3", "user", "Three", 40))
    assert sorted(shape(session)) == [
        ("assistant", "Due"),
        ("assistant", "Uno"),
        ("injected", "Got it. Thanks for the context!"),
        ("injected", opening[0]["content"]),
        ("tool", "/"),
        ("tool", "a.py"),
        ("tool", "ls()"),
        ("tool", "pwd()"),
        ("user", "One"),
        ("user", "Three"),
        ("user", "Two"),
    ]
    assert session.compactions == () and not any(m.voided for m in session.messages)
    # the same messages as records of their own are the same messages
    apart = log(tmp_path, *opening, masked, *new, said("u-3", "user", "Three", 40), name="chats/b.jsonl")
    assert {m.message_id for m in apart.messages} == {m.message_id for m in session.messages}


def test_a_snapshot_on_one_line_goes_on_as_a_log(tmp_path: Path) -> None:
    session = log(tmp_path, said("u-2", "user", "Two", 2), messages=[said("u-1", "user", "One"), 7])
    assert shape(session) == [("user", "One"), ("user", "Two")]


def test_a_reply_behind_a_summary_is_a_reply(tmp_path: Path) -> None:
    context = [
        said("n-1", "user", "<state_snapshot>One was said.</state_snapshot>", 3),
        said("n-2", "gemini", "Got it. Thanks for the additional context!", 3),
        said("g-2", "gemini", "Due", 4),
    ]
    session = log(tmp_path, said("u-1", "user", "One"), {"$set": {"messages": context}})
    assert [m.text for m in session.messages if m.role == "assistant"] == ["Due"]


def test_what_the_program_adds_to_a_prompt_is_injected(tmp_path: Path) -> None:
    files = "--- Content from referenced files ---\nContent from @a.py:\nx = 1\n--- End of content ---"
    session = log(
        tmp_path,
        said("u-0", "user", "<session_context>\nWorkspace Directories:\n  - /home/ada/shop\n</session_context>"),
        said("u-1", "user", f"Look at @a.py\n{files}"),
        said("u-2", "user", [{"text": "Look at @b.png"}, {"text": "\n--- Content from referenced files ---"}, PNG], 1),
        said("u-3", "user", "The expanded command", 2, displayContent="/fix it"),
        said("u-4", "user", "Go on<hook_context>It is late.</hook_context>", 3),
        said("u-5", "user", "System: Please continue.", 4),
        said("u-6", "user", [{"functionResponse": {"id": "c-1", "name": "ls", "response": {"output": "done"}}}], 5),
        said("g-1", "gemini", [{"text": "hm", "thought": True}, {"text": "Yes"}], 6, toolCalls=[call("ls")]),
    )
    assert shape(session) == [
        ("injected", "<session_context>\nWorkspace Directories:\n  - /home/ada/shop\n</session_context>"),
        ("user", "Look at @a.py"),
        ("injected", files),
        ("user", "Look at @b.png\n[image: image/png, line 4, number 1]"),
        ("injected", "--- Content from referenced files ---"),
        ("user", "/fix it"),
        ("injected", "The expanded command"),
        ("user", "Go on"),
        ("injected", "<hook_context>It is late.</hook_context>"),
        ("injected", "System: Please continue."),
        ("tool", "done"),
        ("assistant", "Yes"),
        ("tool", "ls()"),
    ]
    assert session.messages[3].images == (Image(4, 0, "image/png"),)
    assert session.cwd == "/home/ada/shop"


def test_failures_and_images_of_tools(tmp_path: Path) -> None:
    shot = call("screenshot") | {"result": [{"functionResponse": {"id": "c-1", "response": {}, "parts": [PNG]}}]}
    failing = call("run_shell_command", "Output: no\nExit Code: 2", "c-2", command="false")
    refused = {"id": "c-3", "name": "write_file", "args": {"file_path": "a"}, "status": "cancelled"}
    waiting = {"id": "c-4", "name": "ls", "args": {}, "status": "executing"}
    session = log(tmp_path, TALK[0], said("g-1", "gemini", "", toolCalls=[shot, failing, refused, waiting]))
    results = [(m.text, m.is_error, m.images) for m in session.messages if not m.text.endswith(")") or "no" in m.text]
    assert ("{}\n[image: image/png, line 3, number 1]", False, (Image(3, 0, "image/png"),)) in results
    assert ("Output: no\nExit Code: 2", True, ()) in results
    assert ("(no output)", False, ()) in results  # the user cancelled it, nothing failed
    assert sum(m.tool_name == "ls" for m in session.messages) == 1
    assert session.files_modified == ()


def test_the_prompts_of_a_sub_agent_are_injected(tmp_path: Path) -> None:
    (tmp_path / "tmp/shop/chats").mkdir(parents=True)
    (tmp_path / "tmp/shop/.project_root").write_text("/home/ada/shop\n", encoding="utf-8")
    by_kind = log(tmp_path, TALK[0], kind="subagent", directories=["/home/ada/shop"])
    by_place = log(tmp_path, TALK[0], name="tmp/shop/chats/s-0/s-1.jsonl")
    assert [shape(by_kind), shape(by_place)] == [[("injected", "Fix the parcel list.")]] * 2
    assert by_kind.cwd == by_place.cwd == "/home/ada/shop"
    assert log(tmp_path, TALK[0], name="tmp/shop/chats/s-1.jsonl").cwd == "/home/ada/shop"


def test_bad_records_cost_nothing_else(tmp_path: Path) -> None:
    lines = [
        json.dumps(METADATA).encode(),
        b'{"id":"u-1","timestamp":"2026-05-01T12:00:00.000Z","type":"user","content":"Caf\xe9"}',
        b'{"id":"u-2","timestamp":"0001-01-01T00:00:00Z","type":"user","content":"No such date"}',
        b'{"timestamp":"2026-05-01T12:00:02.000Z","type":"user","content":"No id"}',
        b'{"type":"novelty"}',
        b'{"id":[],"type":["user"],"content":{"text":"Odd"},"toolCalls":[1,{"args":3}]}',
        b'{"id":"u-3","type":"user","content":"cut off',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    session = parse_file(path)
    assert [m.text for m in session.messages] == ["Caf�", "No such date", "No id"]
    assert session.unknown_records == {"novelty": 1, "no type": 1}
    assert [problem.line for problem in session.problems] == [2, 7]
    with pytest.raises(NotASessionError, match="has no messages"):
        snapshot(tmp_path, 7, None)


needs_fixtures = pytest.mark.skipif(not (FIXTURES / "SOURCES.tsv").exists(), reason="the real sessions are not there")
# Of the two prompts that the other count has, line 3 is "System: Please continue."
FEWER = {"gemini/entireio-cli__full-78762f-78762f.json": 1}


@needs_fixtures
def test_real_exports() -> None:
    with (FIXTURES / "SOURCES.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith("gemini/")]
    sessions = [parse_file(FIXTURES / row["file"]) for row in rows]
    assert len(sessions) == 8
    for row, session in zip(rows, sessions, strict=True):
        users = sum(message.role == "user" for message in session.messages)
        assert users == int(row["user_messages"]) - FEWER.get(row["file"], 0), row["file"]
        assert (session.problems, session.unknown_records) == ((), {})
        assert len({message.message_id for message in session.messages}) == len(session.messages)
    grown = sorted((s for s in sessions if s.session_id.startswith("f7633853")), key=lambda s: s.records)
    assert len(grown) == 5
    for earlier, later in itertools.pairwise(grown):
        texts = {message.message_id: message.text for message in later.messages}
        assert [texts[message.message_id] for message in earlier.messages] == [m.text for m in earlier.messages]
