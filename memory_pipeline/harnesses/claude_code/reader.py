"""Claude Code: `~/.claude/projects/<slug>/<sessionId>.jsonl` and the sub-agents' files beside it.

A record is identified by its `uuid`, which copies of a session keep. The chain of `parentUuid` is not walked from the
last leaf: most of its forks are parallel tool calls, and a walk would drop results. A rewind is a fork with two
prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import msgspec

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.claude_code.answers import user_reply
from memory_pipeline.harnesses.claude_code.queued import Queue
from memory_pipeline.harnesses.claude_code.records import (
    CHAIN_TYPES,
    IGNORED_SYSTEM,
    QUEUE,
    Attachment,
    Compaction,
    HookError,
    MessageFields,
    Preserved,
    Record,
    Segment,
    ToolResult,
    is_ignored,
)
from memory_pipeline.harnesses.content import (
    Block,
    Content,
    as_blocks,
    content_text,
    images_in,
    marked_images,
)
from memory_pipeline.harnesses.model import ParsedSession, Role
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import Call, RecordReader
from memory_pipeline.harnesses.records import JsonObject, Other, text_of
from memory_pipeline.harnesses.speakers import Passage, split_content_by_speaker
from memory_pipeline.harnesses.transcript import MessageDetails, Transcript
from memory_pipeline.harnesses.tree import descendants, last_descendants


class Reader(RecordReader):
    reads: ClassVar = {"Read": "file_path"}
    changes: ClassVar = {
        **dict.fromkeys(("Edit", "MultiEdit", "Write"), "file_path"),
        "NotebookEdit": "notebook_path",
    }
    numbers_answers = True

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.session_ids: Counter[str] = Counter()
        self.agent_id = ""
        self.has_main_chain = False
        """Whether the file has messages other than those of a sub-agent."""
        self.titles: dict[str, str] = {}
        self.summaries: list[tuple[str, str]] = []
        """Titles of conversations, each with the last record of its conversation."""
        self.latest = Evidence()
        self.is_latest_typed: bool | None = None
        """Whether a person typed the latest prompt; None before the first."""
        self.has_typed = False
        self.positions: dict[str, int] = {}
        self.parents: dict[str, str] = {}
        self.prompts: dict[str, list[str]] = {}
        self.said: set[str] = set()
        self.queue = Queue()
        self.has_attachments = False

    @property
    def is_attended(self) -> bool:
        return self.has_typed or self._has_person()

    def finish(self) -> ParsedSession:
        self.session_id, self.title = self._session_id(), self._title()
        voided = self._rewound()
        with self.transcript_copied():
            # a sub-agent's prompts come from a model
            for prompt in self.queue.kept_nowhere_else() if self.has_main_chain else ():
                self.transcript.place = prompt.place
                self.transcript.add("user" if self._has_person() else "injected", prompt.typed, prompt.identity)
                if prompt.after in voided:
                    voided.add(prompt.place.record)
            return self.session(voided=voided)

    def _session_id(self) -> str:
        """The id in the file's name, if records have it, else the most frequent id; a sub-agent's id is appended."""
        stem = Path(self.transcript.source.path).stem
        most = self.session_ids.most_common(1)
        session_id = stem if stem in self.session_ids else most[0][0] if most else ""
        return f"{session_id}/{self.agent_id}" if self.agent_id and not self.has_main_chain else session_id

    def _title(self) -> str:
        """The user's title, else the model's, else the latest summary of a conversation with these records."""
        own = [text for leaf, text in self.summaries if leaf in self.positions]
        return self.titles.get("custom-title") or self.titles.get("ai-title") or (own[-1] if own else "")

    def _rewound(self) -> set[int]:
        """Records of voided turns: of several prompts after the same record only the last one counts."""
        forks = [rivals for rivals in self.prompts.values() if len(rivals) > 1]
        last = last_descendants(self.parents, self.positions) if forks else {}
        left: list[str] = []
        for rivals in forks:
            latest = max(rivals, key=last.__getitem__)
            left += [prompt for prompt in rivals if prompt != latest]
        return {self.positions[uuid] for uuid in descendants(self.parents, *left)}

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
            self.summaries.append((text_of(record.leafUuid), text_of(record.summary)))
        elif kind in ("custom-title", "ai-title"):
            title = record.customTitle if kind == "custom-title" else record.aiTitle
            self.titles[kind] = text_of(title).strip() or self.titles.get(kind, "")
        else:
            self.transcript.unknown[kind] += 1

    def _chain_record(self, record: Record, kind: str) -> None:
        uuid = record.uuid
        if isinstance(uuid, str):
            if uuid in self.said:
                return
            self.begin(uuid)
        else:
            self._begin_unnamed(record, kind, record.message)
        self._envelope(record, kind)
        self.latest = record.evidence()
        said = self._say(record, kind)
        # an empty damaged copy of a record must not hide the intact one
        if said and isinstance(uuid, str):
            self.said.add(uuid)

    def _begin_unnamed(self, record: Record, kind: str, content: object) -> None:
        self.begin_repeatable(record.timestamp, kind, self.transcript.digest(msgspec.json.encode(content)))

    def _envelope(self, record: Record, kind: str) -> None:
        """Read the session's data from a record of the conversation."""
        if isinstance(record.sessionId, str):
            self.session_ids[record.sessionId] += 1
        if not self.cwd:
            self.cwd, self.branch = text_of(record.cwd), text_of(record.gitBranch)
        if record.isSidechain is True:
            self.agent_id = self.agent_id or text_of(record.agentId)
        elif kind in ("user", "assistant"):
            self.has_main_chain = True

    def _queue_operation(self, record: Record, operation: str) -> None:
        if operation == "enqueue":
            after = next(reversed(self.positions.values()), -1)
            self._begin_unnamed(record, QUEUE, record.content)
            self.queue.enqueue(record.content, self.identity, self.transcript.place, after)
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
        call = self.calls.get(text_of(results[-1].tool_use_id), Call())
        count = 0
        for block in results:
            count += self._result(record, block, line, count)
        rest = [block for block in blocks if not (isinstance(block, Block) and block.type == "tool_result")]
        self._add_rest(record, rest, call, line, count)

    def _result(self, record: Record, block: Block, line: int, first: int) -> int:
        """Add the output of a tool, and the user's words in it. Returns the number of images, which are numbered from
        `first`."""
        images = images_in(block.content, line, first)
        text = content_text(block.content, line, first) or "(no output)"
        call_id, failed, data = text_of(block.tool_use_id), block.is_error is True, record.toolUseResult
        call = self.calls.get(call_id, Call())
        given = msgspec.structs.asdict(data) if isinstance(data, ToolResult) else None
        found = user_reply(call, text, is_error=failed, denial=record.toolDenialKind, result=given)
        if failed:
            self.transcript.touch(call.handle)  # refused or failed, so nothing changed
        answer = REFUSED if found.refused else None
        self.add("tool", text, tool_name=call.name, is_error=failed and not answer, images=images, answer=answer)
        for said in found.answers:
            self.answer(said, call.name)
        self.calls[call_id] = Call(call.name)
        return len(images)

    def _add_rest(self, record: Record, rest: list[Block | Other], call: Call, line: int, first: int) -> None:
        """Add text next to results: the user's remark on the call, or text that the program inserted."""
        images = images_in(rest, line, first)
        if record.isMeta is True or record.evidence().is_notice:
            self.add("injected", content_text(rest, line, first), images=images)
            return
        for speaker, text in split_content_by_speaker(rest, line, first):
            role = speaker if self._has_person() else "injected"
            remark = Answer(text, "approved call", call.text) if role == "user" else None
            name = call.name if remark else None
            self.add(role, text, tool_name=name, images=marked_images(text, images), answer=remark)

    def _prompt(self, record: Record, parts: Sequence[Passage], content: Content = None, origin: object = None) -> None:
        """Add a prompt; text that a model wrote for a sub-agent, or a program wrote, is not the user's."""
        evidence = record.evidence(origin)
        machine_made = (
            record.isMeta is True or record.isSidechain is True or record.isCompactSummary is True or evidence.is_notice
        )
        typed = not machine_made and is_person(evidence)
        for role, text in parts:
            if role == "user" and not machine_made and not typed:
                self.queue.on_prompt(text, self.transcript.record)
                self.transcript.detect_marks("user", text)
            self.add(role if typed else "injected", text, content=content)
        prompted = not machine_made and any(role == "user" for role, _ in parts)
        if prompted:
            self.is_latest_typed = typed
            self.has_typed = self.has_typed or typed
        # the first prompt has no parent; several of these are not rewinds, but several conversations in one file
        if prompted and record.type == "user" and isinstance(record.uuid, str) and isinstance(record.parentUuid, str):
            self.prompts.setdefault(record.parentUuid, []).append(record.uuid)

    def _assistant(self, record: Record, content: Content) -> None:
        """Add text and tool calls, without thinking. The text of a failed API call is the program's."""
        role: Role = "injected" if record.isApiErrorMessage is True else "assistant"
        if isinstance(content, str):
            self.add(role, content)
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, Block):
                continue
            if block.type == "text":
                self.add(role, text_of(block.text))
            elif block.type == "tool_use":
                self.call(text_of(block.id), text_of(block.name), block.input)

    def _attachment(self, record: Record, attachment: object) -> None:
        """Add a queued prompt or the output of a hook; other attachments repeat state of the program."""
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
            self.add("injected", "\n".join(lines) or content_text(content, self.transcript.place.line))

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

    def add(self, role: Role, text: str, *key: object, **details: Unpack[MessageDetails]) -> int | None:
        if not text or text.isspace():
            return None
        if role == "user" and not key:
            self.queue.on_prompt(text, self.transcript.record)
        return super().add(role, text, *key, **details)

    def answer(self, answer: Answer, tool_name: str) -> None:
        """Add the user's words in a result. In an unattended session a program answered."""
        if self._has_person():
            super().answer(answer, tool_name)
        else:
            self.add("injected", answer.text, "answer", self.answers, tool_name=tool_name)
            self.answers += 1

    def _has_person(self) -> bool:
        """Whether the session is currently attended: by the person who typed the latest prompt, or who could have."""
        return is_person(self.latest) if self.is_latest_typed is None else self.is_latest_typed


