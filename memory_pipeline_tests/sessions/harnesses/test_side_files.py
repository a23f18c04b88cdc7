"""What agents keep beside their sessions is known to be theirs, and their sessions are not taken for it."""

from __future__ import annotations

from memory_pipeline.sessions.not_read import owner_of_side_file

BESIDE = (
    ".copilot/session-state/c-1/vscode.metadata.json",
    ".copilot/session-state/c-1/rewind-snapshots/index.json",
    ".gemini/antigravity-cli/brain/s-1/task.md.metadata.json",
    ".gemini/antigravity-cli/brain/s-1/.system_generated/messages/1.json",
    ".qwen/projects/-mill/chats/s-1.runtime.json",
    ".qwen/projects/-mill/subagents/s-1/agent-explore.meta.json",
    ".factory/sessions/-fence/d-1.settings.json",
    ".kimi-code/sessions/wd_kiln/session_1/state.json",
    ".kimi-code/sessions/wd_kiln/session_1/agents/main/tasks/t-1.json",
    ".kimi/sessions/ab12/s-1/context.jsonl",
    ".kimi/sessions/ab12/s-1/context_sub_1.jsonl",
    ".kimi/sessions/ab12/s-1/subagents/a1/meta.json",
)
SESSIONS = (
    ".copilot/session-state/c-1/events.jsonl",
    ".config/Code/User/workspaceStorage/ab12/GitHub.copilot-chat/transcripts/c-1.jsonl",
    ".qwen/projects/-mill/chats/s-1.jsonl",
    ".qwen/projects/-mill/subagents/s-1/agent-explore.jsonl",
    ".factory/sessions/-fence/d-1.jsonl",
    ".kimi-code/sessions/wd_kiln/session_1/agents/main/wire.jsonl",
    ".kimi/sessions/ab12/s-1/wire.jsonl",
    ".kimi/sessions/ab12/s-1/subagents/a1/wire.jsonl",
)


def test_what_lies_beside_sessions() -> None:
    assert [path for path in BESIDE if not owner_of_side_file(f"/home/ada/{path}")] == []
    assert [path for path in SESSIONS if owner_of_side_file(f"/home/ada/{path}")] == []
