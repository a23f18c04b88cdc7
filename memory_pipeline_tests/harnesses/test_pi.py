"""The reader of pi sessions, on small files of each version."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.pi import Pi
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each

HEADER = {
    "type": "session",
    "version": 3,
    "id": "s-1",
    "timestamp": "2026-05-01T10:00:00.000Z",
    "cwd": "/home/ada/shop",
}
NOON = 1777636800000  # 2026-05-01T12:00:00Z


def entry(number: int, message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """One entry, written `number` seconds past noon."""
    base = {
        "type": "message",
        "id": f"e{number:07d}",
        "parentId": None,
        "timestamp": f"2026-05-01T12:00:{number:02d}.000Z",
    }
    return base | ({"message": message} if message else {}) | fields


def said(role: str, *blocks: Any, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": content} | fields


def parse(tmp_path: Path, *records: dict[str, Any], header: dict[str, Any] = HEADER) -> ParsedSession:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in (header, *records)), encoding="utf-8")
    return parse_file(path)


def call(name: str, identifier: str = "t1", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": identifier, "name": name, "arguments": arguments}


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


def test_a_conversation(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    result = said("toolResult", "No such file", toolCallId="t1", toolName="read", isError=True)
    session = parse(
        tmp_path,
        entry(1, said("user", "open  the\nshop")),
        entry(2, said("assistant", thinking, "I look.", call("read", path="a.py"), call("edit", "t2", path="b.py"))),
        entry(3, result),
        entry(4, said("assistant", stopReason="error", errorMessage="overloaded")),
        entry(5, said("assistant", "Done.")),
    )
    assert shape(session) == [
        ("user", "open  the\nshop"),
        ("assistant", "I look."),
        ("tool", "read(path=a.py)"),
        ("tool", "edit(path=b.py)"),
        ("tool", "No such file"),
        ("assistant", "Done."),
    ]
    assert [message.tool_name for message in session.messages if message.role == "tool"] == ["read", "edit", "read"]
    assert [message.is_error for message in session.messages] == [False] * 4 + [True, False]
    assert (session.session_id, session.harness, session.cwd) == ("s-1", "pi", "/home/ada/shop")
    assert session.name == "open the shop"
    assert (session.files_read, session.files_modified) == (("a.py",), ("b.py",))
    assert session.messages[0].line == 2


def test_a_file_read_and_changed_counts_as_changed(tmp_path: Path) -> None:
    calls = [
        call("read", path="a.py:10-20"),
        call("write", path="a.py", content="x"),
        call("read", path="artifact://1"),
    ]
    session = parse(tmp_path, entry(1, said("assistant", *calls)))
    assert (session.files_read, session.files_modified) == ((), ("a.py",))


def test_the_last_session_info_is_the_name(tmp_path: Path) -> None:
    infos = [entry(number, type="session_info", name=name) for number, name in enumerate(["old", " The Shop ", ""])]
    assert parse(tmp_path, entry(9, said("user", "hi")), *infos).name == "The Shop"


def test_who_speaks(tmp_path: Path) -> None:
    image = {"type": "image", "data": "QUJD" * 50, "mimeType": "image/jpeg"}
    session = parse(
        tmp_path,
        entry(1, said("user", '<skill name="a" location="b">\nrules\n</skill>\n\nuse it', image)),
        entry(2, type="custom_message", customType="lint", content="2 errors", display=False),
        entry(3, type="branch_summary", fromId="e0000001", summary="tried x"),
        entry(4, {"role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 2}),
        entry(5, {"role": "user", "content": "plain text"}),
        entry(6, {"role": "hookMessage", "content": "hook says"}),
        entry(7, {"role": "system", "content": "you are"}),
        entry(8, {"role": "oracle", "content": "?"}),
        entry(9, type="telemetry"),
    )
    assert [role for role, _ in shape(session)] == [
        "injected",
        "user",
        "injected",
        "injected",
        "tool",
        "user",
        "injected",
    ]
    assert session.messages[1].text == "use it\n[image: image/jpeg, line 2, number 1]"
    bash = session.messages[4]
    assert (bash.tool_name, bash.is_error, bash.text) == ("bash", True, "bash(command=ls)\na\n")
    assert session.unknown_records == {"message/oracle": 1, "telemetry": 1}


def test_said_and_written(tmp_path: Path) -> None:
    # a prompt was queued at noon and written when the agent was free
    session = parse(tmp_path, entry(30, said("user", "first", timestamp=NOON)), entry(5, said("user", "second")))
    assert [message.text for message in session.messages] == ["first", "second"]
    assert session.messages[0].said_at == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert session.messages[0].written_at == datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
    assert session.messages[1].said_at == session.messages[1].written_at


@each("bad", [None, "soon", 0, 10**18, {"at": 1}])
def test_without_a_usable_time_that_of_the_record_before_counts(tmp_path: Path, bad: object) -> None:
    session = parse(
        tmp_path,
        entry(1, said("user", "one", timestamp=bad), timestamp=bad),
        entry(20, said("user", "two")),
        entry(3, said("user", "three", timestamp=bad), timestamp=bad),
        header=HEADER | {"timestamp": bad},
    )
    second = session.messages[-1].said_at
    assert [message.text for message in session.messages] == ["one", "two", "three"]
    assert {message.said_at for message in session.messages} == {second}


def test_no_time_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [HEADER | {"timestamp": "never"}, entry(1, said("user", "one"), timestamp="never")]
    path.write_text("\n".join(map(json.dumps, lines)))
    os.utime(path, (1767225600, 1767225600))
    assert parse_file(path).messages[0].said_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_compactions_of_version_3(tmp_path: Path) -> None:
    prompts = [entry(number, said("user", f"p{number}")) for number in range(1, 6)]
    first = entry(6, type="compaction", summary="sum 1", firstKeptEntryId="e0000003")
    second = entry(7, type="compaction", summary="sum 2", firstKeptEntryId="gone")
    session = parse(tmp_path, *prompts, first, second)
    texts = {message.message_id: message.text for message in session.messages}
    assert [[texts[gone] for gone in c.message_ids] for c in session.compactions] == [
        ["p1", "p2"],
        ["p3", "p4", "p5", "sum 1"],
    ]
    assert shape(session)[-2:] == [("injected", "sum 1"), ("injected", "sum 2")]


def test_version_1_has_no_ids_and_counts_records(tmp_path: Path) -> None:
    def old(number: int, text: str) -> dict[str, Any]:
        return {"type": "message", "timestamp": f"2025-12-01T12:00:0{number}.000Z", "message": said("user", text)}

    header = {key: value for key, value in HEADER.items() if key != "version"} | {
        "timestamp": "2025-12-01T11:00:00.000Z"
    }
    compaction = {"type": "compaction", "timestamp": "2025-12-01T12:00:08Z", "summary": "s", "firstKeptEntryIndex": 3}
    session = parse(tmp_path, old(1, "a"), old(1, "a"), old(2, "b"), compaction, header=header)
    assert [message.text for message in session.messages] == ["a", "a", "b", "s"]
    assert len({message.message_id for message in session.messages}) == 4
    assert [c.message_ids for c in session.compactions] == [tuple(m.message_id for m in session.messages[:2])]


def test_growth_keeps_the_ids(tmp_path: Path) -> None:
    records = [
        entry(1, said("user", "one")),
        entry(2, said("assistant", "two", call("ls"))),
        entry(3, said("user", "x")),
    ]
    whole = parse(tmp_path, *records).messages
    assert parse(tmp_path, *records[:2]).messages == whole[:3]


def test_a_line_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    record = entry(1, said("user", "one"))
    assert len(parse(tmp_path, record, record).messages) == 1


def test_a_title_may_come_before_the_header(tmp_path: Path) -> None:
    session = parse(tmp_path, HEADER, entry(1, said("user", "hi")), header={"type": "title", "title": "T"})
    assert (session.session_id, session.harness) == ("s-1", "pi")
    assert not Pi().recognises({"type": "session"}) and not Pi().recognises({"type": "message"})


def test_a_lost_header_loses_only_the_id(tmp_path: Path) -> None:
    session = parse(tmp_path, entry(2, said("user", "two")), header=entry(1, said("user", "one")))
    assert (session.session_id, session.name, len(session.messages)) == ("a", "one", 2)


def tree(tmp_path: Path, *links: str, **last: Any) -> list[str]:
    """The messages that stand in a tree written as `child<parent`, one prompt per entry."""
    entries = []
    for number, link in enumerate(links, start=1):
        child, _, parent = link.partition("<")
        entries.append(entry(number, said("user", child), id=child, parentId=parent or None))
    if last:
        entries.append(entry(59, type="branch_summary", id="summary") | last)
    session = parse(tmp_path, *entries)
    return [message.text for message in session.messages if message.role == "user" and not message.voided]


@each(
    ("links", "standing"),
    [
        pytest.param("a b<a c<b", "a b c", id="no branch"),
        pytest.param("a b<a c<b d<a e<d", "a d e", id="the user went back to a"),
        pytest.param("a b<a c<a d<a", "a d", id="twice"),
        pytest.param("a b<a c<b d<b e<a", "a e", id="branches of a branch"),
        pytest.param("a b<a c<b d<a e<c", "a b c e", id="and back to where they had been"),
        pytest.param("a b<lost c<b", "a b c", id="a parent was lost"),
        pytest.param("a b<lost c<lost", "a b c", id="the parent of two was lost"),
        pytest.param("a b c<b", "a b c", id="two conversations in one file"),
        pytest.param("a<b b<a c d<c", "a b c d", id="a cycle beside the conversation"),
        pytest.param("a<b b<a", "a b", id="nothing but a cycle"),
        pytest.param("a<a b<a", "a b", id="an entry that is its own parent"),
    ],
)
def test_a_branch_that_was_left_is_voided(tmp_path: Path, links: str, standing: str) -> None:
    assert tree(tmp_path, *links.split()) == standing.split()


def test_a_branch_that_a_summary_carried_over_stands(tmp_path: Path) -> None:
    links = ("a", "b<a", "c<b", "x<b")
    assert tree(tmp_path, *links, fromId="c", parentId="a", summary="tried b and c") == ["a", "b", "c"]
    assert tree(tmp_path, *links, fromId="root", parentId="a", summary="tried nothing") == ["a"]


def test_a_branch_whose_summary_was_left_in_turn_is_voided(tmp_path: Path) -> None:
    summary = entry(3, type="branch_summary", id="s", parentId="a", fromId="b", summary="tried b")
    prompts = [entry(1, said("user", "a"), id="a"), entry(2, said("user", "b"), id="b", parentId="a")]
    after = [
        entry(4, said("user", "c"), id="c", parentId="s"),
        entry(5, said("user", "d"), id="d", parentId="a"),
    ]
    carried = parse(tmp_path, *prompts, summary, after[0])
    assert [m.text for m in carried.messages if not m.voided] == ["a", "b", "tried b", "c"]
    assert [m.text for m in parse(tmp_path, *prompts, summary, *after).messages if not m.voided] == ["a", "d"]


def test_every_message_of_an_entry_that_was_left_is_voided(tmp_path: Path) -> None:
    session = parse(
        tmp_path,
        entry(1, said("user", "start")),
        entry(2, said("assistant", "I look.", call("edit", path="a.py")), parentId="e0000001"),
        entry(3, said("toolResult", "done", toolCallId="t1", toolName="edit"), parentId="e0000002"),
        entry(4, said("user", "stop"), parentId="e0000001"),
    )
    assert [message.voided for message in session.messages] == [False, True, True, True, False]


def test_a_label_on_a_message_is_no_branch(tmp_path: Path) -> None:
    session = parse(
        tmp_path,
        entry(1, said("user", "one")),
        entry(2, said("assistant", "two"), parentId="e0000001"),
        entry(3, type="label", parentId="e0000001", targetId="e0000001", label="here"),
        entry(4, said("user", "three"), parentId="e0000002"),
    )
    assert not any(message.voided for message in session.messages)


def test_copies_of_a_session_have_the_same_message_ids(tmp_path: Path) -> None:
    shared = [entry(1, said("user", "one")), entry(2, said("assistant", "two", call("ls")), parentId="e0000001")]
    origin = parse(tmp_path, *shared, entry(3, said("user", "three"), parentId="e0000002"))
    fork_header = HEADER | {"id": "s-2", "parentSession": "/elsewhere/s-1.jsonl"}
    fork = parse(tmp_path, *shared, entry(4, said("user", "four"), parentId="e0000002"), header=fork_header)
    # an export is a copy whose header is younger than all that is in it
    export = parse(tmp_path, *shared, header=HEADER | {"id": "s-3", "timestamp": "2026-08-01T00:00:00.000Z"})
    ids = [[message.message_id for message in session.messages] for session in (origin, fork, export)]
    assert ids[0][:3] == ids[1][:3] == ids[2]
    assert ids[0][3] != ids[1][3]
    assert [message.said_at for message in export.messages] == [message.said_at for message in origin.messages[:3]]


def test_a_change_that_failed_changed_no_file(tmp_path: Path) -> None:
    calls = said("assistant", call("write", path="a.py"), call("edit", "t2", path="b.py"))
    session = parse(
        tmp_path,
        entry(1, calls),
        entry(2, said("toolResult", "no such text", toolCallId="t2", toolName="edit", isError=True)),
        entry(3, said("toolResult", "ok", toolCallId="t1", toolName="write", isError=False)),
    )
    assert session.files_modified == ("a.py",)
