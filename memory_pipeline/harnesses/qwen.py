"""Qwen Code: `~/.qwen/projects/<folder>/chats/<sessionId>.jsonl`, and its sub-agents' files in `subagents`.

The envelope of a record is like Claude Code's, with `uuid` and `parentUuid`; its message is like Gemini's, with
`parts`. After a rewind the chain continues before the withdrawn prompt.
"""

from __future__ import annotations

from typing import Any

from memory_pipeline.harnesses.answers import REFUSED
from memory_pipeline.harnesses.gemini.parts import Piece, parts_of, pieces_of
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.harnesses.tree import left_behind

_TYPES = ("user", "assistant", "tool_result", "system")
_TYPED = ("", "mid_turn_user_message")
"""Subtypes of user records that a person may have typed; others are the program's."""
_IGNORED = words(
    "session_notes ui_telemetry at_command attribution_snapshot background_task_completed session_source "
    "session_execution_engine omni_recall session_model session_approval_mode agent_bootstrap agent_retry "
    "agent_session_ready file_history_snapshot user_text_elements session_artifact_event session_artifact_snapshot "
    "session_sources_snapshot branch_checkpoint goal_state goal_turn_end realtime_message turn_result "
    "managed_session_header_v1 managed_session_event_v1 managed_session_commit_v1"
)
"""Subtypes of system records that are state of the program."""
_ROOT = "\x00"
"""The parent of the first record, which is no valid id."""


class _Message(Fields):
    parts: Any = None


class _ToolCallResult(Fields):
    status: Any = None
    resultDisplay: Any = None


class _Info(Fields):
    originalTokenCount: Any = None


class _Payload(Fields):
    displayText: Any = None
    phase: Any = None
    rawCommand: Any = None
    sentToModel: Any = None
    customTitle: Any = None
    parentSessionId: Any = None
    compressedHistory: Any = None
    info: _Info | Other = None


class Record(Fields):
    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parentUuid: Any = None
    sessionId: Any = None
    agentId: Any = None
    timestamp: Any = None
    cwd: Any = None
    gitBranch: Any = None
    provenance: Any = None
    isSidechain: Any = None
    message: _Message | Other = None
    toolCallResult: _ToolCallResult | Other = None
    systemPayload: _Payload | Other = None


