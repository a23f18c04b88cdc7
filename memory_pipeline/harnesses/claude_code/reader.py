"""Claude Code: `~/.claude/projects/<slug>/<sessionId>.jsonl` and the sub-agents' files beside it.

A record is identified by its `uuid`, which copies of a session keep. The chain of `parentUuid` is not walked from the
last leaf: most of its forks are parallel tool calls, and a walk would drop results. A rewind is a fork with two
prompts.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar, Unpack

import msgspec

from memory_pipeline.harnesses.answers import Answer
from memory_pipeline.harnesses.claude_code.queued import Queue
from memory_pipeline.harnesses.claude_code.records import (
    CHAIN_TYPES,
    IGNORED_SYSTEM,
    QUEUE,
    evidence_in,
    is_ignored,
    user_reply,
)
from memory_pipeline.harnesses.content import blocks_of, content_text, identifying, images_in
from memory_pipeline.harnesses.model import ParsedSession, Role
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import Call, RecordReader
from memory_pipeline.harnesses.records import JsonObject, list_of, object_of, text_of
from memory_pipeline.harnesses.speakers import Evidence, is_person, split_content_by_speaker
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
        self.withdrawn: set[int] = set()
        self.said: set[str] = set()
        self.queue = Queue()
        self.has_attachments = False

    @property
    def is_attended(self) -> bool:
        return self.has_typed or self._has_person()

    def finish(self) -> ParsedSession:
        self.session_id, self.title = self._session_id(), self._title()
        self.withdrawn = self._rewound()
        with self.transcript_copied():
            # a sub-agent's prompts come from a model
            for prompt in self.queue.kept_nowhere_else() if self.has_main_chain else ():
                self.transcript.place = prompt.place
                self.transcript.add("user" if self._has_person() else "injected", prompt.typed, prompt.identity)
                if prompt.after in self.withdrawn:
                    self.withdrawn.add(prompt.place.record)
            return self.session()

    def voided(self) -> set[int]:
        return self.withdrawn

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

    def record(self, line: int, record: JsonObject) -> None:
        kind = text_of(record.get("type"))
        if isinstance(uuid := record.get("uuid"), str) and uuid not in self.positions:
            self.positions[uuid] = self.transcript.record + 1
            self.parents[uuid] = text_of(record.get("parentUuid")) or text_of(record.get("logicalParentUuid"))
        if is_ignored(kind):
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.get("timestamp"))
        if kind in CHAIN_TYPES:
            self._chain_record(record, kind)
        elif kind == QUEUE:
            self._queue_operation(record, text_of(record.get("operation")))
        elif kind == "summary":
            self.summaries.append((text_of(record.get("leafUuid")), text_of(record.get("summary"))))
        elif kind in ("custom-title", "ai-title"):
            title = record.get("customTitle" if kind == "custom-title" else "aiTitle")
            self.titles[kind] = text_of(title).strip() or self.titles.get(kind, "")
        else:
            self.transcript.unknown[kind] += 1

    def _chain_record(self, record: JsonObject, kind: str) -> None:
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            if uuid in self.said:
                return
            self.begin(uuid)
        else:
            message = record.get("message")
            content = {"content": identifying(message.get("content"))} if isinstance(message, dict) else message
            self._begin_unnamed(record, kind, content)
        self._envelope(record, kind)
        self.latest = evidence_in(record)
        said = self._say(record, kind)
        # an empty damaged copy of a record must not hide the intact one
        if said and isinstance(uuid, str):
            self.said.add(uuid)

    def _begin_unnamed(self, record: JsonObject, kind: str, content: object) -> None:
        self.begin_repeatable(record.get("timestamp"), kind, self.transcript.digest(msgspec.json.encode(content)))

    def _envelope(self, record: JsonObject, kind: str) -> None:
        """Read the session's data from a record of the conversation."""
        if isinstance(session_id := record.get("sessionId"), str):
            self.session_ids[session_id] += 1
        if not self.cwd:
            self.cwd, self.branch = text_of(record.get("cwd")), text_of(record.get("gitBranch"))
        if record.get("isSidechain") is True:
            self.agent_id = self.agent_id or text_of(record.get("agentId"))
        elif kind in ("user", "assistant"):
            self.has_main_chain = True

    def _queue_operation(self, record: JsonObject, operation: str) -> None:
        content = record.get("content")
        if operation == "enqueue":
            after = next(reversed(self.positions.values()), -1)
            self._begin_unnamed(record, QUEUE, identifying(content))
            self.queue.enqueue(content, self.identity, self.transcript.place, after)
        else:
            self.queue.move(operation, content, is_kept=self.has_attachments)

    def _say(self, record: JsonObject, kind: str) -> bool:
        """Add the contents of the record; returns whether there were any."""
        content = object_of(record.get("message")).get("content")
        if kind == "user":
            self._user(record, content)
        elif kind == "assistant":
            # the text of a failed API call is the program's
            self.reply(content, "injected" if record.get("isApiErrorMessage") is True else "assistant")
        elif kind == "attachment":
            self.has_attachments = True
            self._attachment(record, object_of(record.get("attachment")))
        else:
            return self._system(record, text_of(record.get("subtype")))
        return self.part > 0

    def _system(self, record: JsonObject, subtype: str) -> bool:
        if subtype == "compact_boundary":
            self._compaction(object_of(record.get("compactMetadata")))
            return True
        if subtype == "local_command":
            self._prompt(record, record.get("content"))
        elif subtype not in IGNORED_SYSTEM:
            self.transcript.unknown[f"system/{subtype}"] += 1
        return self.part > 0

    def _user(self, record: JsonObject, content: object) -> None:
        blocks = blocks_of(content)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if not results:
            self._prompt(record, content)
            return
        call = self.calls.get(text_of(results[-1].get("tool_use_id")), Call())
        count = 0
        for block in results:
            count += self._result(record, block, count)
        self._add_rest(record, [block for block in blocks if block.get("type") != "tool_result"], call, count)

    def _result(self, record: JsonObject, block: JsonObject, first: int) -> int:
        """Add the output of a tool, and the user's words in it. Returns the number of images, which are numbered from
        `first`."""
        text = content_text(block.get("content"), self.transcript.place.line, first) or "(no output)"
        call_id, failed = text_of(block.get("tool_use_id")), block.get("is_error") is True
        call, given = self.calls.get(call_id, Call()), record.get("toolUseResult")
        found = user_reply(call, text, is_error=failed, denial=record.get("toolDenialKind"), result=given)
        self.result(call_id, text, failed=failed, refused=found.refused, answers=found.answers)
        return len(images_in(text))

    def _add_rest(self, record: JsonObject, rest: list[JsonObject], call: Call, first: int) -> None:
        """Add text next to results: the user's remark on the call, or text that the program inserted."""
        line = self.transcript.place.line
        if record.get("isMeta") is True or evidence_in(record).is_notice:
            self.add("injected", content_text(rest, line, first))
            return
        for speaker, text in split_content_by_speaker(rest, line, first):
            role = speaker if self._has_person() else "injected"
            remark = Answer(text, "approved call", call.text) if role == "user" else None
            name = call.name if remark else None
            self.add(role, text, tool_name=name, answer=remark)

    def _prompt(self, record: JsonObject, content: object, origin: object = None, *, inserted: bool = False) -> None:
        """Add a prompt; text that a model wrote for a sub-agent, or a program wrote or `inserted`, is not the
        user's."""
        parts = split_content_by_speaker(content, self.transcript.place.line)
        if inserted:
            parts = [("injected", text) for _, text in parts]
        evidence = evidence_in(record, origin)
        by_machine = any(record.get(name) is True for name in ("isMeta", "isSidechain", "isCompactSummary"))
        machine_made = by_machine or evidence.is_notice
        typed = not machine_made and is_person(evidence)
        for role, text in parts:
            if role == "user" and not machine_made and not typed:
                self.queue.on_prompt(text, self.transcript.record)
                self.transcript.detect_marks("user", text)
            self.add(role if typed else "injected", text)
        prompted = not machine_made and any(role == "user" for role, _ in parts)
        if prompted:
            self.is_latest_typed = typed
            self.has_typed = self.has_typed or typed
        # the first prompt has no parent; several of these are not rewinds, but several conversations in one file
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if prompted and record.get("type") == "user" and isinstance(uuid, str) and isinstance(parent, str):
            self.prompts.setdefault(parent, []).append(uuid)

    def _attachment(self, record: JsonObject, attachment: JsonObject) -> None:
        """Add a queued prompt or the output of a hook; other attachments repeat state of the program."""
        kind, content = text_of(attachment.get("type")), attachment.get("content")
        if kind == "queued_command":
            inserted = attachment.get("commandMode") not in (None, "prompt")
            self._prompt(record, attachment.get("prompt"), attachment.get("origin"), inserted=inserted)
        elif kind.startswith("hook_"):
            if isinstance(error := attachment.get("blockingError"), dict):
                content = text_of(error.get("blockingError"))
            lines = [text for text in list_of(content) if isinstance(text, str)]
            self.add("injected", "\n".join(lines) or content_text(content, self.transcript.place.line))

    def _compaction(self, metadata: JsonObject) -> None:
        """Record a compaction: everything before was summarised away, except what the boundary says was kept."""
        segment, preserved = object_of(metadata.get("preservedSegment")), object_of(metadata.get("preservedMessages"))
        now = self.transcript.record
        uuids = map(text_of, list_of(preserved.get("uuids")))
        kept = {self.positions[uuid] for uuid in uuids if uuid in self.positions}
        stretch = range(0)
        if (head := self.positions.get(text_of(segment.get("headUuid")))) is not None:
            stretch = range(head, self.positions.get(text_of(segment.get("tailUuid")), now) + 1)
        self.transcript.compact(now, kept, stretch, tokens_before=metadata.get("preTokens"))

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


class ClaudeCode(Harness):
    name = "claude_code"
    folders = ("${CLAUDE_CONFIG_DIR:-~/.claude,${XDG_CONFIG_HOME:-~/.config}/claude}/projects",)
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
