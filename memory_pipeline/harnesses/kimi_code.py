"""Kimi Code: `~/.kimi-code/sessions/<folder>/<sessionId>/agents/<agent>/wire.jsonl`, a journal of the agent's context.

Messages have no ids, but parts of a reply do. `context.undo` withdraws the last prompts; since version 2 a record of
type `agent.switched` names the line from which the conversation continues.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from memory_pipeline.harnesses.content import plain_text, text_blocks
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, side_file
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_SPOKEN = words("context.append_message context.append_loop_event context.apply_compaction")
_STATE = words(
    "metadata forked config profile usage llm mcp tools token_counting turn full_compaction micro_compaction plan_mode "
    "swarm_mode tower_mode plan goal cron task interaction interruptionReminder staleGuard plugin prompt runtime "
    "file_history session permission"
)
"""Prefixes of the types of records that are state of the program."""
_MAIN = "main"


class _Segment(NamedTuple):
    """Consecutive lines of a branch."""

    branch: str
    start: int
    base: int
    """The earlier segment that it continues; -1 for the first."""
    base_line: int


class Reader(RecordReader):
    reads: ClassVar = {"Read": "path", "ReadMediaFile": "path"}
    changes: ClassVar = {"Write": "path", "Edit": "path"}

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        folder = Path(transcript.source.path).parent
        in_agents = folder.parent.name == "agents"
        session = folder.parents[1] if in_agents else folder
        agent = folder.name if in_agents and folder.name != _MAIN else ""
        state = side_file(session / "state.json")
        self.session_id = f"{session.name}/{agent}" if agent else session.name
        self.parent_session = session.name if agent else ""
        self.title, self.cwd = "" if agent else text_of(state.get("title")), text_of(state.get("workDir"))
        self.lines: dict[int, int] = {}
        """The records with messages, by line."""
        self.prompts: list[int] = []
        """The lines of the user's prompts since the latest compaction."""
        self.undoable: list[int] = []
        """The lines of the prompts that can still be undone."""
        self.undone: dict[int, range] = {}
        """Undone lines, by the line of the undo."""
        self.segments = [_Segment(_MAIN, 0, -1, 0)]
        self.branches = {_MAIN: 0}
        """The latest segment of each branch."""
        self.refused: set[str] = set()

    def voided(self) -> set[int]:
        active = self._active_lines(self.lines)
        return {record for line, record in self.lines.items() if line not in active}

    def record(self, line: int, record: JsonObject) -> None:
        kind = text_of(record.get("type"))
        self.transcript.next_record(line, record.get("time"))
        if kind in _SPOKEN:
            self.lines[line] = self.transcript.record
            self._read_message(line, kind, record)
        elif kind == "context.undo":
            self._undo(line, record.get("count"))
        elif kind == "context.clear":  # earlier prompts cannot be undone
            self.prompts, self.undoable = [], []
        elif kind == "agent.switched":
            self._switch(line, record, object_of(record.get("base")))
        elif kind == "permission.record_approval_result":
            self._approval(line, record, object_of(record.get("result")))
        elif kind == "metadata":
            self.began_at = self.began_at or record.get("created_at")
        elif kind == "config.update":
            disclosed = object_of(record.get("environmentDisclosure")).get("cwd")
            self.cwd = self.cwd or text_of(record.get("cwd")) or text_of(disclosed)
        elif kind != "context.update_token_count" and kind.partition(".")[0] not in _STATE:
            self.transcript.unknown[kind] += 1

    def _read_message(self, line: int, kind: str, record: JsonObject) -> None:
        message, event, time = object_of(record.get("message")), object_of(record.get("event")), record.get("time")
        if kind == "context.append_message":
            self.begin_record("", time, kind, message)
            self._message(line, message)
        elif kind == "context.append_loop_event":
            self.begin_record(text_of(event.get("uuid")), time, kind, event)
            self._event(event)
        else:
            self.begin_record("", time, kind, record)
            self.add("injected", text_of(record.get("contextSummary")) or text_of(record.get("summary")))
            self._compact(record)

    def _message(self, line: int, message: JsonObject) -> None:
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            self.add("assistant", plain_text(content))
            for call in objects_of(message.get("toolCalls")):
                function = object_of(call.get("function")) or call
                self.call(text_of(call.get("id")), text_of(function.get("name")), function.get("arguments"))
        elif role == "tool":
            call_id, failed = text_of(message.get("toolCallId")), message.get("isError") is True
            self.result(call_id, plain_text(content), failed=failed)
        elif role == "user":
            origin = object_of(message.get("origin"))
            kind, by_slash = origin.get("kind"), origin.get("trigger") == "user-slash"
            typed = kind in (None, "user")
            self.prompt(text_blocks(content), typed=typed)
            if by_slash:
                self.prompt(text_of(origin.get("skillArgs")) or text_of(origin.get("commandArgs")))
            if typed or by_slash or (kind == "shell_command" and origin.get("phase") == "input"):
                self.prompts.append(line)
                self.undoable.append(line)
        elif role != "system":
            self.transcript.unknown[f"message/{role}"] += 1

    def _event(self, event: JsonObject) -> None:
        kind, call_id = text_of(event.get("type")), text_of(event.get("toolCallId"))
        if kind == "content.part":
            part = object_of(event.get("part"))
            self.add("assistant", text_of(part.get("text")) if part.get("type") == "text" else "")
        elif kind == "tool.call":
            self.call(call_id, text_of(event.get("name")), event.get("args"))
        elif kind == "tool.result":
            result = object_of(event.get("result"))
            failed, refused = result.get("isError") is True, call_id in self.refused
            self.result(call_id, plain_text(result.get("output")), failed=failed, refused=refused)
        elif kind not in ("step.begin", "step.end", "llm.request"):
            self.transcript.unknown[f"loop/{kind}"] += 1

    def _approval(self, line: int, record: JsonObject, result: JsonObject) -> None:
        """Add the user's decision about a call, which may give the reason of a refusal."""
        if result.get("decision") == "rejected":
            call_id = text_of(record.get("toolCallId"))
            self.refused.add(call_id)
            self.lines[line] = self.transcript.record
            self.begin_record("", record.get("time"), "approval", record)
            self.refusal(call_id, text_of(result.get("feedback")), text_of(record.get("toolName")))

    def _compact(self, record: JsonObject) -> None:
        """Handle a compaction: the summary replaces all but the latest prompts; earlier prompts cannot be undone."""
        kept = record.get("keptUserMessageCount")
        count = kept if isinstance(kept, int) and 0 < kept <= len(self.undoable) else 0
        stay = {self.lines[line] for line in self.undoable[len(self.undoable) - count :]}
        self.transcript.compact(self.transcript.record, stay, tokens_before=record.get("tokensBefore"))
        self.prompts, self.undoable = [], []

    def _undo(self, line: int, count: object) -> None:
        if isinstance(count, int) and 0 < count <= len(self.undoable):
            self.undone[line] = range(self.undoable[-count], line)
            del self.undoable[-count:]

    def _switch(self, line: int, record: JsonObject, base: JsonObject) -> None:
        """Continue the conversation from a line of a branch; an undo that repeats this for older versions is
        ignored."""
        at, before, branch = base.get("line"), text_of(base.get("branch")), text_of(record.get("branch"))
        if not isinstance(at, int) or before not in self.branches:
            return
        if isinstance(undo := record.get("legacyUndoLine"), int):
            self.undone.pop(undo, None)
        self.segments.append(_Segment(branch, line + 1, self.branches[before], at))
        self.branches[branch] = len(self.segments) - 1
        self.undoable = sorted(self._active_lines(self.prompts))

    def _active_lines(self, lines: Collection[int]) -> set[int]:
        """The lines of the current conversation."""
        return within(lines, self._active()) - within(lines, self.undone.values())

    def _active(self) -> Iterator[range]:
        """The ranges of lines that form the last branch, from its own back to the first."""
        number, end = len(self.segments) - 1, max(self.lines, default=0) + 1
        while number >= 0:
            segment = self.segments[number]
            yield range(segment.start, end)
            if segment.base >= 0:
                end = min(segment.base_line, self.segments[segment.base + 1].start - 1) + 1
            number = segment.base


class KimiCode(Harness):
    name = "kimi_code"
    folders = ("${KIMI_CODE_HOME:-~/.kimi-code}/sessions",)
    side_files = ("sessions/*/*/state.json", "agents/*/*/*.json", "agents/*/*/*.jsonl")
    reader = Reader

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is the header, or a message or step if that was lost."""
        kind = record.get("type")
        return (kind == "metadata" and "protocol_version" in record and "created_at" in record) or (
            isinstance(kind, str) and kind in _SPOKEN
        )


def within(lines: Collection[int], ranges: Iterable[range]) -> set[int]:
    """The lines that are in one of the ranges."""
    found: set[int] = set()
    left = sorted(lines)
    for lines_in in ranges:
        found.update(left[bisect_left(left, lines_in.start) : bisect_left(left, lines_in.stop)])
    return found
