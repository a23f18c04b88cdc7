"""Factory Droid: `~/.factory/sessions/<folder>/<sessionId>.jsonl`: a header, then messages of Anthropic's blocks.

Droid's additions to a prompt are in `<system-reminder>` blocks. A sub-agent's session names the one that called it.
"""

from __future__ import annotations

from typing import ClassVar

from memory_pipeline.harnesses.content import plain_text, text_blocks
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

# State of the program, and the outcome of a turn.
_IGNORED = words("todo_state session_settings agent_turn_outcome session_end")

_ROLES = ("user", "assistant")


class Reader(RecordReader):
    reads: ClassVar = {"Read": "file_path"}
    changes: ClassVar = {"Edit": "file_path", "MultiEdit": "file_path", "Create": "file_path", "Write": "file_path"}

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.positions: dict[str, int] = {}

    def record(self, line: int, record: JsonObject) -> None:
        kind, message = text_of(record.get("type")), object_of(record.get("message"))
        if kind in _IGNORED:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.get("timestamp"))
        if kind == "session_start":
            self._header(record)
        elif kind == "message" and message:
            self._begin(record, kind, message)
            self._message(message)
        elif kind == "compaction_state":
            self._begin(record, kind, record)
            self.add("injected", text_of(record.get("summaryText")))
            last_summarised = text_of(object_of(record.get("anchorMessage")).get("id"))
            self.transcript.compact(self.positions.get(last_summarised, self.transcript.record - 1) + 1)
        else:
            self.transcript.unknown[kind] += 1

    def _header(self, header: JsonObject) -> None:
        if not self.session_id:
            self.session_id, self.began_at = text_of(header.get("id")), header.get("timestamp")
            self.title = text_of(header.get("sessionTitle")).strip() or text_of(header.get("title"))
            self.parent_session, self.cwd = text_of(header.get("callingSessionId")), text_of(header.get("cwd"))

    def _begin(self, record: JsonObject, kind: str, content: JsonObject) -> None:
        identity, time = text_of(record.get("id")), record.get("timestamp")
        if identity:
            self.positions.setdefault(identity, self.transcript.record)
        self.begin_record(identity and f"{identity}\x1f{time}", time, kind, content)

    def _message(self, message: JsonObject) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self.reply(content)
        elif role == "user":
            for block in objects_of(content):
                if block.get("type") == "tool_result":
                    failed = block.get("is_error") is True
                    self.result(text_of(block.get("tool_use_id")), plain_text(block.get("content")), failed=failed)
            self.prompt(text_blocks(content))
        else:
            self.transcript.unknown[f"message/{role}"] += 1


class Droid(Harness):
    name = "droid"
    folders = ("~/.factory/sessions",)
    side_files = (".factory/sessions/*.json", ".factory/sessions/*/*.settings.json")
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is the header, or a message if that was lost. Those of pi look the same, so pi is asked
        first."""
        message = record.get("message")
        return (record.get("type") == "session_start" and isinstance(record.get("id"), str)) or (
            record.get("type") == "message" and isinstance(message, dict) and message.get("role") in _ROLES
        )
