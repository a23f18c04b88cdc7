"""The reader of pi sessions, on small files of each version."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.sessions.harnesses import pi
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.sessions.model import ParsedSession

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


@pytest.mark.parametrize("bad", [None, "soon", 0, 10**18, {"at": 1}])
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
    assert not pi.recognises({"type": "session"}) and not pi.recognises({"type": "message"})


def test_a_lost_header_loses_only_the_id(tmp_path: Path) -> None:
    session = parse(tmp_path, entry(2, said("user", "two")), header=entry(1, said("user", "one")))
    assert (session.session_id, session.name, len(session.messages)) == ("a", "one", 2)
