"""Qwen Code: `~/.qwen/projects/<folder>/chats/<sessionId>.jsonl`, and its sub-agents' files in `subagents`.

The envelope of a record is like Claude Code's, with `uuid` and `parentUuid`; its message is like Gemini's, with
`parts`. After a rewind the chain continues before the withdrawn prompt.
"""

from __future__ import annotations

from memory_pipeline.harnesses.answers import REFUSED
from memory_pipeline.harnesses.gemini.parts import Piece, parts_of, pieces_of
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.harnesses.tree import abandoned

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


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.positions: dict[str, int] = {_ROOT: -1}
        self.parents: dict[str, str] = {_ROOT: ""}
        self.leaf = ""
        self.is_rewound = False

    def voided(self) -> set[int]:
        left = abandoned(self.parents, self.leaf) if self.is_rewound else set()
        return {self.positions[uuid] for uuid in left}

    def record(self, line: int, record: JsonObject) -> None:
        kind, subtype = text_of(record.get("type")), text_of(record.get("subtype"))
        uuid, time = text_of(record.get("uuid")), record.get("timestamp")
        if uuid and uuid not in self.positions:
            self._link(uuid, text_of(record.get("parentUuid")), kind, subtype)
        if kind == "system" and subtype in _IGNORED:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, time)
        self._envelope(record)
        self.begin_record(uuid, time, kind, record)
        payload = object_of(record.get("systemPayload"))
        if kind == "system":
            self._system(subtype, payload)
        elif kind in _TYPES:
            self._message(record, kind, text_of(payload.get("displayText")))
        else:
            self.transcript.unknown[kind] += 1

    def _link(self, uuid: str, parent: str, kind: str, subtype: str) -> None:
        is_rewind = subtype == "rewind"
        self.is_rewound = self.is_rewound or is_rewind
        # a record without a parent for another reason need not follow the beginning
        is_first = len(self.positions) == 1 or is_rewind
        self.positions[uuid] = self.transcript.record + 1
        self.parents[uuid] = parent or (_ROOT if is_first else "")
        if kind != "system" or is_rewind:  # titles are repeated after any record
            self.leaf = uuid

    def _envelope(self, record: JsonObject) -> None:
        self.session_id = self.session_id or text_of(record.get("sessionId"))
        self.cwd = self.cwd or text_of(record.get("cwd"))
        self.branch = self.branch or text_of(record.get("gitBranch"))
        if record.get("isSidechain") is True and not self.parent_session:
            self.parent_session, agent = self.session_id, text_of(record.get("agentId"))
            self.session_id = f"{self.session_id}/{agent}" if agent else self.session_id

    def _message(self, record: JsonObject, kind: str, displayed: str) -> None:
        parts = parts_of(object_of(record.get("message")).get("parts"))
        parts = [part for part in parts if "inlineData" not in part and "fileData" not in part]
        said: JsonObject = {"type": "gemini" if kind == "assistant" else "user", "content": parts}
        is_typed = text_of(record.get("subtype")) in _TYPED and record.get("provenance") in (None, "real_user")
        typed = kind == "user" and is_typed
        if typed and displayed:
            said["displayContent"] = displayed
        for piece in pieces_of(self.identity, said, self.transcript.place.line):
            if piece.role == "tool":
                self._tool(piece, object_of(record.get("toolCallResult")))
            else:
                self.add("injected" if piece.role == "user" and not typed else piece.role, piece.text)

    def _tool(self, piece: Piece, result: JsonObject) -> None:
        is_result, status = piece.key[-1] == "result", result.get("status")
        text = piece.text or (text_of(result.get("resultDisplay")) or "(no output)" if is_result else "")
        answer = REFUSED if is_result and status == "cancelled" else None
        failed = is_result and status == "error"
        handle = self.add("tool", text, tool_name=piece.details["tool_name"], is_error=failed, answer=answer)
        if not is_result:
            self.transcript.touch(handle, read=piece.read, modified=piece.modified)

    def _system(self, subtype: str, payload: JsonObject) -> None:
        if subtype == "chat_compression":
            history = objects_of(payload.get("compressedHistory"))
            summary = history[0].get("parts") if history else None
            self.add("injected", "\n".join(text_of(part.get("text")) for part in parts_of(summary)))
            tokens = object_of(payload.get("info")).get("originalTokenCount")
            self.transcript.compact(self.transcript.record, tokens_before=tokens)
        elif subtype == "slash_command":
            # text sent to the model follows as a prompt
            if payload.get("phase") == "invocation" and payload.get("sentToModel") is not True:
                self.prompt(text_of(payload.get("rawCommand")).partition(" ")[2])
        elif subtype == "custom_title":
            self.title = text_of(payload.get("customTitle")).strip() or self.title
        elif subtype == "parent_session":
            self.parent_session = text_of(payload.get("parentSessionId"))
        elif subtype != "rewind":
            self.transcript.unknown[f"system/{subtype}"] += 1


class QwenCode(Harness):
    name = "qwen_code"
    folders = tuple(
        f"${{QWEN_RUNTIME_DIR:-${{QWEN_HOME:-~/.qwen}}}}/{folder}"
        for folder in ("projects/*/chats", "projects/*/subagents", "tmp/*/chats")
    )
    side_files = ("chats/*.runtime.json", "subagents/*/agent-*.meta.json")
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record has Claude Code's envelope with content that only Qwen Code writes."""
        message = record.get("message")
        return (
            record.get("type") in _TYPES
            and isinstance(record.get("sessionId"), str)
            and ((isinstance(message, dict) and isinstance(message.get("parts"), list)) or "systemPayload" in record)
        )
