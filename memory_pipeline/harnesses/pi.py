"""pi coding agent: `~/.pi/agent/sessions/**/*.jsonl`, versions 1 (linear, entries without ids) to 3 (a tree).

Forks, clones and exports copy entries with their ids and times, so their messages have the same ids in every file.
Messages on an abandoned branch are voided, unless a summary carried the branch over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from memory_pipeline.harnesses.content import Block, Content, as_blocks, content_text
from memory_pipeline.harnesses.protocol import Harness, expand
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
from memory_pipeline.harnesses.speakers import split_content_by_speaker
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


class _Details(Fields):
    """The details in which a tool stores the user's answers."""

    answers: Any = None
    answer: Any = None


class _MessageFields(Fields):
    """`message` of an entry of type `message`."""

    role: Any = None
    content: Content = None
    timestamp: Any = None
    toolCallId: Any = None
    toolName: Any = None
    isError: Any = None
    details: _Details | Other = None
    command: Any = None
    output: Any = None
    exitCode: Any = None
    summary: Any = None


class Record(Fields):
    """An entry, or the header."""

    type: Any = None
    id: Any = None
    parentId: Any = None
    timestamp: Any = None
    message: _MessageFields | Other = None
    content: Content = None
    summary: Any = None
    fromId: Any = None
    firstKeptEntryId: Any = None
    firstKeptEntryIndex: Any = None
    tokensBefore: Any = None
    name: Any = None
    cwd: Any = None
    parentSession: Any = None


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

    def record(self, line: int, entry: Record) -> None:
        kind, message = text_of(entry.type), entry.message
        if isinstance(entry.id, str) and kind != "session":
            self._link(entry.id, text_of(entry.parentId))
        if kind in _IGNORED:
            self.transcript.skip_record()
            return
        spoken = message if isinstance(message, _MessageFields) else None
        content = as_blocks(entry.content)
        self.transcript.next_record(line, entry.timestamp, spoken.timestamp if spoken else None)
        if kind == "message" and spoken:
            self._identify(entry, spoken.role, spoken)
            self._message(spoken)
        elif kind == "compaction":
            self._identify(entry, kind, entry)
            self.add("injected", text_of(entry.summary))
            self.transcript.compact(self._kept_start(entry), tokens_before=entry.tokensBefore)
        elif kind in ("branch_summary", "custom_message"):
            self._identify(entry, kind, entry)
            self.add("injected", text_of(entry.summary) or content_text(content, line), content=content)
            if kind == "branch_summary":
                self.summarised[text_of(entry.id)] = text_of(entry.fromId)
        elif kind == "session_info":
            self.title = text_of(entry.name).strip() or self.title
        elif kind != "session":
            self.transcript.unknown[kind] += 1
        elif not self.has_header:
            self.has_header, self.began_at = True, entry.timestamp
            self.session_id, self.cwd = text_of(entry.id), text_of(entry.cwd)
            self.parent_session = text_of(entry.parentSession)

    def _link(self, entry_id: str, parent_id: str) -> None:
        if entry_id not in self.entries:
            self.entries[entry_id] = self.transcript.record + 1
            self.parents[entry_id] = parent_id
        self.last = entry_id

    def _identify(self, entry: Record, role: object, content: Fields) -> None:
        """Identify an entry by its id or, in version 1, by its content."""
        if isinstance(entry.id, str):
            self.begin(f"{entry.id}\x1f{entry.timestamp}")
            return
        # without a field that version 1 lacks, as a new field must not change stored ids
        fields = {name: value for name, value in msgspec.structs.asdict(content).items() if name != "parentSession"}
        self.begin_repeatable(entry.timestamp, role, self.transcript.digest(msgspec.json.encode(fields)))

    def _kept_start(self, entry: Record) -> int:
        """The first entry that stays in the context; if not found, pi keeps none of the old ones."""
        first_id, index = entry.firstKeptEntryId, entry.firstKeptEntryIndex
        if isinstance(first_id, str):
            return self.entries.get(first_id, self.transcript.record)
        if isinstance(index, int):
            return min(index, self.transcript.record)
        return self.transcript.record

    def _message(self, message: _MessageFields) -> None:
        role, content = message.role, as_blocks(message.content)
        line = self.transcript.place.line
        if role == "assistant":
            self._assistant(content)
        elif role == "toolResult":
            self._result(message, content)
        elif role == "user":
            for speaker, text in split_content_by_speaker(content, line):
                self.add(speaker, text, content=content)
        elif role == "bashExecution":
            # a command that the user ran with `!`: the call and its output are one message
            output = f"bash(command={text_of(message.command)})\n{text_of(message.output)}"
            self.add("tool", output, tool_name="bash", is_error=message.exitCode not in (0, None))
        elif role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
            self.add("injected", text_of(message.summary) or content_text(content, line), content=content)
        elif role != "system":
            self.transcript.unknown[f"message/{role}"] += 1

    def _result(self, message: _MessageFields, content: Content) -> None:
        text, failed = content_text(content, self.transcript.place.line), message.isError is True
        given = None
        if isinstance(message.details, _Details):
            given = {key: value for key, value in msgspec.structs.asdict(message.details).items() if value is not None}
        self.result(
            text_of(message.toolCallId),
            text,
            failed=failed,
            refused=failed and text.strip() == _REFUSED,
            name=text_of(message.toolName),
            given=given,
            content=content,
        )

    def _assistant(self, content: Content) -> None:
        """Add text and tool calls in order, without thinking; a failed turn is often empty."""
        if isinstance(content, str):
            self.add("assistant", content)
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, Block):
                continue
            if block.type == "toolCall":
                self.call(text_of(block.id), text_of(block.name), block.arguments)
            elif block.type == "text":
                self.add("assistant", text_of(block.text))

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        read, changed = super().files(name, arguments)
        if any(map(_URL.match, read + changed)):
            return (), ()
        return tuple(_SPILLED_RANGE.sub("", path) for path in read), changed


class Pi(Harness[Record]):
    name = "pi"
    folders = ("${PI_CODING_AGENT_SESSION_DIR:-${PI_CODING_AGENT_DIR:-~/.pi/agent}/sessions}",)
    record_type = Record
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
