"""pi coding agent: `~/.pi/agent/sessions/**/*.jsonl`, versions 1 (linear, entries without ids) to 3 (a tree).

Forks, clones and exports copy entries with their ids and times, so their messages have the same ids in every file.
Messages on an abandoned branch are voided, unless a summary carried the branch over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from memory_pipeline.harnesses.content import content_text, identifying
from memory_pipeline.harnesses.protocol import Harness, expand
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import JsonObject, text_of, words
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.harnesses.tree import abandoned

# Settings, data of extensions and edits of the context: no messages.
_IGNORED = words(
    "model_change thinking_level_change custom label context_edit usage title leaf active_tools_change "
    "service_tier_change"
)
_SPILLED_RANGE = re.compile(r":(?:raw|\d+(?:-\d+)?)$")
_REFUSED = "Blocked by user"
"""The beginning of an error that extensions give if the user refuses a call, in which case nothing failed."""
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")


_MESSAGE_FIELDS = (
    *("role", "content", "timestamp", "toolCallId", "toolName", "isError", "details", "command", "output", "exitCode"),
    "summary",
)
_ENTRY_FIELDS = (
    *("type", "id", "parentId", "timestamp", "message", "content", "summary", "fromId", "firstKeptEntryId"),
    *("firstKeptEntryIndex", "tokensBefore", "name", "cwd"),
)
"""Fields that identify a message or an entry of version 1. Stored ids depend on their order."""


class Reader(RecordReader):
    reads: ClassVar = {"read": "path"}
    changes: ClassVar = {"write": "path", "edit": "path"}
    numbers_answers = True
    parent_id = ""  # the parent of a fork is stored as a path

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.has_header = False
        self.entries: dict[str, int] = {}
        self.parents: dict[str, str] = {}
        self.last = ""
        self.summarised: dict[str, str] = {}

    def voided(self) -> set[int]:
        return {self.entries[entry] for entry in abandoned(self.parents, self.last, self.summarised)}

    def record(self, line: int, entry: JsonObject) -> None:
        kind, identity, message = text_of(entry.get("type")), entry.get("id"), entry.get("message")
        if isinstance(identity, str) and kind != "session":
            self._link(identity, text_of(entry.get("parentId")))
        if kind in _IGNORED:
            self.transcript.skip_record()
            return
        said = message.get("timestamp") if isinstance(message, dict) else None
        self.transcript.next_record(line, entry.get("timestamp"), said)
        if kind == "message" and isinstance(message, dict):
            self._identify(entry, message.get("role"), message, _MESSAGE_FIELDS)
            self._message(message)
        elif kind == "compaction":
            self._identify(entry, kind, entry, _ENTRY_FIELDS)
            self.add("injected", text_of(entry.get("summary")))
            self.transcript.compact(self._kept_start(entry), tokens_before=entry.get("tokensBefore"))
        elif kind in ("branch_summary", "custom_message"):
            self._identify(entry, kind, entry, _ENTRY_FIELDS)
            self._summary(entry)
            if kind == "branch_summary":
                self.summarised[text_of(identity)] = text_of(entry.get("fromId"))
        elif kind == "session_info":
            self.title = text_of(entry.get("name")).strip() or self.title
        elif kind != "session":
            self.transcript.unknown[kind] += 1
        elif not self.has_header:
            self.has_header, self.began_at = True, entry.get("timestamp")
            self.session_id, self.cwd = text_of(identity), text_of(entry.get("cwd"))
            self.parent_session = text_of(entry.get("parentSession"))

    def _link(self, entry_id: str, parent_id: str) -> None:
        if entry_id not in self.entries:
            self.entries[entry_id] = self.transcript.record + 1
            self.parents[entry_id] = parent_id
        self.last = entry_id

    def _identify(self, entry: JsonObject, role: object, content: JsonObject, names: tuple[str, ...]) -> None:
        """Identify an entry by its id or, in version 1, by its content."""
        identity, time = entry.get("id"), entry.get("timestamp")
        if isinstance(identity, str):
            self.begin(f"{identity}\x1f{time}")
            return
        fields = {name: content.get(name) for name in names}
        fields["content"] = identifying(fields["content"])
        if isinstance(details := fields.get("details"), dict):
            fields["details"] = {name: details.get(name) for name in ("answers", "answer")}
        self.begin_repeatable(time, role, self.transcript.digest(msgspec.json.encode(fields)))

    def _kept_start(self, entry: JsonObject) -> int:
        """The first entry that stays in the context; if not found, pi keeps none of the old ones."""
        first_id, index = entry.get("firstKeptEntryId"), entry.get("firstKeptEntryIndex")
        if isinstance(first_id, str):
            return self.entries.get(first_id, self.transcript.record)
        if isinstance(index, int):
            return min(index, self.transcript.record)
        return self.transcript.record

    def _message(self, message: JsonObject) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self.reply(content, call="toolCall", given="arguments")  # a failed turn is often empty
        elif role == "toolResult":
            self._result(message, content)
        elif role == "user":
            self.prompt(content)
        elif role == "bashExecution":
            # a command that the user ran with `!`: the call and its output are one message
            output = f"bash(command={text_of(message.get('command'))})\n{text_of(message.get('output'))}"
            self.add("tool", output, tool_name="bash", is_error=message.get("exitCode") not in (0, None))
        elif role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
            self._summary(message)
        elif role != "system":
            self.transcript.unknown[f"message/{role}"] += 1

    def _summary(self, message: JsonObject) -> None:
        text = content_text(message.get("content"), self.transcript.place.line)
        self.add("injected", text_of(message.get("summary")) or text)

    def _result(self, message: JsonObject, content: object) -> None:
        text, failed = content_text(content, self.transcript.place.line), message.get("isError") is True
        self.result(
            text_of(message.get("toolCallId")),
            text,
            failed=failed,
            refused=failed and text.strip() == _REFUSED,
            name=text_of(message.get("toolName")),
            given=message.get("details"),
        )

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        read, changed = super().files(name, arguments)
        if any(map(_URL.match, read + changed)):
            return (), ()
        return tuple(_SPILLED_RANGE.sub("", path) for path in read), changed


class Pi(Harness):
    name = "pi"
    folders = ("${PI_CODING_AGENT_SESSION_DIR:-${PI_CODING_AGENT_DIR:-~/.pi/agent}/sessions}",)
    reader = Reader
    side_files = (
        "settings.json",
        "auth.json",
        "models.json",
        "sessions/sessions.json",  # OpenClaw's list of sessions
        "*.trajectory.jsonl",  # and its log
    )

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """The default folders, and the one in `sessionDir` of the agent's settings.json."""
        roots = super().default_roots(home, env)
        moved = [_session_dir(root.parent / "settings.json", home) for root in roots]
        return [*filter(None, moved), *roots]

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a header, which is not the first record in some forks, or a message if the header was
        lost."""
        message = record.get("message")
        return (record.get("type") == "session" and isinstance(record.get("id"), str) and "timestamp" in record) or (
            record.get("type") == "message" and isinstance(message, dict) and "role" in message
        )


def _session_dir(settings: Path, home: Path) -> Path | None:
    """The absolute folder in pi's settings; a relative one depends on where pi was started."""
    found = text_of(side_file(settings).get("sessionDir"))
    path = expand(found, home, {})[0] if found and "*" not in found else None
    return path if path and path.is_absolute() else None
