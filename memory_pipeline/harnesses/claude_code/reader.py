"""Claude Code: `~/.claude/projects/<slug>/<sessionId>.jsonl` and the sub-agents' files beside it.

A record is known by its `uuid`, which copies of a session keep. The chain of `parentUuid` is not walked from the last
leaf: most of its forks are parallel tool calls, and a walk would drop results. A rewind is a fork with two prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from memory_pipeline.harnesses.answers import REFUSED, Answer
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.claude_code.answers import Call, heard
from memory_pipeline.harnesses.claude_code.queued import Queue
from memory_pipeline.harnesses.claude_code.records import (
    Attachment,
    Compaction,
    HookError,
    MessageFields,
    Origin,
    Preserved,
    Record,
    Segment,
    ToolResult,
)
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
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.records import JsonObject, Other, text_of, words
from memory_pipeline.harnesses.speakers import Passage, split_content_by_speaker
from memory_pipeline.harnesses.transcript import Transcript

# State of the program and copies of what other records say.
_IGNORED = words(
    "progress file-history-snapshot file-history-delta history-suppression agent-name agent-color agent-setting "
    "last-prompt permission-mode mode pr-link bridge-session worktree-state relocated started launched result failed "
    "frame-link tag task-summary cost-state continued-in atis-latch isolation-latch fork-context-ref observer-ref "
    "content-replacement attribution-snapshot speculation-accept ended-by-model"
)
_IGNORED_FAMILIES = ("artifact-", "marble-origami-")
_IGNORED_SYSTEM = words(
    "turn_duration stop_hook_summary microcompact_boundary api_error away_summary bridge_status informational "
    "api_refusal model_refusal_fallback model_refusal_no_fallback session_start error scheduled_task_fire "
    "agents_killed memory_saved permission_retry thinking file_snapshot"
)
# Attachments repeat what the program knows; of the rest only hooks and queued prompts say something.
_IGNORED_ATTACHMENTS = words(
    # files, selections and instructions that go to the model
    "file directory already_read_file edited_text_file edited_image_file pdf_reference compact_file_reference "
    "plan_file_reference selected_lines_in_ide opened_file_in_ide inlined_image_paths nested_memory "
    "current_session_memory relevant_memories instructions session_context environment prompt_snapshot diagnostics "
    "mcp_resource mcp_instructions_delta invoked_skills dynamic_skill skill_listing skill_discovery agent_mention "
    "agent_listing_delta deferred_tools_delta deferred_tools_record structured_output read_truncation_notice "
    # modes and reminders
    "plan_mode plan_mode_reentry plan_mode_exit auto_mode auto_mode_exit model thinking_stripped output_style "
    "output_style_instructions ultra_effort_enter ultra_effort_exit ultrathink_effort date date_change task_reminder "
    "todo_reminder verify_plan_reminder compaction_reminder critical_system_reminder total_tokens_reminder "
    "batching_reminder_sent silent_turn_reminder token_usage output_token_usage budget_usd context_efficiency "
    "max_turns_reached companion_intro command_permissions workflow_keyword_request remote_session_change "
    # tasks and other agents
    "task_status async_hook_response teammate_mailbox teammate_shutdown_batch team_context"
)
_READS = {"Read": "file_path"}
_CHANGES = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
_QUEUE = "queue-operation"
_CHAIN_TYPES = frozenset(("user", "assistant", "system", "attachment", "progress"))


_FOLDERS = ("${CLAUDE_CONFIG_DIR:-~/.claude,${XDG_CONFIG_HOME:-~/.config}/claude}/projects",)


class ClaudeCode(Harness[Record]):
    name = format = "claude_code"
    record_type = Record
    side_files = (
        "sessions-index.json",
        "agent-*.meta.json",  # what a sub-agent was started with
        "subagents/journal.jsonl",
        "workflows/*/journal.jsonl",
        "workflows/wf_*.json",
        "tool-results/*.json",
        "tool-results/*.jsonl",
        "local-agent-mode-sessions/*/*/local_*.json",  # Cowork's own description of a session
        "history.jsonl",
        "stats-cache.json",
        "settings.json",
        "settings.local.json",
        "todos/*.json",
        "tasks/*/*.json",
    )

    def __init__(self, name: str = "claude_code", *folders: str) -> None:
        self.name, self.folders = name, folders or _FOLDERS

    def retention_days(self, settings: JsonObject) -> float | None:
        """30 by default. While the value is none that Claude Code takes, it deletes nothing; 0 once meant all."""
        if self.name != self.format:  # nothing is known of agents that share the format
            return None
        days = settings.get("cleanupPeriodDays", 30)
        return days if type(days) in (int, float) and days >= 0 else None

    def recognises(self, record: JsonObject) -> bool:
        """A record of the chain, or one of the small records that only Claude Code writes at the top of a file."""
        kind = record.get("type")
        return isinstance(kind, str) and (
            (isinstance(record.get("sessionId"), str) and (kind in _CHAIN_TYPES or _is_ignored(kind) or kind == _QUEUE))
            or (kind == "summary" and "leafUuid" in record)
            or (kind == "file-history-snapshot" and "messageId" in record)
        )

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.session_ids: Counter[str] = Counter()
        self.agent_id = ""
        self.cwd = ""
        self.branch = ""
        self.has_main_chain = False
        self.latest = Evidence()
        self.is_attended: bool | None = None
        """Whether a person typed the latest prompt; None before the first."""
        self.has_typed = False
        self.titles: dict[str, str] = {}
        self.summaries: list[tuple[str, str]] = []
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
        # a sub-agent's prompts are a model's
        for prompt in self.queue.kept_nowhere_else() if self.has_main_chain else ():
            transcript.place = prompt.place
            transcript.add("user" if self._has_person() else "injected", prompt.typed, prompt.identity)
            if prompt.after in voided:
                voided.add(prompt.place.record)
        return transcript.finish(
            self._session_id(),
            self._title(),
            self.cwd,
            voided=voided,
            branch=self.branch,
            is_attended=self.has_typed or self._has_person(),
        )

    def _session_id(self) -> str:
        """The id in the file's name, if its records have it, else that of most records; a sub-agent's id is added."""
        stem = Path(self.transcript.source.path).stem
        most = self.session_ids.most_common(1)
        session_id = stem if stem in self.session_ids else most[0][0] if most else ""
        return f"{session_id}/{self.agent_id}" if self.agent_id and not self.has_main_chain else session_id

    def _title(self) -> str:
        own = [text for leaf, text in self.summaries if leaf in self.positions]
        return self.titles.get("custom-title") or self.titles.get("ai-title") or (own[-1] if own else "")

    def _rewound(self) -> set[int]:
        """Records of the turns that were voided: of several prompts after one record only the last one counts."""
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
        if _is_ignored(kind):
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        if kind in _CHAIN_TYPES:
            self._chain_record(record, kind)
        elif kind == _QUEUE:
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
            self.identity = uuid
        else:
            self.identity = self._identity(record, kind, record.message)
        self.part = self.answers = 0
        self._envelope(record, kind)
        said = self._say(record, kind)
        # a damaged copy of a record, with nothing in it, must not hide the whole one
        if said and isinstance(uuid, str):
            self.said.add(uuid)

    def _identity(self, record: Record, kind: str, content: object) -> str:
        """The identity of a record without an id of its own."""
        identity = f"{record.timestamp}\x1f{kind}\x1f{self.transcript.digest(msgspec.json.encode(content))}"
        return f"{identity}\x1f{self.transcript.occurrence(identity)}"

    def _queue_operation(self, record: Record, operation: str) -> None:
        if operation == "enqueue":
            after = next(reversed(self.positions.values()), -1)
            identity = self._identity(record, _QUEUE, record.content)
            self.queue.enqueue(record.content, identity, self.transcript.place, after)
        else:
            self.queue.move(operation, record.content, is_kept=self.has_attachments)

    def _envelope(self, record: Record, kind: str) -> None:
        if isinstance(record.sessionId, str):
            self.session_ids[record.sessionId] += 1
        if not self.cwd:
            self.cwd, self.branch = text_of(record.cwd), text_of(record.gitBranch)
        if record.isSidechain is True:
            self.agent_id = self.agent_id or text_of(record.agentId)
        elif kind in ("user", "assistant"):
            self.has_main_chain = True
        self.latest = _evidence(record, None)

    def _say(self, record: Record, kind: str) -> bool:
        """Keep what the record says; whether there was anything."""
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
        elif subtype not in _IGNORED_SYSTEM:
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
        self._beside(record, rest, text_of(results[-1].tool_use_id), line, count)
        for block in results:
            self.calls.pop(text_of(block.tool_use_id), None)

    def _result(self, record: Record, block: Block, line: int, first: int) -> int:
        """What a tool gave back, and what the user says in it; how many images there are, numbered from `first`."""
        images = images_in(block.content, line, first)
        text = content_text(block.content, line, first) or "(no output)"
        call_id, failed = text_of(block.tool_use_id), block.is_error is True
        name, data = self.tools.get(call_id, ""), record.toolUseResult
        found = heard(
            self.calls.get(call_id, Call("", None)),
            text,
            is_error=failed,
            denial=record.toolDenialKind,
            result=msgspec.structs.asdict(data) if isinstance(data, ToolResult) else None,
        )
        if failed and call_id in self.changes:
            self.transcript.touch(self.changes[call_id])  # refused or failed, so nothing was changed
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

    def _beside(self, record: Record, rest: list[Block | Other], call_id: str, line: int, first: int) -> None:
        """What stands beside the results: the remark with which the user let the call through, or what the program
        put in.
        """
        images = images_in(rest, line, first)
        if record.isMeta is True or _evidence(record, record.origin).is_notice:
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
        """A prompt; what a model wrote for a sub-agent and what a program wrote is nobody's typing."""
        evidence = _evidence(record, origin or record.origin)
        machine_made = (
            record.isMeta is True or record.isSidechain is True or record.isCompactSummary is True or evidence.is_notice
        )
        typed = not machine_made and is_person(evidence)
        for role, text in parts:
            if role == "user" and not machine_made and not typed:
                self.queue.told(text, self.transcript.record)
                self.transcript.note_program_prompt(text)
            self._add(role if typed else "injected", text, content=content)
        prompted = not machine_made and any(role == "user" for role, _ in parts)
        if prompted:
            self.is_attended = typed
            self.has_typed = self.has_typed or typed
        # without a parent it is the first prompt; several such are not rewinds, but several conversations in one file
        if prompted and record.type == "user" and isinstance(record.uuid, str) and isinstance(record.parentUuid, str):
            self.prompts.setdefault(record.parentUuid, []).append(record.uuid)

    def _assistant(self, record: Record, content: Content) -> None:
        """Text and tool calls; thinking is left out. The text of a failed call to the API is the program's."""
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
        elif kind not in _IGNORED_ATTACHMENTS:
            self.transcript.unknown[f"attachment/{kind}"] += 1

    def _compaction(self, metadata: object) -> None:
        """Everything before was summarised away, but for what the boundary says it kept."""
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
            self.queue.told(text, self.transcript.record)
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
        """Words of the user within a result, counted apart: the numbers of the parts are in stored ids. Where no
        person is, a program gave the answer.
        """
        identity = f"{self.identity}\x1fanswer\x1f{self.answers}"
        self.answers += 1
        if self._has_person():
            self.transcript.add("user", answer.text, identity, tool_name=tool_name, answer=answer)
        else:
            self.transcript.add("injected", answer.text, identity, tool_name=tool_name)

    def _has_person(self) -> bool:
        """Whether a person sits at the session now: the one who typed the latest prompt, or who could have."""
        return is_person(self.latest) if self.is_attended is None else self.is_attended


