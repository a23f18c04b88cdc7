"""pi coding agent: `~/.pi/agent/sessions/**/*.jsonl`, versions 1 (linear, entries without ids) to 3 (a tree).

All branches of the tree are read as one conversation in order of time; entries that a fork copied are not told apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from memory_pipeline.sessions.harnesses.content import call_text, content_text
from memory_pipeline.sessions.harnesses.records import Record, text_of, words
from memory_pipeline.sessions.harnesses.transcript import Place, Transcript
from memory_pipeline.sessions.harnesses.voices import voices
from memory_pipeline.sessions.model import ParsedSession, Role

HARNESS = "pi"

# Settings, bookkeeping of extensions and edits of the context only: nothing of it was said.
_IGNORED = words(
    "session model_change thinking_level_change custom label context_edit usage title leaf active_tools_change "
    "service_tier_change"
)
_SPILLED_RANGE = re.compile(r":(?:raw|\d+(?:-\d+)?)$")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")


def recognises(first_records: Sequence[Record]) -> bool:
    """A header, though not as the first record in some forks; or messages, where the header was lost."""
    return any(
        (record.get("type") == "session" and isinstance(record.get("id"), str) and "timestamp" in record)
        or (
            record.get("type") == "message" and isinstance(message := record.get("message"), dict) and "role" in message
        )
        for record in first_records
    )


def parse(path: Path, *, tool_text_limit: int = 1500) -> ParsedSession:
    """Read one session file, of any version."""
    return _Reader(Transcript(HARNESS, path, tool_text_limit)).read()


class _Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.header: Record = {}
        self.name = ""
        self.entries: dict[str, int] = {}
        self.place = Place(0, 0, None, None)
        self.identity: tuple[object, ...] = ()
        self.part = 0

    def read(self) -> ParsedSession:
        for record in self.transcript.records():
            self._entry(record)
        return self.transcript.finish(text_of(self.header.get("id")), self.name, text_of(self.header.get("cwd")))

    def _entry(self, entry: Record) -> None:
        kind = text_of(entry.get("type"))
        message = entry.get("message")
        said = message.get("timestamp") if isinstance(message, dict) else None
        self.place = self.transcript.place(entry.get("timestamp"), said)
        self.part = 0
        if kind == "message" and isinstance(message, dict):
            self._identify(entry, message.get("role"), message)
            self._message(message)
        elif kind == "compaction":
            self._identify(entry, kind, entry)
            self._add("injected", text_of(entry.get("summary")))
            self.transcript.compact(self._kept_start(entry))
        elif kind in ("branch_summary", "custom_message"):
            self._identify(entry, kind, entry)
            self._add("injected", text_of(entry.get("summary")) or content_text(entry.get("content"), self.place.line))
        elif kind == "session_info":
            self.name = text_of(entry.get("name")).strip() or self.name
        elif kind == "session" and not self.header:
            self.header = entry
        elif kind not in _IGNORED:
            self.transcript.unknown[kind] += 1
        if isinstance(entry.get("id"), str):
            self.entries.setdefault(entry["id"], self.transcript.record)

    def _identify(self, entry: Record, role: object, content: Record) -> None:
        """Version 1 has no ids, so there the content stands for them."""
        if isinstance(entry.get("id"), str):
            self.identity = (entry["id"], entry.get("timestamp"))
            return
        digest = hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()
        identity = (entry.get("timestamp"), role, digest)
        self.identity = (*identity, self.transcript.occurrence(*identity))

    def _kept_start(self, entry: Record) -> int:
        """Where the entries begin that stay in the context; when it is not found, pi keeps nothing of the old ones."""
        first_id, index = entry.get("firstKeptEntryId"), entry.get("firstKeptEntryIndex")
        if isinstance(first_id, str):
            return self.entries.get(first_id, self.transcript.record)
        if isinstance(index, int):
            return min(index, self.transcript.record)
        return self.transcript.record

    def _message(self, message: Record) -> None:
        role = message.get("role")
        content = message.get("content")
        if role == "user":
            for voice, text in voices(content, self.place.line):
                self._add(voice, text)
        elif role == "assistant":
            self._assistant(content)
        elif role == "toolResult":
            text = content_text(content, self.place.line) or "(no output)"
            self._add("tool", text, text_of(message.get("toolName")), message.get("isError") is True)
        elif role == "bashExecution":
            # a command that the user ran with `!`: the call and its output are one message
            output = f"bash(command={text_of(message.get('command'))})\n{text_of(message.get('output'))}"
            self._add("tool", output, "bash", message.get("exitCode") not in (0, None))
        elif role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
            self._add("injected", text_of(message.get("summary")) or content_text(content, self.place.line))
        elif role != "system":
            self.transcript.unknown[f"message/{role}"] += 1

    def _assistant(self, content: object) -> None:
        """Text and tool calls in their order; thinking is left out, and a failed turn often has nothing at all."""
        if isinstance(content, str):
            self._add("assistant", content)
        for block in content if isinstance(content, list) else []:
            if not isinstance(block, dict):
                continue
            if block.get("type") == "toolCall":
                self._call(text_of(block.get("name")), block.get("arguments"))
            elif block.get("type") == "text":
                self._add("assistant", text_of(block.get("text")))

    def _call(self, name: str, arguments: object) -> None:
        self._add("tool", call_text(name, arguments), name)
        path = arguments.get("path") if isinstance(arguments, dict) else None
        if isinstance(path, str) and path and not _URL.match(path):
            if name == "read":
                self.transcript.files_read.add(_SPILLED_RANGE.sub("", path))
            elif name in ("write", "edit"):
                self.transcript.files_modified.add(path)

    def _add(self, role: Role, text: str, tool_name: str | None = None, is_error: bool = False) -> None:
        identity = (*self.identity, self.part)
        self.part += 1
        self.transcript.add(role, text, self.place, identity, tool_name=tool_name, is_error=is_error)
