"""What agents keep beside their sessions is known to be theirs, and their sessions are not taken for it."""

from __future__ import annotations

from memory_pipeline.harnesses.model import Source
from memory_pipeline.sessions.discovery import owner_of_side_file

BESIDE = {
    ".copilot/session-state/c-1/vscode.metadata.json": "copilot",
    ".copilot/session-state/c-1/rewind-snapshots/index.json": "copilot",
    ".gemini/antigravity-cli/brain/s-1/task.md.metadata.json": "antigravity",
    ".gemini/antigravity-cli/brain/s-1/.system_generated/messages/1.json": "antigravity",
    ".qwen/projects/-mill/chats/s-1.runtime.json": "qwen_code",
    ".qwen/projects/-mill/subagents/s-1/agent-explore.meta.json": "qwen_code",
    ".factory/sessions/-fence/d-1.settings.json": "droid",
    ".kimi-code/sessions/wd_kiln/session_1/state.json": "kimi_code",
    ".kimi-code/sessions/wd_kiln/session_1/agents/main/tasks/t-1.json": "kimi_code",
    ".kimi/sessions/ab12/s-1/context.jsonl": "kimi_cli",
    ".kimi/sessions/ab12/s-1/context_sub_1.jsonl": "kimi_cli",
    ".kimi/sessions/ab12/s-1/subagents/a1/meta.json": "kimi_cli",
}
SESSIONS = {
    ".copilot/session-state/c-1/events.jsonl": "copilot",
    ".config/Code/User/workspaceStorage/ab12/GitHub.copilot-chat/transcripts/c-1.jsonl": "copilot",
    ".qwen/projects/-mill/chats/s-1.jsonl": "qwen_code",
    ".qwen/projects/-mill/subagents/s-1/agent-explore.jsonl": "qwen_code",
    ".factory/sessions/-fence/d-1.jsonl": "droid",
    ".kimi-code/sessions/wd_kiln/session_1/agents/main/wire.jsonl": "kimi_code",
    ".kimi/sessions/ab12/s-1/wire.jsonl": "kimi_cli",
    ".kimi/sessions/ab12/s-1/subagents/a1/wire.jsonl": "kimi_cli",
}


def owner(path: str, agent: str) -> str | None:
    return owner_of_side_file(Source(f"/home/ada/{path}", agent=agent))


def test_what_lies_beside_sessions() -> None:
    assert {path: owner(path, agent) for path, agent in BESIDE.items()} == BESIDE
    assert [path for path, agent in SESSIONS.items() if owner(path, agent)] == []