def _is_ignored(kind: str) -> bool:
    return kind in _IGNORED or kind.startswith(_IGNORED_FAMILIES)


def _evidence(record: Record, origin: object) -> Evidence:
    """What a record tells of who typed; `origin` is its own or that of its attachment."""
    return Evidence(
        agent="claude_code",
        entrypoint=text_of(record.entrypoint),
        prompt_source=text_of(record.promptSource),
        turn_origin=text_of(record.turnOrigin),
        origin=text_of(origin.kind) if isinstance(origin, Origin) else "",
        cwd=text_of(record.cwd),
    )


def below(parents: Mapping[str, str], *entries: str) -> set[str]:
    """The entries and all that come after them."""
    found: set[str] = set()
    waiting = list(entries)
    if not waiting:
        return found
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(children.get(node, ()))
    return found


def last_below(parents: Mapping[str, str], positions: Mapping[str, int]) -> dict[str, int]:
    """For every entry the greatest position among it and all that come after it."""
    last = {entry: positions[entry] for entry in parents}
    children = Counter(parents.values())
    waiting = [entry for entry in parents if not children[entry]]
    while waiting:
        entry = waiting.pop()
        parent = parents[entry]
        if parent in last:
            last[parent] = max(last[parent], last[entry])
            children[parent] -= 1
            if not children[parent]:
                waiting.append(parent)
    for entry in parents:
        cycle = []
        while children[entry] > 0:  # what is left are cycles, in which all come after each other
            children[entry] = 0
            cycle.append(entry)
            entry = parents[entry]
        greatest = max((last[node] for node in cycle), default=0)
        last.update(dict.fromkeys(cycle, greatest))
    return last
