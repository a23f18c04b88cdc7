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

from memory_pipeline.harnesses.answers import Answer, asks
from memory_pipeline.harnesses.codex.streams import Prompt, Streams, essence
from memory_pipeline.harnesses.codex.tools import ARGUMENTS, OUTPUT_TYPES, decoded, patched_by, plain, read_output
from memory_pipeline.harnesses.content import call_text, content_text, image_mark, is_image, url_type, without_marks
from memory_pipeline.harnesses.model import Image, Message, ParsedSession, Part, Role
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import Call, RecordReader
from memory_pipeline.harnesses.records import JsonObject, list_of, object_of, objects_of, text_of, to_time, words
from memory_pipeline.harnesses.speakers import Evidence, is_person, split_by_speaker, split_content_by_speaker
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
        self.meta: JsonObject = {}
        self.patches: dict[str, tuple[int | None, tuple[str, ...]]] = {}
        """The message of each call that changes files, and the files."""
        self.copied_until: datetime | None = None
        self.first_own_ordinal: int | None = None
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
                self.add(utterance.role, utterance.text)
            for handle, paths in self.patches.values():
                self.transcript.touch(handle, modified=paths)
            # a forked rollout repeats its parent's header, so the first one counts
            self.session_id = text_of(self.meta.get("id")) or text_of(self.meta.get("session_id"))
            self.session_id = self.session_id or self._named("thread")
            return self.session()

    def voided(self) -> set[int]:
        return self.streams.rolled_back(self.rollbacks)

    def _is_subagent(self) -> bool:
        source = self.meta.get("source")
        return isinstance(source, dict) and "subagent" in source

    @property
    def is_attended(self) -> bool:
        """Whether a person typed the prompts; those of a sub-agent were written by the agent that started it."""
        source = self.meta.get("source")
        return is_person(
            Evidence(
                "codex",
                entrypoint=text_of(next(iter(source), "") if isinstance(source, dict) else source),
                turn_origin=text_of(self.meta.get("thread_source")),
                originator=text_of(self.meta.get("originator")),
                parent_session=self.parent_session,
                cwd=self.cwd,
            )
        )

    def _named(self, part: str) -> str:
        named = _FILE_NAME.search(Path(self.transcript.source.path).name.split(".")[0])
        return (named[part] or "") if named else ""

    def part_of_session(self, pairs: list[tuple[int, Message]]) -> Part | None:
        """The file as a part of the thread. `history_base` refers to the first file by the id of the thread, and to
        others by the second id in their names."""
        base, began_at = object_of(self.meta.get("history_base")), to_time(self.began)
        thread, end = text_of(base.get("thread_id")), base.get("end_ordinal_exclusive")
        numbers = {m.message_id: self.ordinals[record] for record, m in pairs if record in self.ordinals}
        storable, after = self.transcript.storable, self.latest_ordinal + 1
        if thread and _is_ordinal(end):
            name = self._named("rollout") or self.session_id
            return Part(storable(name), began_at, storable(thread), end, after, numbers)
        return Part(storable(self.session_id), began_at, end=after, numbers=numbers) if self.ordinals else None

    def record(self, line: int, record: JsonObject) -> None:
        kind, payload = text_of(record.get("type")), record.get("payload")
        if _is_ordinal(ordinal := record.get("ordinal")):
            self.latest_ordinal = max(self.latest_ordinal, ordinal)  # some versions repeat one
            self.ordinals[self.transcript.record + 1] = self.latest_ordinal
        if kind == "event_msg" and isinstance(payload, dict) and text_of(payload.get("type")) in _IGNORED_EVENTS:
            self.transcript.skip_record()
            return
        self.transcript.next_record(line, record.get("timestamp"))
        if not isinstance(payload, dict):
            self.transcript.unknown[kind] += 1
            return
        if self.copied_until or self.first_own_ordinal is not None:
            self._follow_copy(ordinal)
        if kind == "response_item":
            if object_of(record.get("metadata")).get("compaction_output") is not True:
                self._item(payload)  # the output of a compaction is repeated as `compacted`
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "session_meta":
            self._header(payload, record.get("timestamp"))
        elif kind == "turn_context":
            self.cwd = self.cwd or text_of(payload.get("cwd"))
        elif kind == "compacted":
            self.add("injected", text_of(payload.get("message")))
            self.transcript.compact(self.transcript.record)
        elif kind not in _TYPES:
            self.transcript.unknown[kind] += 1

    def _header(self, payload: JsonObject, written: object) -> None:
        """Read a header. The first one counts; one of another session right after it begins a copy of that session."""
        own, other = text_of(self.meta.get("id")), text_of(payload.get("id"))
        if not own:
            self.meta = payload
            self.began = text_of(written)
            self.parent_session = _spawning_thread(payload)
            self.parent_id = self.parent_session or text_of(payload.get("forked_from_id"))
            self.cwd = text_of(payload.get("cwd")) or self.cwd
            git = object_of(payload.get("git"))
            self.branch, self.remote = text_of(git.get("branch")), text_of(git.get("repository_url"))
            ordinal = payload.get("subagent_history_start_ordinal")
            if isinstance(ordinal, int):
                self.first_own_ordinal = ordinal
        elif other and other != own and not self.inherited and self.transcript.record <= _LAST_FOREIGN_HEADER:
            self.parent_id = other
            self.copied_until = self.transcript.place.said_at
            self.inherited.add(self.transcript.record)

    def _follow_copy(self, ordinal: object) -> None:
        """Determine whether the record still belongs to the copy at the beginning of the file."""
        if self.first_own_ordinal is not None:
            copied = isinstance(ordinal, int) and ordinal < self.first_own_ordinal
        else:
            now, before = self.transcript.place.said_at, self.copied_until
            copied = now is not None and before is not None and now - before < _COPYING
            self.copied_until = now if copied else None
        if copied:
            self.inherited.add(self.transcript.record)

    def _event(self, payload: JsonObject) -> None:
        kind = text_of(payload.get("type"))
        place = self.transcript.place
        if kind == "user_message":
            listed = [*list_of(payload.get("images")), *list_of(payload.get("local_images"))]
            images = [Image(place.line, number, url_type(url)) for number, url in enumerate(listed)]
            text = "\n".join([text_of(payload.get("message")), *map(image_mark, images)])
            self.streams.event_prompts.append(Prompt(split_by_speaker(text), place))
        elif kind == "agent_message":
            self.streams.event_answers.append((text_of(payload.get("message")), place))
        elif kind == "patch_apply_end":
            self._patched(payload.get("call_id"), payload.get("changes"), payload.get("success") is not False)
        elif kind == "item_completed":
            self._completed(object_of(payload.get("item")))
        elif kind == "thread_name_updated":
            self.title = text_of(payload.get("thread_name")).strip() or self.title
        elif kind == "thread_rolled_back":
            if isinstance(turns := payload.get("num_turns"), int):
                self.rollbacks.append((place.record, turns))
        elif kind in ("error", "stream_error"):
            self.add("injected", text_of(payload.get("message")))
        else:
            self.transcript.unknown[f"event_msg/{kind}"] += 1

    def _completed(self, item: JsonObject) -> None:
        kind, place = item.get("type"), self.transcript.place
        if kind == "UserMessage":
            parts = split_by_speaker(content_text(item.get("content"), place.line))
            self.streams.item_prompts.append(Prompt(parts, place))
        elif kind == "AgentMessage":
            self.streams.item_answers.append((content_text(item.get("content"), place.line), place))
        elif kind == "FileChange":
            self._patched(item.get("id"), item.get("changes"), item.get("status") in (None, "completed"))

    def _patched(self, call_id: object, changes: object, applied: bool) -> None:
        handle, _ = self.patches.get(text_of(call_id), (None, ()))
        paths = tuple(changes) if applied and isinstance(changes, dict) else ()
        self.patches[text_of(call_id)] = (handle, paths)

    def _item(self, payload: JsonObject) -> None:
        kind, content = text_of(payload.get("type")), payload.get("content")
        if kind == "message":
            self._message(payload.get("role"), content)
        elif kind in ARGUMENTS:
            self._call(payload)
        elif kind in OUTPUT_TYPES:
            self._output(payload)
        elif kind == "agent_message":
            # from another agent, not typed by the user
            self.add("injected", content_text(content, self.transcript.place.line))
        elif kind not in _IGNORED_ITEMS:
            self.transcript.unknown[f"response_item/{kind}"] += 1

    def _message(self, role: object, content: object) -> None:
        line = self.transcript.place.line
        if role == "user":
            content = _without_image_tags(content)
            parts = split_content_by_speaker(content, line)
            if any(speaker == "user" for speaker, _ in parts):
                self.streams.response_prompts.append(Prompt(parts, self.transcript.place))
            else:
                for speaker, text in parts:
                    self.add(speaker, text)
        elif role == "assistant":
            text = content_text(content, line)
            self.streams.response_answers[without_marks(text)] += 1
            self.add("assistant", text)
        else:
            self.add("injected", content_text(content, line))

    def _call(self, payload: JsonObject) -> None:
        kind, call_id = text_of(payload.get("type")), text_of(payload.get("call_id"))
        given = payload.get(ARGUMENTS[kind])
        arguments = decoded(given) if kind == "function_call" and isinstance(given, str) else given
        name = text_of(payload.get("name")) or kind.removesuffix("_call")
        handle = self.add("tool", call_text(name, arguments), plain(given) + call_id, tool_name=name)
        self.calls[call_id] = Call(name, arguments if asks(arguments) else None)
        if patched := patched_by(kind, arguments):
            self.patches.setdefault(call_id, (handle, patched))

    def _output(self, payload: JsonObject) -> None:
        output, call_id = read_output(payload, self.transcript.place.line), text_of(payload.get("call_id"))
        failed, refused = output.failed, output.refused
        if failed or refused:
            self.patches.pop(call_id, None)
        self.begin(plain(payload.get("output")) + call_id)
        self.result(call_id, output.text, self.identity, failed=failed, refused=refused, given=output.data)

    def answer(self, answer: Answer, tool_name: str) -> None:
        self.add("user", answer.text, f"{self.answers}\x1f{self.identity}", tool_name=tool_name, answer=answer)
        self.answers += 1

    def add(self, role: Role, text: str, *key: object, **details: Unpack[MessageDetails]) -> int | None:
        """Add a message; the key identifies it if the text is only a part of it.

        The same words may occur again in a rollout that continues another one, so there its start time is part of the
        identity, which needs no other file. Up to 46ebf5e it was not.
        """
        payload = f"{role}\x1f{essence(''.join(map(str, key)) or without_marks(text))}"
        identity = f"{self.meta.get('id')}\x1f{self.transcript.digest(payload)}"
        identity = f"{identity}\x1f{self.transcript.occurrence(identity)}"
        if isinstance(self.meta.get("history_base"), dict):
            details["formerly"] = identity
            identity = f"{identity}\x1f{self.began}"
        return self.transcript.add(role, text, identity, **details)


class Codex(Harness):
    name = "codex"
    folders = ("${CODEX_HOME:-~/.codex}/sessions", "${CODEX_HOME:-~/.codex}/archived_sessions")
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


def _spawning_thread(payload: JsonObject) -> str:
    """The thread that started this one as its sub-agent."""
    source: Any = payload.get("source")
    for step in ("subagent", "thread_spawn", "parent_thread_id"):
        source = source.get(step) if isinstance(source, dict) else None
    return text_of(source)


def _without_image_tags(content: object) -> object:
    if not isinstance(content, list) or not any(map(is_image, content)):
        return content
    return [block for block in objects_of(content) if not _IMAGE_TAG.fullmatch(text_of(block.get("text")))]
