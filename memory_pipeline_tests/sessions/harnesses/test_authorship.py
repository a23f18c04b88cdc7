"""Who typed a prompt, by what each agent records."""

from __future__ import annotations

from memory_pipeline.sessions.harnesses.authorship import Evidence, is_person

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
