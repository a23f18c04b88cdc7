"""The reader of Qwen Code's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.qwen import QwenCode
from memory_pipeline_tests.harnesses.written import read, shape, typed


def record(number: int, kind: str, *parts: Any, after: int | None = -1, **fields: Any) -> dict[str, Any]:
    """A record that follows the one before it, or the one of number `after`."""
    base: dict[str, Any] = {
        "uuid": f"q-{number}",
        "parentUuid": None if after is None or number == 0 else f"q-{number - 1 if after < 0 else after}",
        "sessionId": "s-1",
        "timestamp": f"2026-09-10T10:00:{number:02d}Z",
        "type": kind,
        "cwd": "/home/ada/mill",
    }
    texts = [{"text": part} if isinstance(part, str) else part for part in parts]
    return base | ({"message": {"role": "user", "parts": texts}} if parts else {}) | fields


def test_it_is_not_taken_for_claude_code(tmp_path: Path) -> None:
    claude = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "Hello."}}
    assert read(tmp_path / "a.jsonl", claude).harness == "claude_code"
    session = read(
        tmp_path / "b.jsonl", record(0, "system", subtype="rewind", systemPayload={}), record(1, "user", "Hi.")
    )
    assert (session.harness, session.session_id, session.cwd) == ("qwen_code", "s-1", "/home/ada/mill")


def test_what_programs_type_is_injected(tmp_path: Path) -> None:
    session = read(
        tmp_path / "a.jsonl",
        record(0, "user", "Grind it.", provenance="real_user"),
        record(1, "user", "Check the hopper.", subtype="cron", provenance="system"),
        record(2, "user", "A task ended.", subtype="notification"),
        record(3, "user", "Go on.", provenance="goal_runtime"),
        record(4, "user", "And sweep.", subtype="mid_turn_user_message", provenance="real_user"),
    )
    assert typed(session) == ["Grind it.", "And sweep."]
    started = record(0, "system", subtype="parent_session", systemPayload={"parentSessionId": "s-0"})
    assert typed(read(tmp_path / "b.jsonl", started, record(1, "user", "Grind more."))) == []


def test_a_rewind_voids_what_came_after(tmp_path: Path) -> None:
    talk = [
        record(0, "user", "One."),
        record(1, "assistant", "1"),
        record(2, "user", "Two."),
        record(3, "assistant", "2"),
    ]
    rewind = {"subtype": "rewind", "systemPayload": {"truncatedCount": 2}}
    session = read(tmp_path / "a.jsonl", *talk, record(4, "system", after=1, **rewind), record(5, "user", "Three."))
    assert typed(session) == ["One.", "Three."]
    to_start = record(4, "system", after=None, **rewind)
    assert typed(read(tmp_path / "b.jsonl", *talk, to_start, record(5, "user", "Three."))) == ["Three."]
    # titles are written again at the end, behind any record
    title = record(6, "system", after=0, subtype="custom_title", systemPayload={"customTitle": "Numbers"})
    session = read(
        tmp_path / "c.jsonl", *talk, record(4, "system", after=1, **rewind), record(5, "user", "Three."), title
    )
    assert (typed(session), session.name) == (["One.", "Three."], "Numbers")


def test_a_branch_of_a_session_has_the_same_messages(tmp_path: Path) -> None:
    origin = {"sessionId": "s-1", "messageUuid": "q-0"}
    first = read(tmp_path / "a.jsonl", record(0, "user", "One."))
    branch = read(tmp_path / "b.jsonl", record(0, "user", "One.", forkedFrom=origin) | {"sessionId": "s-2"})
    assert first.messages[0].message_id == branch.messages[0].message_id


def test_calls_and_results(tmp_path: Path) -> None:
    call = {"functionCall": {"id": "c-1", "name": "edit", "args": {"file_path": "/a.txt"}}}
    look = {"functionCall": {"id": "c-2", "name": "read_file", "args": {"file_path": "/b.txt"}}}
    answer = {"functionResponse": {"id": "c-1", "name": "edit", "response": {}}}
    session = read(
        tmp_path / "a.jsonl",
        record(0, "assistant", {"text": "hm", "thought": True}, "I edit.", call, look),
        record(1, "tool_result", answer, toolCallResult={"status": "cancelled", "resultDisplay": "Cancelled."}),
    )
    assert [role for role, _ in shape(session)] == ["assistant", "tool", "tool", "tool"]
    assert (session.files_read, session.files_modified) == (("/b.txt",), ("/a.txt",))
    refused = session.messages[-1]
    assert (refused.tool_name, refused.is_error, refused.answer_to) == ("edit", False, "refused call")


def test_a_command_that_is_sent_to_the_model_counts_once(tmp_path: Path) -> None:
    sent = {"phase": "invocation", "rawCommand": "/plan the mill", "sentToModel": True}
    kept = {"phase": "invocation", "rawCommand": "/remember sacks weigh 50 kg"}
    shown = {"phase": "result", "rawCommand": "/remember sacks weigh 50 kg"}
    session = read(
        tmp_path / "a.jsonl",
        record(0, "user", "Plan the mill."),
        *(record(n, "system", subtype="slash_command", systemPayload=p) for n, p in enumerate((sent, kept, shown), 1)),
    )
    assert typed(session) == ["Plan the mill.", "sacks weigh 50 kg"]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    for folder in ("projects/-mill/chats", "projects/-mill/subagents", "tmp/ab12/chats", "projects/-mill/other"):
        (tmp_path / ".qwen" / folder).mkdir(parents=True)
    found = [str(root.relative_to(tmp_path / ".qwen")) for root in QwenCode().default_roots(tmp_path, {})]
    assert found == ["projects/-mill/chats", "projects/-mill/subagents", "tmp/ab12/chats"]
    assert QwenCode().default_roots(Path("/nobody"), {"QWEN_HOME": str(tmp_path / ".qwen")})
