"""Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, from version 0.34 on.

Most of what is said stands in a rollout twice, as `event_msg` and as `response_item`, and is counted once. Rolled-back
turns are still there, and so is what a forked rollout copied from its parent.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memory_pipeline.sessions.harnesses.codex_tools import CALL_TYPES, OUTPUT_TYPES, read_call, read_output
from memory_pipeline.sessions.harnesses.content import call_text, content_text, image_mark
from memory_pipeline.sessions.harnesses.records import Record, text_of, words
from memory_pipeline.sessions.harnesses.transcript import Place, Transcript
from memory_pipeline.sessions.harnesses.voices import Voice, split_voices, voices
from memory_pipeline.sessions.model import ParsedSession, Role

HARNESS = "codex"

_TYPES = words(
    "session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata security_risk_score"
)
# Measurements, state and second copies of what a `response_item` holds.
_IGNORED_EVENTS = words(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break token_count task_started task_complete "
    "turn_started turn_complete turn_aborted thread_rolled_back context_compacted mcp_tool_call_end web_search_end "
    "exec_command_end entered_review_mode exited_review_mode thread_goal_updated thread_settings_applied "
    "sub_agent_activity item_completed image_generation_end view_image_tool_call undo_completed guardian_assessment "
    "dynamic_tool_call_request dynamic_tool_call_response collab_agent_spawn_end collab_agent_interaction_end "
    "collab_waiting_end collab_close_end"
)
_IGNORED_ITEMS = words("reasoning ghost_snapshot compaction compaction_summary")
_ROLLOUT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def recognises(first_records: Sequence[Record]) -> bool:
    """The wrapper that every line of a rollout has."""
    return any(
        text_of(record.get("type")) in _TYPES and isinstance(record.get("payload"), dict) for record in first_records
    )


def parse(path: Path, *, tool_text_limit: int = 1500) -> ParsedSession:
    """Read one rollout."""
    return _Reader(Transcript(HARNESS, path, tool_text_limit)).read()


class _Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.meta: Record = {}
        self.name = ""
        self.cwd = ""
        self.tools: dict[str, str] = {}
        self.patches: dict[str, list[str]] = {}
        self.place = Place(0, 0, None, None)
        # What may stand there twice is sorted out when all of it is known.
        self.prompts: list[tuple[str, Place]] = []
        self.prompt_items: list[tuple[list[Voice], Place]] = []
        self.answers: list[tuple[str, Place]] = []
        self.answer_items: Counter[str] = Counter()

    def read(self) -> ParsedSession:
        for record in self.transcript.records():
            payload = record.get("payload")
            self.place = self.transcript.place(record.get("timestamp"))
            if isinstance(payload, dict):
                self._record(text_of(record.get("type")), payload)
            else:
                self.transcript.unknown[text_of(record.get("type"))] += 1
        self._settle_prompts()
        self._settle_answers()
        for paths in self.patches.values():
            self.transcript.files_modified.update(paths)
        return self.transcript.finish(self._session_id(), self.name, text_of(self.meta.get("cwd")) or self.cwd)

    def _session_id(self) -> str:
        """Of the first header, since a forked rollout repeats its parent's; else of the file's name."""
        named = _ROLLOUT_ID.search(self.transcript.path.stem)
        return text_of(self.meta.get("id")) or text_of(self.meta.get("session_id")) or (named[0] if named else "")

    def _record(self, kind: str, payload: Record) -> None:
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "session_meta":
            self.meta = self.meta or payload
        elif kind == "turn_context":
            self.cwd = self.cwd or text_of(payload.get("cwd"))
        elif kind == "compacted":
            self._add("injected", text_of(payload.get("message")))
            self.transcript.compact(self.transcript.record)
        elif kind not in _TYPES:
            self.transcript.unknown[kind] += 1

    def _event(self, payload: Record) -> None:
        kind = text_of(payload.get("type"))
        if kind == "user_message":
            shown = [
                image
                for key in ("images", "local_images")
                if isinstance(images := payload.get(key), list)
                for image in images
            ]
            marks = [image_mark({"image_url": image}, self.place.line) for image in shown]
            self.prompts.append(("\n".join([text_of(payload.get("message")), *marks]), self.place))
        elif kind == "agent_message":
            self.answers.append((text_of(payload.get("message")), self.place))
        elif kind == "patch_apply_end":
            changes = payload.get("changes")
            self.patches[text_of(payload.get("call_id"))] = []
            if isinstance(changes, dict) and payload.get("success") is not False:
                self.transcript.files_modified.update(changes)
        elif kind == "thread_name_updated":
            self.name = text_of(payload.get("thread_name")).strip() or self.name
        elif kind in ("error", "stream_error"):
            self._add("injected", text_of(payload.get("message")))
        elif kind not in _IGNORED_EVENTS:
            self.transcript.unknown[f"event_msg/{kind}"] += 1

    def _item(self, payload: Record) -> None:
        kind = text_of(payload.get("type"))
        if kind == "message":
            self._message(payload.get("role"), payload.get("content"))
        elif kind in CALL_TYPES:
            self._call(payload)
        elif kind in OUTPUT_TYPES:
            self._output(payload)
        elif kind == "agent_message":
            # from another agent, so no person typed it
            self._add("injected", content_text(payload.get("content"), self.place.line))
        elif kind not in _IGNORED_ITEMS:
            self.transcript.unknown[f"response_item/{kind}"] += 1

    def _message(self, role: object, content: object) -> None:
        if role == "user":
            parts = voices(content, self.place.line)
            if any(voice == "user" for voice, _ in parts):
                self.prompt_items.append((parts, self.place))
            else:
                for voice, text in parts:
                    self._add(voice, text)
        elif role == "assistant":
            text = content_text(content, self.place.line)
            self.answer_items[_bare(text)] += 1
            self._add("assistant", text)
        else:
            self._add("injected", content_text(content, self.place.line))

    def _settle_prompts(self) -> None:
        """The user's prompts are those of the event stream, where there is one.

        A `response_item` that no event repeats is then something that the program said in the user's name.
        """
        source = self.meta.get("source")
        # the prompts of a sub-agent were written by the agent that started it
        typed: Role = "injected" if isinstance(source, dict) and "subagent" in source else "user"
        told = set()
        for prompt, place in self.prompts:
            for voice, text in split_voices(prompt):
                told.add(_bare(text))
                self._add(typed if voice == "user" else voice, text, place)
        for parts, place in self.prompt_items:
            for voice, text in parts:
                if _bare(text) not in told:
                    self._add("injected" if self.prompts or voice != "user" else typed, text, place)

    def _settle_answers(self) -> None:
        for text, place in self.answers:
            if self.answer_items[_bare(text)] > 0:
                self.answer_items[_bare(text)] -= 1
            else:
                self._add("assistant", text, place)

    def _call(self, payload: Record) -> None:
        call = read_call(payload)
        self.tools[call.call_id] = call.name
        text = call_text(call.name, call.arguments)
        self._add("tool", text, tool_name=call.name, said=call.identity)
        if call.patched:
            self.patches.setdefault(call.call_id, call.patched)

    def _output(self, payload: Record) -> None:
        output = read_output(payload, self.place.line)
        if output.failed:
            self.patches.pop(output.call_id, None)
        text, name = output.text or "(no output)", self.tools.get(output.call_id, "")
        self._add("tool", text, tool_name=name, said=output.identity, is_error=output.failed)

    def _add(
        self,
        role: Role,
        text: str,
        place: Place | None = None,
        *,
        tool_name: str | None = None,
        said: str = "",
        is_error: bool = False,
    ) -> None:
        """Keep a message; `said` is what identifies it where the text is only a part of it."""
        payload = f"{role}\x1f{said or _bare(text)}"
        identity = (text_of(self.meta.get("id")), hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest())
        number = self.transcript.occurrence(*identity)
        self.transcript.add(
            role, text, place or self.place, (*identity, number), tool_name=tool_name, is_error=is_error
        )


def _bare(text: str) -> str:
    """The text without the marks of images, which name the line that they stand on."""
    return re.sub(r"\[image: [^\]]*\]", "", text).strip() if "[image: " in text else text.strip()
