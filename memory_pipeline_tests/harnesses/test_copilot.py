"""The reader of Copilot's events, of the CLI and of VS Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.copilot import Copilot
from memory_pipeline_tests.harnesses.written import read, shape, typed, write

START = {"sessionId": "c-1", "startTime": "2026-08-03T07:00:00Z", "context": {"cwd": "/home/ada/ferry"}}


def event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": f"e-{number}", "timestamp": f"2026-08-03T07:00:{number:02d}Z"}


def test_what_programs_type_is_injected(tmp_path: Path) -> None:
    session = read(
        tmp_path / "c-1/events.jsonl",
        event(0, "session.start", **START),
        event(1, "user.message", content="Sort the ferries."),
        event(2, "user.message", content="Continue.", isAutopilotContinuation=True),
        event(3, "user.message", content="Read the skill.", source="skill-sort"),
        event(4, "user.message", content="Count the decks.", parentAgentTaskId="t-1"),
        event(5, "user.message", content="Count the decks again.", parentToolCallId="call_1"),
        event(6, "user.message", content="Count them.") | {"agentId": "explore-1"},
    )
    assert typed(session) == ["Sort the ferries."]
    assert {message.role for message in session.messages[1:]} == {"injected"}
    assert (session.session_id, session.harness, session.cwd) == ("c-1", "copilot", "/home/ada/ferry")


def test_a_detached_run_of_another_session_has_no_prompt_of_a_person(tmp_path: Path) -> None:
    start = START | {"detachedFromSpawningParentSessionId": "c-0"}
    session = read(
        tmp_path / "c-1/events.jsonl",
        event(0, "session.start", **start),
        event(1, "user.message", content="Tidy the memory."),
    )
    assert shape(session) == [("injected", "Tidy the memory.")]


def test_a_call_counts_once_and_changes_nothing_when_it_fails(tmp_path: Path) -> None:
    arguments = {"path": "/a.py"}
    session = read(
        tmp_path / "c-1/events.jsonl",
        event(0, "session.start", **START),
        event(
            1,
            "assistant.message",
            content="",
            toolRequests=[{"toolCallId": "t", "name": "edit", "arguments": arguments}],
        ),
        event(2, "tool.execution_start", toolCallId="t", toolName="edit", arguments=arguments),
        event(3, "tool.execution_complete", toolCallId="t", success=False, error={"message": "No match.", "code": "x"}),
        event(4, "tool.execution_complete", toolCallId="lost", success=True, result="as text", toolName="grep"),
    )
    assert shape(session) == [("tool", "edit(path=/a.py)"), ("tool", "No match."), ("tool", "as text")]
    assert [(m.tool_name, m.is_error) for m in session.messages] == [("edit", False), ("edit", True), ("grep", False)]
    assert session.files_modified == ()


def test_the_title_of_the_cli_and_the_folder_of_the_editor_lie_beside_the_events(tmp_path: Path) -> None:
    prompt = event(1, "user.message", content="Hello.")
    cli = tmp_path / "session-state/c-1/events.jsonl"
    write(cli)
    (cli.parent / "workspace.yaml").write_text("id: c-1\nname: 'Ferry times'\ncwd: /x\n")
    session = read(cli, event(0, "session.start", sessionId="c-1"), prompt)
    assert (session.name, session.cwd) == ("Ferry times", "")
    chat = tmp_path / "workspaceStorage/ab12/GitHub.copilot-chat/transcripts/c-2.jsonl"
    write(chat)
    (tmp_path / "workspaceStorage/ab12/workspace.json").write_text(json.dumps({"folder": "file:///home/ada/my%20pier"}))
    session = read(chat, event(0, "session.start", sessionId="c-2"), prompt)
    assert (session.session_id, session.cwd) == ("c-2", "/home/ada/my pier")
    assert read(chat, prompt).session_id == "c-2"  # the header was lost


def test_a_failed_compaction_summarises_nothing_away(tmp_path: Path) -> None:
    session = read(
        tmp_path / "c-1/events.jsonl",
        event(0, "session.start", **START),
        event(1, "user.message", content="Hello."),
        event(2, "session.compaction_complete", success=False, error="too long"),
    )
    assert session.compactions == () and typed(session) == ["Hello."]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    chat = tmp_path / ".config/Code/User/workspaceStorage/ab12/GitHub.copilot-chat/transcripts"
    chat.mkdir(parents=True)
    assert Copilot().default_roots(tmp_path, {}) == [tmp_path / ".copilot/session-state", chat]
    assert Copilot().default_roots(tmp_path, {"COPILOT_HOME": "/moved"})[0] == Path("/moved/session-state")
