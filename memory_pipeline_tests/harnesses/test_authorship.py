"""Who typed a prompt, by what each agent records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memory_pipeline.harnesses.model import ParsedSession, Source
from memory_pipeline.harnesses.speakers import Evidence, is_person, split_by_speaker
from memory_pipeline.sessions.file_rows import new_row, read_row
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.sessions.windows import reason_not_observed, windows_by_day

CLAUDE = Evidence("claude_code", cwd="/srv/api")
CODEX = Evidence("codex", cwd="/srv/api")
PI = Evidence("pi", cwd="/srv/api")

PEOPLE = {
    "nothing recorded": Evidence(),
    "an old version": CLAUDE,
    "a terminal": CLAUDE._replace(entrypoint="cli", prompt_source="typed"),
    "an editor, which sends prompts as a program does": CLAUDE._replace(
        entrypoint="claude-vscode", prompt_source="sdk", turn_origin="sdk"
    ),
    "the app": CLAUDE._replace(entrypoint="claude-desktop", prompt_source="sdk"),
    "a person in an editor on the SDK": CLAUDE._replace(entrypoint="sdk-ts", prompt_source="sdk", origin="human"),
    "a turn of a person": CLAUDE._replace(entrypoint="sdk-ts", turn_origin="human"),
    "Codex's terminal": CODEX._replace(originator="codex-tui", entrypoint="cli", turn_origin="user"),
    "Codex before `source`": CODEX._replace(originator="codex_cli_rs"),
    "Codex's app": CODEX._replace(originator="Codex Desktop", entrypoint="vscode"),
    "an unknown editor on Codex": CODEX._replace(originator="t9_editor", entrypoint="vscode"),
    "a fork in pi": PI._replace(parent_session="/s/parent.jsonl"),
    "a fork with a name": PI._replace(parent_session="/s/parent.jsonl", session_name="try sqlite"),
    "a session about sub-agents": PI._replace(session_name="subagent-docs"),
    "a directory of a similar name": CLAUDE._replace(entrypoint="cli", cwd="/srv/claude-mem"),
}
PROGRAMS = {
    "a script": CLAUDE._replace(entrypoint="sdk-cli", prompt_source="sdk"),
    "a script that says no more": CLAUDE._replace(entrypoint="sdk-py"),
    "a program's turn without an entry point": CLAUDE._replace(turn_origin="sdk"),
    "a program's prompt without an entry point": CLAUDE._replace(prompt_source="sdk"),
    "a notice of a task": CLAUDE._replace(entrypoint="cli", origin="task-notification"),
    "a notice that only the turn names": CLAUDE._replace(entrypoint="cli", turn_origin="task_notification"),
    "another session": CLAUDE._replace(entrypoint="cli", origin="peer", turn_origin="human"),
    "an unknown entry point": CLAUDE._replace(entrypoint="something-new"),
    "a scheduled run": CLAUDE._replace(entrypoint="remote_trigger"),
    "an observer of sessions": CLAUDE._replace(entrypoint="cli", cwd="/home/ada/.claude-mem/observer-sessions"),
    "an observer that was moved": CLAUDE._replace(origin="human", cwd="/data/memory/observer-sessions"),
    "a probe of an account": CLAUDE._replace(cwd="/Users/ada/Library/Application Support/CodexBar/ClaudeProbe"),
    "codex exec": CODEX._replace(originator="codex_exec", entrypoint="exec", turn_origin="user"),
    "codex exec in an editor's terminal": CODEX._replace(originator="codex_vscode", entrypoint="exec"),
    "Codex as a server": CODEX._replace(originator="codex_cli_rs", entrypoint="mcp"),
    "Codex's SDK": CODEX._replace(originator="codex_sdk_ts", entrypoint="vscode"),
    "Codex's sub-agent": CODEX._replace(originator="codex-tui", entrypoint="subagent"),
    "Codex's thread of an automation": CODEX._replace(
        originator="Codex Desktop", entrypoint="vscode", turn_origin="automation"
    ),
    "pi's sub-agent": PI._replace(parent_session="/s/parent.jsonl", session_name="subagent-worker"),
    "pi's sub-agent without its parent": PI._replace(session_name="subagent-worker-1a2b-1"),
    "OpenCode's sub-agent": Evidence("opencode", parent_session="ses_1"),
}


def test_who_typed_a_prompt() -> None:
    wrong = [name for name, evidence in PEOPLE.items() if not is_person(evidence)]
    wrong += [name for name, evidence in PROGRAMS.items() if is_person(evidence)]
    assert not wrong


def claude(number: int, kind: str = "user", content: Any = "Always reply with JSON.", **fields: Any) -> dict[str, Any]:
    base = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s-1", "cwd": "/srv/api", "type": kind}
    timestamp = f"2026-09-20T10:00:{number:02}.000Z"
    return base | {"timestamp": timestamp, "message": {"role": kind, "content": content}} | fields


SCRIPT = {"entrypoint": "sdk-cli", "promptSource": "sdk"}
QUESTION = {"questions": [{"question": "Which database?", "options": [{"label": "sqlite"}, {"label": "duckdb"}]}]}


def parsed(folder: Path, *records: dict[str, Any]) -> ParsedSession:
    path = folder / "s-1.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return parse_file(path)


def roles(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


def reasons(session: ParsedSession) -> set[str | None]:
    row = read_row(new_row("s-1.jsonl", Source("s-1.jsonl"), "1"), session, ZoneInfo("UTC"))
    return {
        reason_not_observed(window, idle=True, typed=9, min_user_messages=1, has_plan=row["begins_with_plan"] is True)
        for windows in windows_by_day(session, ZoneInfo("UTC")).values()
        for window in windows
    }


def test_a_script_around_claude_code(tmp_path: Path) -> None:
    said = [claude(1, **SCRIPT), claude(2, "assistant", [{"type": "text", "text": "{}"}], entrypoint="sdk-cli")]
    session = parsed(tmp_path, *said)
    assert roles(session) == [("injected", "Always reply with JSON."), ("assistant", "{}")]
    assert reasons(session) == {"no message of a person in it"}
    assert not session.is_attended


def test_a_person_who_goes_on_with_a_script_s_session(tmp_path: Path) -> None:
    session = parsed(tmp_path, claude(1, **SCRIPT), claude(2, content="no prose either", entrypoint="cli"))
    assert [role for role, _ in roles(session)] == ["injected", "user"]
    assert session.is_attended


def test_a_program_s_answers_and_queued_prompts(tmp_path: Path) -> None:
    """What is answered through a tool where no person sits, and what a program lets wait, is not the user's."""
    ask = [{"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": QUESTION}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "go on"}]
    queue = {"type": "queue-operation", "operation": "enqueue", "content": "and then?", "sessionId": "s-1"}
    for fields, speaker in ((SCRIPT, "injected"), ({"entrypoint": "cli"}, "user")):
        entry = {"entrypoint": fields["entrypoint"]}
        session = parsed(
            tmp_path,
            claude(1, **fields),
            claude(2, "assistant", ask, **entry),
            claude(3, content=result, toolUseResult={"answers": {"Which database?": "sqlite"}}, **entry),
            queue | {"timestamp": "2026-09-20T10:00:05.000Z"},
        )
        spoken = [(m.role, m.text, m.answer_to) for m in session.messages if m.role in ("user", "injected")]
        answered = ("question", "approved call") if speaker == "user" else (None, None)
        assert spoken == [
            (speaker, "Always reply with JSON.", None),
            (speaker, "sqlite", answered[0]),
            (speaker, "go on", answered[1]),
            (speaker, "and then?", None),
        ], fields


