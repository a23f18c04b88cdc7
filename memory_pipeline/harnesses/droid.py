"""Factory Droid: `~/.factory/sessions/<folder>/<sessionId>.jsonl`: a header, then messages of Anthropic's blocks.

Droid's additions to a prompt are in `<system-reminder>` blocks. A sub-agent's session names the one that called it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from memory_pipeline.harnesses.content import Block, Content
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, plain_text, text_blocks
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

# State of the program, and the outcome of a turn.
_IGNORED = words("todo_state session_settings agent_turn_outcome session_end")

_ROLES = ("user", "assistant")


class _MessageFields(Fields):
    role: Any = None
    content: Content = None


class _Anchor(Fields):
    """The last message that a compaction summarised."""

    id: Any = None


class Record(Fields):
    """The header, a message or a state of the session."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    message: _MessageFields | Other = None
    title: Any = None
    sessionTitle: Any = None
    cwd: Any = None
    callingSessionId: Any = None
    summaryText: Any = None
    summaryTokens: Any = None
    anchorMessage: _Anchor | Other = None


class Droid(Harness[Record]):
    name = "droid"
    folders = ("~/.factory/sessions",)
    side_files = (".factory/sessions/*.json", ".factory/sessions/*/*.settings.json")
    record_type = Record

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is the header, or a message if that was lost. Those of pi look the same, so pi is asked
        first."""
        message = record.get("message")
        return (record.get("type") == "session_start" and isinstance(record.get("id"), str)) or (
            record.get("type") == "message" and isinstance(message, dict) and message.get("role") in _ROLES
        )

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader(RecordReader):
    reads: ClassVar = {"Read": "file_path"}
    changes: ClassVar = {"Edit": "file_path", "MultiEdit": "file_path", "Create": "file_path", "Write": "file_path"}

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.header = Record()
        self.positions: dict[str, int] = {}

    def finish(self) -> ParsedSession:
        header = self.header
        title = text_of(header.sessionTitle).strip() or text_of(header.title)
        return self.transcript.finish(
            text_of(header.id), title, self.cwd, began_at=header.timestamp, is_attended=self.is_attended
        )

    def record(self, line: int, record: Record) -> None:
        kind, message = text_of(record.type), record.message
        if kind in _IGNORED:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        if kind == "session_start":
            self.header = record if self.header.id is None else self.header
            self.parent_session, self.cwd = text_of(self.header.callingSessionId), text_of(self.header.cwd)
        elif kind == "message" and isinstance(message, _MessageFields):
            self._begin(record, kind, message)
            self._message(message)
        elif kind == "compaction_state":
            self._begin(record, kind, record)
            self.add("injected", text_of(record.summaryText))
            anchor = text_of(record.anchorMessage.id) if isinstance(record.anchorMessage, _Anchor) else ""
            self.transcript.compact(self.positions.get(anchor, self.transcript.record - 1) + 1)
        else:
            self.transcript.unknown[kind] += 1

    def _begin(self, record: Record, kind: str, content: Fields) -> None:
        if isinstance(record.id, str) and record.id:
            self.positions.setdefault(record.id, self.transcript.record)
            self.begin(f"{record.id}\x1f{record.timestamp}")
        else:
            self.begin_unnamed(record.timestamp, kind, content, text_of(self.header.id))

    def _message(self, message: _MessageFields) -> None:
        content = message.content
        blocks = [block for block in content if isinstance(block, Block)] if isinstance(content, list) else []
        if message.role == "assistant":
            for block in blocks or text_blocks(content):
                if block.type == "text":
                    self.add("assistant", text_of(block.text))
                elif block.type == "tool_use":
                    self.call(text_of(block.id), text_of(block.name), block.input)
        elif message.role == "user":
            for block in blocks:
                if block.type == "tool_result":
                    self.result(text_of(block.tool_use_id), plain_text(block.content), failed=block.is_error is True)
            self.prompt(text_blocks(content))
        else:
            self.transcript.unknown[f"message/{message.role}"] += 1
