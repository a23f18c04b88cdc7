"""Claude Code: `~/.claude/projects/<slug>/<sessionId>.jsonl` and the sub-agents' files beside it.

A record is identified by its `uuid`, which copies of a session keep. The chain of `parentUuid` is not walked from the
last leaf: most of its forks are parallel tool calls, and a walk would drop results. A rewind is a fork with two
prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.claude_code.answers import Call, user_reply
from memory_pipeline.harnesses.claude_code.queued import Queue
from memory_pipeline.harnesses.claude_code.record_types import (
    CHAIN_TYPES,
    IGNORED_ATTACHMENTS,
    IGNORED_SYSTEM,
    QUEUE,
    is_ignored,
)
from memory_pipeline.harnesses.claude_code.records import (
    Attachment,
    Compaction,
    HookError,
    MessageFields,
    Preserved,
    Record,
    Segment,
    ToolResult,
)
from memory_pipeline.harnesses.claude_code.session_facts import SessionFacts, evidence_in
from memory_pipeline.harnesses.content import (
    Block,
    Content,
    as_blocks,
    call_text,
    content_text,
    images_in,
    marked_images,
)
from memory_pipeline.harnesses.model import Image, ParsedSession, Role
from memory_pipeline.harnesses.records import Other, text_of
from memory_pipeline.harnesses.speakers import Passage, split_content_by_speaker
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.harnesses.tree import below, last_below

_READS = {"Read": "file_path"}
_CHANGES = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.facts = SessionFacts(Path(transcript.source.path).stem)
        self.latest = Evidence()
        self.is_attended: bool | None = None
        """Whether a person typed the latest prompt; None before the first."""
        self.has_typed = False
        self.tools: dict[str, str] = {}
        self.calls: dict[str, Call] = {}
        self.changes: dict[str, int | None] = {}
        self.positions: dict[str, int] = {}
        self.parents: dict[str, str] = {}
        self.prompts: dict[str, list[str]] = {}
        self.said: set[str] = set()
        self.queue = Queue()
        self.has_attachments = False
        self.identity = ""
        self.part = 0
        self.answers = 0

    def finish(self) -> ParsedSession:
        transcript, voided = self.transcript.copy(), self._rewound()
        # a sub-agent's prompts come from a model
        for prompt in self.queue.kept_nowhere_else() if self.facts.has_main_chain else ():
            transcript.place = prompt.place
            transcript.add("user" if self._has_person() else "injected", prompt.typed, prompt.identity)
            if prompt.after in voided:
                voided.add(prompt.place.record)
        return transcript.finish(
            self.facts.session_id,
            self.facts.title(self.positions),
            self.facts.cwd,
            voided=voided,
            branch=self.facts.branch,
            is_attended=self.has_typed or self._has_person(),
        )

    def _rewound(self) -> set[int]:
        """Records of voided turns: of several prompts after the same record only the last one counts."""
        forks = [rivals for rivals in self.prompts.values() if len(rivals) > 1]
        last = last_below(self.parents, self.positions) if forks else {}
        left: list[str] = []
        for rivals in forks:
            latest = max(rivals, key=last.__getitem__)
            left += [prompt for prompt in rivals if prompt != latest]
        return {self.positions[uuid] for uuid in below(self.parents, *left)}

    def record(self, line: int, record: Record) -> None:
        kind = text_of(record.type)
        if isinstance(uuid := record.uuid, str) and uuid not in self.positions:
            self.positions[uuid] = self.transcript.record + 1
            self.parents[uuid] = text_of(record.parentUuid) or text_of(record.logicalParentUuid)
        if is_ignored(kind):
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        if kind in CHAIN_TYPES:
            self._chain_record(record, kind)
        elif kind == QUEUE:
            self._queue_operation(record, text_of(record.operation))
        elif kind == "summary":
            self.facts.summaries.append((text_of(record.leafUuid), text_of(record.summary)))
        elif kind in ("custom-title", "ai-title"):
            self.facts.add_title(kind, record)
        else:
            self.transcript.unknown[kind] += 1

    def _chain_record(self, record: Record, kind: str) -> None:
        uuid = record.uuid
        if isinstance(uuid, str):
            if uuid in self.said:
                return
            self.identity = uuid
        else:
            self.identity = self._identity(record, kind, record.message)
        self.part = self.answers = 0
        self.facts.add_envelope(kind, record)
        self.latest = evidence_in(record, None)
        said = self._say(record, kind)
        # an empty damaged copy of a record must not hide the intact one
        if said and isinstance(uuid, str):
            self.said.add(uuid)

    def _identity(self, record: Record, kind: str, content: object) -> str:
        """The identity of a record without an id."""
        identity = f"{record.timestamp}\x1f{kind}\x1f{self.transcript.digest(msgspec.json.encode(content))}"
        return f"{identity}\x1f{self.transcript.occurrence(identity)}"

    def _queue_operation(self, record: Record, operation: str) -> None:
        if operation == "enqueue":
            after = next(reversed(self.positions.values()), -1)
            identity = self._identity(record, QUEUE, record.content)
            self.queue.enqueue(record.content, identity, self.transcript.place, after)
        else:
            self.queue.move(operation, record.content, is_kept=self.has_attachments)

    def _say(self, record: Record, kind: str) -> bool:
        """Add the contents of the record; returns whether there were any."""
        content = as_blocks(record.message.content) if isinstance(record.message, MessageFields) else None
        if kind == "user":
            self._user(record, content)
        elif kind == "assistant":
            self._assistant(record, content)
        elif kind == "attachment":
            self.has_attachments = True
            self._attachment(record, record.attachment)
        else:
            return self._system(record, text_of(record.subtype))
        return self.part > 0

    def _system(self, record: Record, subtype: str) -> bool:
        if subtype == "compact_boundary":
            self._compaction(record.compactMetadata)
            return True
        if subtype == "local_command":
            content = as_blocks(record.content)
            self._prompt(record, split_content_by_speaker(content, self.transcript.place.line), content)
        elif subtype not in IGNORED_SYSTEM:
            self.transcript.unknown[f"system/{subtype}"] += 1
        return self.part > 0

    def _user(self, record: Record, content: Content) -> None:
        line = self.transcript.place.line
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if isinstance(block, Block) and block.type == "tool_result"]
        if not results:
            self._prompt(record, split_content_by_speaker(content, line), content)
            return
        count = 0
        for block in results:
            count += self._result(record, block, line, count)
        rest = [block for block in blocks if not (isinstance(block, Block) and block.type == "tool_result")]
        self._add_rest(record, rest, text_of(results[-1].tool_use_id), line, count)
        for block in results:
            self.calls.pop(text_of(block.tool_use_id), None)

    def _result(self, record: Record, block: Block, line: int, first: int) -> int:
        """Add the output of a tool, and the user's words in it. Returns the number of images, which are numbered from
        `first`."""
        images = images_in(block.content, line, first)
        text = content_text(block.content, line, first) or "(no output)"
        call_id, failed = text_of(block.tool_use_id), block.is_error is True
        name, data = self.tools.get(call_id, ""), record.toolUseResult
        found = user_reply(
            self.calls.get(call_id, Call("", None)),
            text,
            is_error=failed,
            denial=record.toolDenialKind,
            result=msgspec.structs.asdict(data) if isinstance(data, ToolResult) else None,
        )
        if failed and call_id in self.changes:
            self.transcript.touch(self.changes[call_id])  # refused or failed, so nothing changed
        self._add(
            "tool",
            text,
            tool_name=name,
            is_error=failed and not found.refused,
            images=images,
            answer=REFUSED if found.refused else None,
        )
        for answer in found.answers:
            self._answer(answer, name)
        return len(images)

    def _add_rest(self, record: Record, rest: list[Block | Other], call_id: str, line: int, first: int) -> None:
        """Add text next to results: the user's remark on the call, or text that the program inserted."""
        images = images_in(rest, line, first)
        if record.isMeta is True or evidence_in(record, record.origin).is_notice:
            self._add("injected", content_text(rest, line, first), images=images)
            return
        for speaker, text in split_content_by_speaker(rest, line, first):
            role = speaker if self._has_person() else "injected"
            remark = (
                Answer(text, "approved call", self.calls.get(call_id, Call("", None)).text) if role == "user" else None
            )
            name = self.tools.get(call_id) if remark else None
            self._add(role, text, tool_name=name, images=marked_images(text, images), answer=remark)

    def _prompt(self, record: Record, parts: Sequence[Passage], content: Content = None, origin: object = None) -> None:
        """Add a prompt; text that a model wrote for a sub-agent, or a program wrote, is not the user's."""
        evidence = evidence_in(record, origin or record.origin)
        machine_made = (
            record.isMeta is True or record.isSidechain is True or record.isCompactSummary is True or evidence.is_notice
        )
        typed = not machine_made and is_person(evidence)
        for role, text in parts:
            if role == "user" and not machine_made and not typed:
                self.queue.on_prompt(text, self.transcript.record)
                self.transcript.note_program_prompt(text)
            self._add(role if typed else "injected", text, content=content)
        prompted = not machine_made and any(role == "user" for role, _ in parts)
        if prompted:
            self.is_attended = typed
            self.has_typed = self.has_typed or typed
        # the first prompt has no parent; several of these are not rewinds, but several conversations in one file
        if prompted and record.type == "user" and isinstance(record.uuid, str) and isinstance(record.parentUuid, str):
            self.prompts.setdefault(record.parentUuid, []).append(record.uuid)

    def _assistant(self, record: Record, content: Content) -> None:
        """Add text and tool calls, without thinking. The text of a failed API call is the program's."""
        role: Role = "injected" if record.isApiErrorMessage is True else "assistant"
        if isinstance(content, str):
            self._add(role, content)
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, Block):
                continue
            if block.type == "text":
                self._add(role, text_of(block.text))
            elif block.type == "tool_use":
                self._call(block)

    def _call(self, block: Block) -> None:
        name, arguments = text_of(block.name), block.input
        self.tools[text_of(block.id)] = name
        self.calls[text_of(block.id)] = Call(name, arguments)
        handle = self._add("tool", call_text(name, arguments), tool_name=name)
        if isinstance(arguments, dict):
            read, modified = arguments.get(_READS.get(name, "")), arguments.get(_CHANGES.get(name, ""))
            if read or modified:
                self.transcript.touch(handle, read=(text_of(read),), modified=(text_of(modified),))
            if modified:
                self.changes[text_of(block.id)] = handle

    def _attachment(self, record: Record, attachment: object) -> None:
        if not isinstance(attachment, Attachment):
            return
        kind = text_of(attachment.type)
        if kind == "queued_command":
            prompt = as_blocks(attachment.prompt)
            parts = split_content_by_speaker(prompt, self.transcript.place.line)
            if attachment.commandMode not in (None, "prompt"):
                parts = [("injected", text) for _, text in parts]
            self._prompt(record, parts, prompt, attachment.origin)
        elif kind.startswith("hook_"):
            error, content = attachment.blockingError, attachment.content
            if isinstance(error, HookError):
                content = text_of(error.blockingError)
            lines = [text for text in content if isinstance(text, str)] if isinstance(content, list) else []
            self._add("injected", "\n".join(lines) or content_text(content, self.transcript.place.line))
        elif kind not in IGNORED_ATTACHMENTS:
            self.transcript.unknown[f"attachment/{kind}"] += 1

    def _compaction(self, metadata: object) -> None:
        """Record a compaction: everything before was summarised away, except what the boundary says was kept."""
        found = metadata if isinstance(metadata, Compaction) else Compaction()
        segment, preserved = found.preservedSegment, found.preservedMessages
        now = self.transcript.record
        kept: set[int] = set()
        stretch = range(0)
        if isinstance(preserved, Preserved) and isinstance(preserved.uuids, list):
            kept.update(self.positions[uuid] for uuid in map(text_of, preserved.uuids) if uuid in self.positions)
        if isinstance(segment, Segment) and (head := self.positions.get(text_of(segment.headUuid))) is not None:
            stretch = range(head, self.positions.get(text_of(segment.tailUuid), now) + 1)
        self.transcript.compact(now, kept, stretch, tokens_before=found.preTokens)

    def _add(
        self,
        role: Role,
        text: str,
        *,
        tool_name: str | None = None,
        is_error: bool = False,
        content: object = None,
        images: tuple[Image, ...] = (),
        answer: Answer | None = None,
    ) -> int | None:
        if not text or text.isspace():
            return None
        if role == "user":
            self.queue.on_prompt(text, self.transcript.record)
        identity = f"{self.identity}\x1f{self.part}"
        self.part += 1
        return self.transcript.add(
            role,
            text,
            identity,
            tool_name=tool_name,
            is_error=is_error,
            content=content,
            images=images,
            answer=answer,
        )

    def _answer(self, answer: Answer, tool_name: str) -> None:
        """Add the user's words in a result, numbered separately, as the numbers of parts are in stored ids. In an
        unattended session a program answered."""
        identity = f"{self.identity}\x1fanswer\x1f{self.answers}"
        self.answers += 1
        if self._has_person():
            self.transcript.add("user", answer.text, identity, tool_name=tool_name, answer=answer)
        else:
            self.transcript.add("injected", answer.text, identity, tool_name=tool_name)

    def _has_person(self) -> bool:
        """Whether the session is currently attended: by the person who typed the latest prompt, or who could have."""
        return is_person(self.latest) if self.is_attended is None else self.is_attended