class ClaudeCode(Harness[Record]):
    name = "claude_code"
    folders = ("${CLAUDE_CONFIG_DIR:-~/.claude,${XDG_CONFIG_HOME:-~/.config}/claude}/projects",)
    record_type = Record
    reader = Reader
    side_files = (
        "sessions-index.json",
        "agent-*.meta.json",  # how a sub-agent was started
        "subagents/journal.jsonl",
        "workflows/*/journal.jsonl",
        "workflows/wf_*.json",
        "tool-results/*.json",
        "tool-results/*.jsonl",
        "local-agent-mode-sessions/*/*/local_*.json",  # Cowork's description of a session
        "history.jsonl",
        "stats-cache.json",
        "settings.json",
        "settings.local.json",
        "todos/*.json",
        "tasks/*/*.json",
    )

    def retention_days(self, settings: JsonObject) -> float | None:
        """The days of retention, 30 by default. Claude Code deletes nothing while the value is invalid; 0 once meant
        everything."""
        if self.name != self.format:  # unknown for agents that share the format
            return None
        days = settings.get("cleanupPeriodDays", 30)
        return days if type(days) in (int, float) and days >= 0 else None

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is part of the chain, or a small record that only Claude Code writes at the top of a
        file."""
        kind = record.get("type")
        return isinstance(kind, str) and (
            (isinstance(record.get("sessionId"), str) and (kind in CHAIN_TYPES or is_ignored(kind) or kind == QUEUE))
            or (kind == "summary" and "leafUuid" in record)
            or (kind == "file-history-snapshot" and "messageId" in record)
        )