class QwenCode(Harness[Record]):
    name = "qwen_code"
    folders = tuple(
        f"${{QWEN_RUNTIME_DIR:-${{QWEN_HOME:-~/.qwen}}}}/{folder}"
        for folder in ("projects/*/chats", "projects/*/subagents", "tmp/*/chats")
    )
    side_files = ("chats/*.runtime.json", "subagents/*/agent-*.meta.json")
    record_type = Record

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record has Claude Code's envelope with content that only Qwen Code writes."""
        message = record.get("message")
        return (
            record.get("type") in _TYPES
            and isinstance(record.get("sessionId"), str)
            and ((isinstance(message, dict) and isinstance(message.get("parts"), list)) or "systemPayload" in record)
        )

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.session_id = self.agent_id = self.title = self.branch = ""
        self.positions: dict[str, int] = {_ROOT: -1}
        self.parents: dict[str, str] = {_ROOT: ""}
        self.leaf = ""
        self.is_rewound = False

    def finish(self) -> ParsedSession:
        left = left_behind(self.parents, self.leaf) if self.is_rewound else set()
        session_id = f"{self.session_id}/{self.agent_id}" if self.agent_id else self.session_id
        voided = {self.positions[uuid] for uuid in left}
        return self.transcript.finish(
            session_id, self.title, self.cwd, voided=voided, branch=self.branch, is_attended=self.is_attended
        )

    def record(self, line: int, record: Record) -> None:
        kind, subtype = text_of(record.type), text_of(record.subtype)
        self._link(record, kind, subtype)
        if kind == "system" and subtype in _IGNORED:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        self._envelope(record)
        if isinstance(record.uuid, str) and record.uuid:
            self.begin(record.uuid)
        else:
            self.begin_unnamed(record.timestamp, kind, record, self.session_id)
        payload = record.systemPayload if isinstance(record.systemPayload, _Payload) else _Payload()
        if kind == "system":
            self._system(subtype, payload)
        elif kind in _TYPES:
            self._message(record, kind, text_of(payload.displayText))
        else:
            self.transcript.unknown[kind] += 1

    def _link(self, record: Record, kind: str, subtype: str) -> None:
        uuid = record.uuid
        if not isinstance(uuid, str) or uuid in self.positions:
            return
        is_rewind = subtype == "rewind"
        self.is_rewound = self.is_rewound or is_rewind
        # a record without a parent for another reason need not follow the beginning
        is_first = len(self.positions) == 1 or is_rewind
        self.positions[uuid] = self.transcript.record + 1
        self.parents[uuid] = text_of(record.parentUuid) or (_ROOT if is_first else "")
        if kind != "system" or is_rewind:  # titles are repeated after any record
            self.leaf = uuid

    def _envelope(self, record: Record) -> None:
        self.session_id = self.session_id or text_of(record.sessionId)
        self.cwd = self.cwd or text_of(record.cwd)
        self.branch = self.branch or text_of(record.gitBranch)
        if record.isSidechain is True:
            self.agent_id = self.agent_id or text_of(record.agentId)
            self.parent_session = self.parent_session or self.session_id

    def _message(self, record: Record, kind: str, displayed: str) -> None:
        message = record.message if isinstance(record.message, _Message) else _Message()
        parts = [part for part in parts_of(message.parts) if "inlineData" not in part and "fileData" not in part]
        said: JsonObject = {"type": "gemini" if kind == "assistant" else "user", "content": parts}
        typed = kind == "user" and text_of(record.subtype) in _TYPED and record.provenance in (None, "real_user")
        if typed and displayed:
            said["displayContent"] = displayed
        result = record.toolCallResult if isinstance(record.toolCallResult, _ToolCallResult) else _ToolCallResult()
        for piece in pieces_of(self.identity, said, self.transcript.place.line):
            if piece.role == "tool":
                self._tool(piece, result)
            else:
                self.add("injected" if piece.role == "user" and not typed else piece.role, piece.text)

    def _tool(self, piece: Piece, result: _ToolCallResult) -> None:
        is_result = piece.key[-1] == "result"
        refused = is_result and result.status == "cancelled"
        text = piece.text or (text_of(result.resultDisplay) or "(no output)" if is_result else "")
        failed = is_result and result.status == "error"
        answer = REFUSED if refused else None
        handle = self.add("tool", text, tool_name=piece.tool_name, is_error=failed, answer=answer)
        if not is_result:
            self.transcript.touch(handle, read=piece.read, modified=piece.modified)

    def _system(self, subtype: str, payload: _Payload) -> None:
        if subtype == "chat_compression":
            history = payload.compressedHistory if isinstance(payload.compressedHistory, list) else []
            summary = history[0].get("parts") if history and isinstance(history[0], dict) else None
            self.add("injected", "\n".join(text_of(part.get("text")) for part in parts_of(summary)))
            tokens = payload.info.originalTokenCount if isinstance(payload.info, _Info) else None
            self.transcript.compact(self.transcript.record, tokens_before=tokens)
        elif subtype == "slash_command":
            # text sent to the model follows as a prompt
            if payload.phase == "invocation" and payload.sentToModel is not True:
                self.prompt(text_of(payload.rawCommand).partition(" ")[2])
        elif subtype == "custom_title":
            self.title = text_of(payload.customTitle).strip() or self.title
        elif subtype == "parent_session":
            self.parent_session = text_of(payload.parentSessionId)
        elif subtype != "rewind":
            self.transcript.unknown[f"system/{subtype}"] += 1
