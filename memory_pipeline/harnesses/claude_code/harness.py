"""Claude Code and the agents with its format: the folders of their sessions, and the recognition of a file."""

from __future__ import annotations

from memory_pipeline.harnesses.claude_code.reader import Reader
from memory_pipeline.harnesses.claude_code.record_types import CHAIN_TYPES, QUEUE, is_ignored
from memory_pipeline.harnesses.claude_code.records import Record
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.records import JsonObject
from memory_pipeline.harnesses.transcript import Transcript

_FOLDERS = ("${CLAUDE_CONFIG_DIR:-~/.claude,${XDG_CONFIG_HOME:-~/.config}/claude}/projects",)


class ClaudeCode(Harness[Record]):
    name = format = "claude_code"
    record_type = Record
    side_files = (
        "sessions-index.json",
        "agent-*.meta.json",  # how a sub-agent was started
        "subagents/journal.jsonl",
        "workflows/*/journal.jsonl",
        "workflows/wf_*.json",
        "tool-results/*.json",
        "tool-results/*.jsonl",
        "local-agent-mode-sessions/*/*/local_*.json",  # Cowork's description of a session
        "history.jsonl",
        "stats-cache.json",
        "settings.json",
        "settings.local.json",
        "todos/*.json",
        "tasks/*/*.json",
    )

    def __init__(self, name: str = "claude_code", *folders: str) -> None:
        self.name, self.folders = name, folders or _FOLDERS

    def retention_days(self, settings: JsonObject) -> float | None:
        """The days of retention, 30 by default. Claude Code deletes nothing while the value is invalid; 0 once meant
        everything."""
        if self.name != self.format:  # unknown for agents that share the format
            return None
        days = settings.get("cleanupPeriodDays", 30)
        return days if type(days) in (int, float) and days >= 0 else None

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is part of the chain, or a small record that only Claude Code writes at the top of a
        file."""
        kind = record.get("type")
        return isinstance(kind, str) and (
            (isinstance(record.get("sessionId"), str) and (kind in CHAIN_TYPES or is_ignored(kind) or kind == QUEUE))
            or (kind == "summary" and "leafUuid" in record)
            or (kind == "file-history-snapshot" and "messageId" in record)
        )

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)