def test_a_plan_that_a_program_hands_over_was_approved_by_nobody(tmp_path: Path) -> None:
    plan = "Implement the following plan:\n\n1. Move to sqlite."
    assert reasons(parsed(tmp_path, claude(1, content=plan, **SCRIPT))) == {"no message of a person in it"}
    assert reasons(parsed(tmp_path, claude(1, content=plan, entrypoint="cli"))) == {None}


def test_what_a_program_rewound_is_voided(tmp_path: Path) -> None:
    left, kept = claude(3, content="use pandas", **SCRIPT), claude(4, content="use csv", parentUuid="u2", **SCRIPT)
    session = parsed(tmp_path, claude(1, **SCRIPT), claude(2, "assistant", "{}"), left, kept)
    assert [m.text for m in session.messages if m.voided] == ["use pandas"]


def test_a_sub_agent_of_pi(tmp_path: Path) -> None:
    at = "2026-09-20T11:00:00.000Z"
    header = {
        "type": "session",
        "version": 3,
        "id": "s-1",
        "timestamp": at,
        "cwd": "/srv/api",
        "parentSession": "/p.jsonl",
    }
    text = "Step limit reached after 12 tool calls (soft 12, hard 18). Stop searching."
    named = {"type": "session_info", "id": "e0", "parentId": None, "timestamp": at, "name": "subagent-worker-1a2b-1"}
    entries = [
        {"type": "message", "id": f"e{n}", "parentId": f"e{n - 1}", "timestamp": at, "message": message}
        for n, message in enumerate(
            [
                {"role": "user", "content": "Return arrays."},
                {"role": "assistant", "content": "[]"},
                {"role": "user", "content": text},
            ],
            start=1,
        )
    ]
    session = parsed(tmp_path, header, *entries, named)
    assert [role for role, _ in roles(session)] == ["injected", "assistant", "injected"]
    assert reasons(session) == {"no message of a person in it"}
    fork = parsed(tmp_path, header, *entries)
    assert [role for role, _ in roles(fork)] == ["user", "assistant", "injected"]
    assert [m.message_id for m in fork.messages] == [m.message_id for m in session.messages]


NOTICES = (
    "Tool budget soft limit reached after 9 tool calls (soft 9, hard 12). Finish.",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]\nA task has ended.",
    "Another Claude session sent a message:\n<agent-message>done</agent-message>",
    "<<autonomous-loop-dynamic>>",
)
WORDS = ("Step limit reached after lunch, let us raise it", "the step limit reached after 9 tool calls is too low")


def test_notices_of_harnesses() -> None:
    assert [text for text in NOTICES if split_by_speaker(text) != [("injected", text)]] == []
    assert [text for text in WORDS if split_by_speaker(text) != [("user", text)]] == []
