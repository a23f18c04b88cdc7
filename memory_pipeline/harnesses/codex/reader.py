"""Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, from version 0.34 on.

Most messages are in a rollout twice, as `event_msg` and as `response_item`, and are counted once. Up to 0.152 a rollout
that resumes or forks another begins with a copy of it, written at once with new times: those messages are inherited.
From 0.153 on a resumed or reverted thread continues in another file, which names the part that it continues in
`history_base`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeGuard, Unpack

from memory_pipeline.harnesses.answers import REFUSED, answers_given, asks
from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.codex.records import Git, HistoryBase, Item, Metadata, Payload, Record
from memory_pipeline.harnesses.codex.streams import Prompt, Streams, bare, essence
from memory_pipeline.harnesses.codex.tools import CALL_TYPES, OUTPUT_TYPES, read_call, read_output
from memory_pipeline.harnesses.content import (
    Block,
    Content,
    call_text,
    content_text,
    image_mark,
    images_in,
    is_image,
    marked_images,
    url_type,
)
from memory_pipeline.harnesses.model import Image, ParsedSession, Part, Role
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import Call, RecordReader
from memory_pipeline.harnesses.records import JsonObject, text_of, to_time, words
from memory_pipeline.harnesses.speakers import split_by_speaker, split_content_by_speaker
from memory_pipeline.harnesses.transcript import MessageDetails, Transcript

_TYPES = words(
    "session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata security_risk_score token_usage_record"
)
# Measurements, state, and copies of a `response_item`.
_IGNORED_EVENTS = words(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break token_count task_started task_complete "
    "turn_started turn_complete turn_aborted context_compacted mcp_tool_call_end web_search_end "
    "exec_command_end entered_review_mode exited_review_mode thread_goal_updated thread_settings_applied "
    "sub_agent_activity image_generation_end view_image_tool_call undo_completed guardian_assessment "
    "dynamic_tool_call_request dynamic_tool_call_response collab_agent_spawn_end collab_agent_interaction_end "
    "collab_waiting_end collab_close_end collab_resume_end plan_update warning guardian_warning model_reroute "
    "model_verification hook_started hook_completed"
)
_IGNORED_ITEMS = words(
    "reasoning ghost_snapshot compaction compaction_summary context_compaction compaction_trigger additional_tools"
)
# Texts before and after an image in a prompt.
_IMAGE_TAG = re.compile(r"\s*</?image\b[^<>]*>\s*")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE_NAME = re.compile(rf"(?P<thread>{_UUID})(?:_(?P<rollout>{_UUID}))?$")
# Maximum time between records of a copy, which is written within milliseconds; a user or a model takes longer.
_COPYING = timedelta(seconds=0.5)
_LAST_FOREIGN_HEADER = 3
"""Last record at which the header of another session begins a copy of that session."""
_MOST_RECORDS = 2**53


class Reader(RecordReader):
    parent_id = ""
    """The session that this one continues, or that started it."""

    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.meta = Payload()
        self.patches: dict[str, tuple[int | None, tuple[str, ...]]] = {}
        """The message of each call that changes files, and the files."""
        self.copied_until: datetime | None = None
        self.first_own_ordinal: int | None = None
        self.inherited: set[int] = set()
        self.rollbacks: list[tuple[int, int]] = []
        self.streams = Streams()
        self.began = ""
        """The time of the header, if it continues another rollout."""
        self.latest_ordinal = -1
        self.ordinals: dict[int, int] = {}

    def finish(self) -> ParsedSession:
        prompted: Role = "injected" if self._is_subagent() else "user"
        with self.transcript_copied():
            for utterance in (*self.streams.prompts_once(prompted), *self.streams.answers_once()):
                self.transcript.place = utterance.place
                self.add(utterance.role, utterance.text, images=utterance.images)
            for handle, paths in self.patches.values():
                self.transcript.touch(handle, modified=paths)
            # a forked rollout repeats its parent's header, so the first one counts
            self.session_id = text_of(self.meta.id) or text_of(self.meta.session_id) or self._named("thread")
            return self.session(inherited=self.inherited, part=self._part(), numbers=self.ordinals)

    def voided(self) -> set[int]:
        return self.streams.rolled_back(self.rollbacks)

    def _is_subagent(self) -> bool:
        return isinstance(self.meta.source, dict) and "subagent" in self.meta.source

    @property
    def is_attended(self) -> bool:
        """Whether a person typed the prompts; those of a sub-agent were written by the agent that started it."""
        meta = self.meta
        source = next(iter(meta.source), "") if isinstance(meta.source, dict) else meta.source
        return is_person(
            Evidence(
                "codex",
                entrypoint=text_of(source),
                turn_origin=text_of(meta.thread_source),
                originator=text_of(meta.originator),
                parent_session=self.parent_session,
                cwd=self.cwd,
            )
        )

    def _named(self, part: str) -> str:
        named = _FILE_NAME.search(Path(self.transcript.source.path).name.split(".")[0])
        return (named[part] or "") if named else ""

    def _part(self) -> Part | None:
        """The file as a part of the thread. `history_base` refers to the first file by the id of the thread, and to
        others by the second id in their names."""
        base, began_at = self.meta.history_base, to_time(self.began)
        end = base.end_ordinal_exclusive if isinstance(base, HistoryBase) else None
        if not isinstance(base, HistoryBase) or not _is_ordinal(end) or not text_of(base.thread_id):
            return Part(self.session_id, began_at, end=self.latest_ordinal + 1) if self.ordinals else None
        name = self._named("rollout") or self.session_id
        return Part(name, began_at, text_of(base.thread_id), end, self.latest_ordinal + 1)

    def record(self, line: int, record: Record) -> None:
        kind, payload = text_of(record.type), record.payload
        if _is_ordinal(record.ordinal):
            self.latest_ordinal = max(self.latest_ordinal, record.ordinal)  # some versions repeat one
            self.ordinals[self.transcript.record + 1] = self.latest_ordinal
        if kind == "event_msg" and isinstance(payload, Payload) and text_of(payload.type) in _IGNORED_EVENTS:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.timestamp)
        if not isinstance(payload, Payload):
            self.transcript.unknown[kind] += 1
            return
        if self.copied_until or self.first_own_ordinal is not None:
            self._follow_copy(record)
        if kind == "response_item":
            if not (isinstance(record.metadata, Metadata) and record.metadata.compaction_output is True):
                self._item(payload)  # the output of a compaction is repeated as `compacted`
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "session_meta":
            self._header(payload, record.timestamp)
        elif kind == "turn_context":
            self.cwd = self.cwd or text_of(payload.cwd)
        elif kind == "compacted":
            self.add("injected", text_of(payload.message))
            self.transcript.compact(self.transcript.record)
        elif kind not in _TYPES:
            self.transcript.unknown[kind] += 1

    def _header(self, payload: Payload, written: object) -> None:
        """Read a header. The first one counts; one of another session right after it begins a copy of that session."""
        own, other = text_of(self.meta.id), text_of(payload.id)
        if not own:
            self.meta = payload
            self.began = text_of(written)
            self.parent_session = _spawning_thread(payload)
            self.parent_id = self.parent_session or text_of(payload.forked_from_id)
            self.cwd = text_of(payload.cwd) or self.cwd
            if isinstance(payload.git, Git):
                self.branch, self.remote = text_of(payload.git.branch), text_of(payload.git.repository_url)
            ordinal = payload.subagent_history_start_ordinal
            if isinstance(ordinal, int):
                self.first_own_ordinal = ordinal
        elif other and other != own and not self.inherited and self.transcript.record <= _LAST_FOREIGN_HEADER:
            self.parent_id = other
            self.copied_until = self.transcript.place.said_at
            self.inherited.add(self.transcript.record)

    def _follow_copy(self, record: Record) -> None:
        """Determine whether the record still belongs to the copy at the beginning of the file."""
        if self.first_own_ordinal is not None:
            copied = isinstance(record.ordinal, int) and record.ordinal < self.first_own_ordinal
        else:
            now, before = self.transcript.place.said_at, self.copied_until
            copied = now is not None and before is not None and now - before < _COPYING
            self.copied_until = now if copied else None
        if copied:
            self.inherited.add(self.transcript.record)

    def _event(self, payload: Payload) -> None:
        kind = text_of(payload.type)
        place = self.transcript.place
        if kind == "user_message":
            listed = [
                *(payload.images if isinstance(payload.images, list) else ()),
                *(payload.local_images if isinstance(payload.local_images, list) else ()),
            ]
            images = tuple(Image(place.line, number, url_type(url)) for number, url in enumerate(listed))
            text = "\n".join([text_of(payload.message), *map(image_mark, images)])
            self.streams.event_prompts.append(Prompt(split_by_speaker(text), place, images))
        elif kind == "agent_message":
            self.streams.event_answers.append((text_of(payload.message), place))
        elif kind == "patch_apply_end":
            self._patched(payload.call_id, payload.changes, payload.success is not False)
        elif kind == "item_completed":
            if isinstance(payload.item, Item):
                self._completed(payload.item)
        elif kind == "thread_name_updated":
            self.title = text_of(payload.thread_name).strip() or self.title
        elif kind == "thread_rolled_back":
            if isinstance(payload.num_turns, int):
                self.rollbacks.append((place.record, payload.num_turns))
        elif kind in ("error", "stream_error"):
            self.add("injected", text_of(payload.message))
        else:
            self.transcript.unknown[f"event_msg/{kind}"] += 1

    def _completed(self, item: Item) -> None:
        place = self.transcript.place
        if item.type == "UserMessage":
            text, images = content_text(item.content, place.line), images_in(item.content, place.line)
            self.streams.item_prompts.append(Prompt(split_by_speaker(text), place, images))
        elif item.type == "AgentMessage":
            self.streams.item_answers.append((content_text(item.content, place.line), place))
        elif item.type == "FileChange":
            self._patched(item.id, item.changes, item.status in (None, "completed"))

    def _patched(self, call_id: object, changes: object, applied: bool) -> None:
        handle, _ = self.patches.get(text_of(call_id), (None, ()))
        paths = tuple(changes) if applied and isinstance(changes, dict) else ()
        self.patches[text_of(call_id)] = (handle, paths)

    def _item(self, payload: Payload) -> None:
        kind = text_of(payload.type)
        if kind == "message":
            self._message(payload.role, payload.content)
        elif kind in CALL_TYPES:
            self._call(payload)
        elif kind in OUTPUT_TYPES:
            self._output(payload)
        elif kind == "agent_message":
            # from another agent, not typed by the user
            self.add("injected", content_text(payload.content, self.transcript.place.line))
        elif kind not in _IGNORED_ITEMS:
            self.transcript.unknown[f"response_item/{kind}"] += 1

    def _message(self, role: object, content: Content) -> None:
        line = self.transcript.place.line
        if role == "user":
            content = _without_image_tags(content)
            parts = split_content_by_speaker(content, line)
            if any(speaker == "user" for speaker, _ in parts):
                self.streams.response_prompts.append(Prompt(parts, self.transcript.place, images_in(content, line)))
            else:
                for speaker, text in parts:
                    self.add(speaker, text)
        elif role == "assistant":
            text = content_text(content, line)
            self.streams.response_answers[bare(text)] += 1
            self.add("assistant", text)
        else:
            self.add("injected", content_text(content, line))

    def _call(self, payload: Payload) -> None:
        call = read_call(payload)
        handle = self.add("tool", call_text(call.name, call.arguments), call.identity, tool_name=call.name)
        self.calls[call.call_id] = Call(call.name, call.arguments if asks(call.arguments) else None)
        if call.patched:
            self.patches.setdefault(call.call_id, (handle, tuple(call.patched)))

    def _output(self, payload: Payload) -> None:
        output = read_output(payload, self.transcript.place.line)
        if output.failed or output.refused:
            self.patches.pop(output.call_id, None)
        text, call = output.text or "(no output)", self.calls.get(output.call_id, Call())
        images = images_in(output.content, self.transcript.place.line)
        answer = REFUSED if output.refused else None
        failed, identity = output.failed, output.identity
        self.add("tool", text, identity, tool_name=call.name, is_error=failed, images=images, answer=answer)
        for number, answer in enumerate(answers_given(call.arguments, output.data)):
            self.add("user", answer.text, f"{number}\x1f{identity}", tool_name=call.name, answer=answer)
        self.calls[output.call_id] = Call(call.name)

    def add(self, role: Role, text: str, *key: object, **details: Unpack[MessageDetails]) -> int | None:
        """Add a message; the key identifies it if the text is only a part of it.

        The same words may occur again in a rollout that continues another one, so there its start time is part of the
        identity, which needs no other file. Up to 46ebf5e it was not.
        """
        payload = f"{role}\x1f{essence(''.join(map(str, key)) or bare(text))}"
        identity = f"{self.meta.id}\x1f{self.transcript.digest(payload)}"
        identity = f"{identity}\x1f{self.transcript.occurrence(identity)}"
        if isinstance(self.meta.history_base, HistoryBase):
            details["formerly"] = identity
            identity = f"{identity}\x1f{self.began}"
        details["images"] = marked_images(text, details.get("images", ()))
        return self.transcript.add(role, text, identity, **details)


class Codex(Harness[Record]):
    name = "codex"
    folders = ("${CODEX_HOME:-~/.codex}/sessions", "${CODEX_HOME:-~/.codex}/archived_sessions")
    record_type = Record
    reader = Reader
    side_files = (
        "session_index.jsonl",
        "history.jsonl",
        "auth.json",
        "models_cache.json",
        "version.json",
        ".codex-global-state.json",
    )

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record has the wrapper of a rollout's line."""
        return text_of(record.get("type")) in _TYPES and isinstance(record.get("payload"), dict)


def _is_ordinal(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST_RECORDS


def _spawning_thread(payload: Payload) -> str:
    """The thread that started this one as its sub-agent."""
    source: Any = payload.source
    for step in ("subagent", "thread_spawn", "parent_thread_id"):
        source = source.get(step) if isinstance(source, dict) else None
    return text_of(source)


def _without_image_tags(content: Content) -> Content:
    if not isinstance(content, list) or not any(map(is_image, content)):
        return content
    return [block for block in content if not (isinstance(block, Block) and _IMAGE_TAG.fullmatch(text_of(block.text)))]
