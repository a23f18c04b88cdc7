"""Kimi Code: `~/.kimi-code/sessions/<folder>/<sessionId>/agents/<agent>/wire.jsonl`, a journal of the agent's context.

Messages have no ids, but parts of a reply do. `context.undo` withdraws the last prompts; since version 2 a record of
type `agent.switched` names the line from which the conversation continues.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from memory_pipeline.harnesses.content import Content
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, plain_text, side_file, text_blocks
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
from memory_pipeline.harnesses.transcript import Transcript

_SPOKEN = words("context.append_message context.append_loop_event context.apply_compaction")
_STATE = words(
    "metadata forked config profile usage llm mcp tools token_counting turn full_compaction micro_compaction plan_mode "
    "swarm_mode tower_mode plan goal cron task interaction interruptionReminder staleGuard plugin prompt runtime "
    "file_history session permission"
)
"""Prefixes of the types of records that are state of the program."""
_MAIN = "main"


class _Function(Fields):
    name: Any = None
    arguments: Any = None


class _ToolCall(Fields):
    id: Any = None
    name: Any = None
    arguments: Any = None
    function: _Function | Other = None


class _Origin(Fields):
    kind: Any = None
    trigger: Any = None
    phase: Any = None
    skillArgs: Any = None
    commandArgs: Any = None


class _Message(Fields):
    role: Any = None
    content: Content = None
    toolCalls: list[_ToolCall | Other] | Fields | str | int | float | bool | None = None
    toolCallId: Any = None
    isError: Any = None
    origin: _Origin | Other = None


class _Part(Fields):
    type: Any = None
    text: Any = None


class _Result(Fields):
    output: Content = None
    isError: Any = None
    decision: Any = None
    feedback: Any = None


class _Event(Fields):
    """A step of the loop: a part of a reply, a call or a result."""

    type: Any = None
    uuid: Any = None
    part: _Part | Other = None
    toolCallId: Any = None
    name: Any = None
    args: Any = None
    result: _Result | Other = None


class _Base(Fields):
    branch: Any = None
    line: Any = None


class _Environment(Fields):
    cwd: Any = None


class Record(Fields):
    type: Any = None
    time: Any = None
    created_at: Any = None
    message: _Message | Other = None
    event: _Event | Other = None
    count: Any = None
    summary: Any = None
    contextSummary: Any = None
    tokensBefore: Any = None
    keptUserMessageCount: Any = None
    cwd: Any = None
    environmentDisclosure: _Environment | Other = None
    toolCallId: Any = None
    toolName: Any = None
    result: _Result | Other = None
    branch: Any = None
    base: _Base | Other = None
    legacyUndoLine: Any = None


class KimiCode(Harness[Record]):
    name = "kimi_code"
    folders = ("${KIMI_CODE_HOME:-~/.kimi-code}/sessions",)
    side_files = ("sessions/*/*/state.json", "agents/*/*/*.json", "agents/*/*/*.jsonl")
    record_type = Record

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is the header, or a message or step if that was lost."""
        kind = record.get("type")
        return (kind == "metadata" and "protocol_version" in record and "created_at" in record) or (
            isinstance(kind, str) and kind in _SPOKEN
        )

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


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
        self.began_at: object = None
        self.lines: dict[int, int] = {}
        """The records with messages, by line."""
        self.prompts: list[int] = []
        """The lines of the user's prompts since the latest compaction."""
        self.standing: list[int] = []
        """The lines of the prompts that can still be undone."""
        self.undone: dict[int, range] = {}
        """Undone lines, by the line of the undo."""
        self.segments = [_Segment(_MAIN, 0, -1, 0)]
        self.branches = {_MAIN: 0}
        """The latest segment of each branch."""
        self.refused: set[str] = set()

    def finish(self) -> ParsedSession:
        standing = self._active_lines(self.lines)
        voided = {record for line, record in self.lines.items() if line not in standing}
        return self.transcript.finish(
            *(self.session_id, self.title, self.cwd),
            began_at=self.began_at,
            voided=voided,
            is_attended=self.is_attended,
        )

    def record(self, line: int, record: Record) -> None:
        kind = text_of(record.type)
        if kind in _SPOKEN:
            self.transcript.next_record(line, record.time)
            self.lines[line] = self.transcript.record
            self._read_message(line, kind, record)
            return
        self.transcript.next_record(line, record.time)
        if kind == "context.undo":
            self._undo(line, record.count)
        elif kind == "context.clear":  # earlier prompts cannot be undone
            self.prompts, self.standing = [], []
        elif kind == "agent.switched" and isinstance(record.base, _Base):
            self._switch(line, record, record.base)
        elif kind == "permission.record_approval_result" and isinstance(record.result, _Result):
            self._approval(line, record, record.result)
        elif kind == "metadata":
            self.began_at = self.began_at or record.created_at
        elif kind == "config.update":
            environment = record.environmentDisclosure
            disclosed = environment.cwd if isinstance(environment, _Environment) else None
            self.cwd = self.cwd or text_of(record.cwd) or text_of(disclosed)
        elif kind != "context.update_token_count" and kind.partition(".")[0] not in _STATE:
            self.transcript.unknown[kind] += 1

    def _read_message(self, line: int, kind: str, record: Record) -> None:
        message, event = record.message, record.event
        if kind == "context.append_message" and isinstance(message, _Message):
            self.begin_unnamed(record.time, kind, message, self.session_id)
            self._message(line, message)
        elif kind == "context.append_loop_event" and isinstance(event, _Event):
            if isinstance(event.uuid, str) and event.uuid:
                self.begin(event.uuid)
            else:
                self.begin_unnamed(record.time, kind, event, self.session_id)
            self._event(event)
        elif kind == "context.apply_compaction":
            self.begin_unnamed(record.time, kind, record, self.session_id)
            self.add("injected", text_of(record.contextSummary) or text_of(record.summary))
            self._compact(record)

    def _message(self, line: int, message: _Message) -> None:
        blocks = text_blocks(message.content)
        if message.role == "assistant":
            self.add("assistant", plain_text(message.content))
            for call in message.toolCalls if isinstance(message.toolCalls, list) else ():
                if isinstance(call, _ToolCall):
                    function = call.function if isinstance(call.function, _Function) else call
                    self.call(text_of(call.id), text_of(function.name), function.arguments)
        elif message.role == "tool":
            failed = message.isError is True
            self.result(text_of(message.toolCallId), plain_text(message.content), failed=failed)
        elif message.role == "user":
            origin = message.origin if isinstance(message.origin, _Origin) else _Origin()
            typed = origin.kind in (None, "user")
            self.prompt(blocks, typed=typed)
            if by_slash := origin.trigger == "user-slash":
                self.prompt(text_of(origin.skillArgs) or text_of(origin.commandArgs))
            if typed or by_slash or (origin.kind == "shell_command" and origin.phase == "input"):
                self.prompts.append(line)
                self.standing.append(line)
        elif message.role != "system":
            self.transcript.unknown[f"message/{message.role}"] += 1

    def _event(self, event: _Event) -> None:
        kind = text_of(event.type)
        if kind == "content.part":
            part = event.part if isinstance(event.part, _Part) else _Part()
            self.add("assistant", text_of(part.text) if part.type == "text" else "")
        elif kind == "tool.call":
            self.call(text_of(event.toolCallId), text_of(event.name), event.args)
        elif kind == "tool.result":
            result, call_id = (
                event.result if isinstance(event.result, _Result) else _Result(),
                text_of(event.toolCallId),
            )
            refused = call_id in self.refused
            self.result(call_id, plain_text(result.output), failed=result.isError is True, refused=refused)
        elif kind not in ("step.begin", "step.end", "llm.request"):
            self.transcript.unknown[f"loop/{kind}"] += 1

    def _approval(self, line: int, record: Record, result: _Result) -> None:
        """Add the user's decision about a call, which may give the reason of a refusal."""
        if result.decision == "rejected":
            call_id = text_of(record.toolCallId)
            self.refused.add(call_id)
            self.lines[line] = self.transcript.record
            self.begin_unnamed(record.time, "approval", record, self.session_id)
            self.refusal(call_id, text_of(result.feedback), text_of(record.toolName))

    def _compact(self, record: Record) -> None:
        """Handle a compaction: the summary replaces all but the latest prompts; earlier prompts cannot be undone."""
        kept = record.keptUserMessageCount
        count = kept if isinstance(kept, int) and 0 < kept <= len(self.standing) else 0
        stay = {self.lines[line] for line in self.standing[len(self.standing) - count :]}
        self.transcript.compact(self.transcript.record, stay, tokens_before=record.tokensBefore)
        self.prompts, self.standing = [], []

    def _undo(self, line: int, count: object) -> None:
        if isinstance(count, int) and 0 < count <= len(self.standing):
            self.undone[line] = range(self.standing[-count], line)
            del self.standing[-count:]

    def _switch(self, line: int, record: Record, base: _Base) -> None:
        """Continue the conversation from a line of a branch; an undo that repeats this for older versions is
        ignored."""
        at = base.line
        if not isinstance(at, int) or text_of(base.branch) not in self.branches:
            return
        if isinstance(record.legacyUndoLine, int):
            self.undone.pop(record.legacyUndoLine, None)
        self.segments.append(_Segment(text_of(record.branch), line + 1, self.branches[text_of(base.branch)], at))
        self.branches[text_of(record.branch)] = len(self.segments) - 1
        self.standing = sorted(self._active_lines(self.prompts))

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


def within(lines: Collection[int], ranges: Iterable[range]) -> set[int]:
    """The lines that are in one of the ranges."""
    found: set[int] = set()
    left = sorted(lines)
    for lines_in in ranges:
        found.update(left[bisect_left(left, lines_in.start) : bisect_left(left, lines_in.stop)])
    return found
