"""Kimi CLI (the Python version): `~/.kimi/sessions/<hash of the folder>/<sessionId>/wire.jsonl`.

A record is an event of the wire, `{timestamp, message: {type, payload}}`, with the time in seconds and without an id.
Pieces of a stream are joined before writing. Events of a sub-agent are also in a separate file.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from memory_pipeline.harnesses.content import plain_text, text_blocks
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_IGNORED = words(
    "TurnEnd StepBegin StepInterrupted StepRetry CompactionBegin HookTriggered HookResolved HookRequest "
    "MCPLoadingBegin MCPLoadingEnd StatusUpdate ToolCallPart SubagentEvent PlanDisplay QuestionRequest ToolCallRequest"
)


class Reader(RecordReader):
    reads: ClassVar = {"ReadFile": "path"}
    changes: ClassVar = {"WriteFile": "path", "StrReplaceFile": "path"}

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        folder = Path(transcript.source.path).parent
        agent = folder.name if folder.parent.name == "subagents" else ""
        session = folder.parents[1] if agent else folder
        self.session_id = f"{session.name}/{agent}" if agent else session.name
        self.title = text_of(side_file(session / "state.json").get("custom_title"))
        self.cwd = _folder_of(session)
        self.parent_session = session.name if agent else ""
        self.requests: dict[str, str] = {}
        self.refused: set[str] = set()

    def record(self, line: int, record: JsonObject) -> None:
        event = object_of(record.get("message"))
        kind, payload = text_of(event.get("type")), object_of(event.get("payload"))
        if kind in _IGNORED or (not kind and record.get("type") == "metadata"):
            self.transcript.skip_record()
            return
        seconds = record.get("timestamp")
        self.transcript.next_record(line, seconds * 1000 if isinstance(seconds, int | float) else seconds)
        self.begin_record("", seconds, kind, event)
        if kind in ("TurnBegin", "SteerInput"):
            self.prompt(text_blocks(payload.get("user_input")))
        elif kind == "ContentPart":
            self.add("assistant", text_of(payload.get("text")) if payload.get("type") == "text" else "")
        elif kind == "ToolCall":
            function = object_of(payload.get("function"))
            self.call(text_of(payload.get("id")), text_of(function.get("name")), function.get("arguments"))
        elif kind == "ToolResult":
            self._result(payload)
        elif kind == "CompactionEnd":
            self.transcript.compact(self.transcript.record)
        elif kind == "ApprovalRequest":
            self.requests[text_of(payload.get("id"))] = text_of(payload.get("tool_call_id"))
        elif kind == "ApprovalResponse":
            self._approval(payload)
        elif kind == "Notification":
            self.add("injected", f"{text_of(payload.get('title'))}\n{text_of(payload.get('body'))}".strip())
        elif kind == "BtwBegin":
            self.prompt(text_of(payload.get("question")))
        elif kind == "BtwEnd":
            self.add("assistant", text_of(payload.get("response")))
        else:
            self.transcript.unknown[kind] += 1

    def _approval(self, payload: JsonObject) -> None:
        """Add the user's decision about a call, which may give the reason of a refusal."""
        call_id = self.requests.get(text_of(payload.get("request_id")), "")
        if payload.get("response") == "reject":
            self.refused.add(call_id)
            self.refusal(call_id, text_of(payload.get("feedback")))

    def _result(self, payload: JsonObject) -> None:
        returned, call_id = object_of(payload.get("return_value")), text_of(payload.get("tool_call_id"))
        text = plain_text(returned.get("output")) or text_of(returned.get("message"))
        self.result(call_id, text, failed=returned.get("is_error") is True, refused=call_id in self.refused)
        self.refused.discard(call_id)


class KimiCli(Harness):
    name = "kimi_cli"
    folders = ("${KIMI_SHARE_DIR:-~/.kimi}/sessions",)
    side_files = (
        ".kimi/sessions/*/*/*.json",
        ".kimi/sessions/*/*/context*.jsonl",
        "subagents/*/meta.json",
        "subagents/*/context*.jsonl",
    )
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is an event; the header before it is like Kimi Code's, except for the time."""
        message = record.get("message")
        return isinstance(message, dict) and isinstance(message.get("type"), str) and "payload" in message


def _folder_of(session: Path) -> str:
    """The folder in which the session ran: the one recorded by Kimi CLI whose hash is the name of the session's
    folder."""
    if len(session.parents) < 3:
        return ""
    noted = objects_of(side_file(session.parents[2] / "kimi.json").get("work_dirs"))
    paths = [text_of(entry.get("path")) for entry in noted]
    name = session.parent.name.rpartition("_")[2]
    return next((path for path in paths if _hash(path) == name), "")


def _hash(path: str) -> str:
    return hashlib.md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
