"""Claude Code: `~/.claude/projects/<slug>/<sessionId>.jsonl` and the sub-agents' files beside it.

The chain of `parentUuid` is not walked: most of its forks are parallel tool calls, and a walk would drop results.
So a rewound turn is still there. Records are told apart by `uuid`, within one file only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memory_pipeline.sessions.harnesses.content import call_text, content_text
from memory_pipeline.sessions.harnesses.records import Record, text_of, words
from memory_pipeline.sessions.harnesses.transcript import Place, Transcript
from memory_pipeline.sessions.harnesses.voices import Voice, split_voices, voices
from memory_pipeline.sessions.model import ParsedSession, Role

HARNESS = "claude_code"

# State of the program and copies of what other records say. A queued prompt comes again as a message when it is sent.
_IGNORED = words(
    "progress queue-operation file-history-snapshot agent-name last-prompt permission-mode mode pr-link "
    "bridge-session worktree-state relocated started result frame-link"
)
_IGNORED_SYSTEM = words(
    "turn_duration stop_hook_summary microcompact_boundary api_error away_summary bridge_status informational "
    "api_refusal model_refusal_fallback session_start"
)
# Attachments repeat what the program knows; of the rest only hooks and queued prompts say something.
_IGNORED_ATTACHMENTS = words(
    "task_reminder todo_reminder task_status deferred_tools_delta skill_listing agent_listing_delta file "
    "edited_text_file compact_file_reference date_change nested_memory dynamic_skill invoked_skills plan_mode "
    "plan_mode_exit auto_mode command_permissions mcp_instructions_delta budget_usd total_tokens_reminder "
    "batching_reminder_sent silent_turn_reminder read_truncation_notice ultra_effort_enter ultra_effort_exit"
)
_READS = {"Read": "file_path"}
_CHANGES = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
_CHAIN_TYPES = frozenset(("user", "assistant", "system", "attachment", "progress"))


def recognises(first_records: Sequence[Record]) -> bool:
    """A record of the chain, or one of the small records that only Claude Code writes at the top of a file."""
    return any(
        (isinstance(record.get("sessionId"), str) and (kind in _CHAIN_TYPES or kind in _IGNORED))
        or (kind == "summary" and "leafUuid" in record)
        or (kind == "file-history-snapshot" and "messageId" in record)
        for record in first_records
        if isinstance(kind := record.get("type"), str)
    )


def parse(path: Path, *, tool_text_limit: int = 1500) -> ParsedSession:
    """Read one session file, or the file of one sub-agent."""
    return _Reader(Transcript(HARNESS, path, tool_text_limit)).read()


class _Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.session_id = ""
        self.agent_id = ""
        self.cwd = ""
        self.has_main_chain = False
        self.titles: dict[str, str] = {}
        self.summaries: list[tuple[str, str]] = []
        self.tools: dict[str, str] = {}
        self.positions: dict[str, int] = {}
        self.said: set[str] = set()
        self.place = Place(0, 0, None, None)
        self.identity: tuple[object, ...] = ()
        self.part = 0

    def read(self) -> ParsedSession:
        for record in self.transcript.records():
            self._record(record)
        session_id = self.session_id
        if self.agent_id and not self.has_main_chain:
            session_id = f"{session_id}/{self.agent_id}"
        return self.transcript.finish(session_id, self._title(), self.cwd)

    def _title(self) -> str:
        own = [text for leaf, text in self.summaries if leaf in self.positions]
        return self.titles.get("custom-title") or self.titles.get("ai-title") or (own[-1] if own else "")

    def _record(self, record: Record) -> None:
        kind = text_of(record.get("type"))
        if isinstance(uuid := record.get("uuid"), str):
            self.positions.setdefault(uuid, self.transcript.record)
        if kind in _IGNORED:
            return
        if kind == "summary":
            self.summaries.append((text_of(record.get("leafUuid")), text_of(record.get("summary"))))
        elif kind in ("custom-title", "ai-title"):
            title = record.get("customTitle") if kind == "custom-title" else record.get("aiTitle")
            self.titles[kind] = text_of(title).strip() or self.titles.get(kind, "")
        elif kind in _CHAIN_TYPES:
            self._chain_record(record, kind)
        else:
            self.transcript.unknown[kind] += 1

    def _chain_record(self, record: Record, kind: str) -> None:
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            if uuid in self.said:
                return
            self.identity = (uuid,)
        else:
            identity = (record.get("timestamp"), kind, repr(record.get("message")))
            self.identity = (*identity, self.transcript.occurrence(*identity))
        self.place = self.transcript.place(record.get("timestamp"))
        self.part = 0
        self._envelope(record)
        said = self._say(record, kind)
        # a damaged copy of a record, with nothing in it, must not hide the whole one
        if said and isinstance(uuid, str):
            self.said.add(uuid)

    def _envelope(self, record: Record) -> None:
        self.session_id = self.session_id or text_of(record.get("sessionId"))
        self.cwd = self.cwd or text_of(record.get("cwd"))
        if record.get("isSidechain") is True:
            self.agent_id = self.agent_id or text_of(record.get("agentId"))
        elif record.get("type") in ("user", "assistant"):
            self.has_main_chain = True

    def _say(self, record: Record, kind: str) -> bool:
        """Keep what the record says; whether there was anything."""
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if kind == "user":
            self._user(record, content)
        elif kind == "assistant":
            self._assistant(record, content)
        elif kind == "attachment":
            self._attachment(record, record.get("attachment"))
        else:
            return self._system(record, text_of(record.get("subtype")))
        return self.part > 0

    def _system(self, record: Record, subtype: str) -> bool:
        if subtype == "compact_boundary":
            self._compaction(record.get("compactMetadata"))
            return True
        if subtype == "local_command":
            self._voices(record, split_voices(text_of(record.get("content"))))
        elif subtype not in _IGNORED_SYSTEM:
            self.transcript.unknown[f"system/{subtype}"] += 1
        return self.part > 0

    def _user(self, record: Record, content: object) -> None:
        results = [block for block in content if _is(block, "tool_result")] if isinstance(content, list) else []
        for block in results:
            text = content_text(block.get("content"), self.place.line) or "(no output)"
            name = self.tools.get(text_of(block.get("tool_use_id")), "")
            self._add("tool", text, name, block.get("is_error") is True)
        if isinstance(content, list) and results:
            # what stands beside a result was put there by the program
            rest = content_text([block for block in content if block not in results], self.place.line)
            self._add("injected", rest)
        else:
            self._voices(record, voices(content, self.place.line))

    def _voices(self, record: Record, parts: Sequence[Voice]) -> None:
        """A prompt; what a model wrote for a sub-agent and what the program wrote is nobody's typing."""
        machine_made = (
            record.get("isMeta") is True
            or record.get("isSidechain") is True
            or record.get("isCompactSummary") is True
            or not _from_person(record.get("origin"))
        )
        for role, text in parts:
            self._add("injected" if machine_made else role, text)

    def _assistant(self, record: Record, content: object) -> None:
        """Text and tool calls; thinking is left out. The text of a failed call to the API is the program's."""
        role: Role = "injected" if record.get("isApiErrorMessage") is True else "assistant"
        if isinstance(content, str):
            self._add(role, content)
        for block in content if isinstance(content, list) else []:
            if _is(block, "text"):
                self._add(role, text_of(block.get("text")))
            elif _is(block, "tool_use"):
                self._call(block)

    def _call(self, block: Record) -> None:
        name, arguments = text_of(block.get("name")), block.get("input")
        self.tools[text_of(block.get("id"))] = name
        self._add("tool", call_text(name, arguments), name)
        if not isinstance(arguments, dict):
            return
        if (path := text_of(arguments.get(_READS.get(name, "")))) != "":
            self.transcript.files_read.add(path)
        if (path := text_of(arguments.get(_CHANGES.get(name, "")))) != "":
            self.transcript.files_modified.add(path)

    def _attachment(self, record: Record, attachment: object) -> None:
        if not isinstance(attachment, dict):
            return
        kind = text_of(attachment.get("type"))
        if kind == "queued_command":
            typed = attachment.get("commandMode") in (None, "prompt") and _from_person(attachment.get("origin"))
            for role, text in voices(attachment.get("prompt"), self.place.line):
                self._voices(record, [(role if typed else "injected", text)])
        elif kind.startswith("hook_"):
            error = attachment.get("blockingError")
            content = error.get("blockingError") if isinstance(error, dict) else attachment.get("content")
            lines = [text for text in content if isinstance(text, str)] if isinstance(content, list) else []
            self._add("injected", "\n".join(lines) or content_text(content, self.place.line))
        elif kind not in _IGNORED_ATTACHMENTS:
            self.transcript.unknown[f"attachment/{kind}"] += 1

    def _compaction(self, metadata: object) -> None:
        segment = metadata.get("preservedSegment") if isinstance(metadata, dict) else None
        now = self.transcript.record
        kept = range(0)
        if isinstance(segment, dict) and (head := self.positions.get(text_of(segment.get("headUuid")))) is not None:
            tail = self.positions.get(text_of(segment.get("tailUuid")), now)
            kept = range(head, tail + 1)
        self.transcript.compact(now, kept)

    def _add(self, role: Role, text: str, tool_name: str | None = None, is_error: bool = False) -> None:
        if not text or text.isspace():
            return
        identity = (*self.identity, self.part)
        self.part += 1
        self.transcript.add(role, text, self.place, identity, tool_name=tool_name, is_error=is_error)


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _from_person(origin: object) -> bool:
    """Newer versions name who a prompt comes from; older ones do not, and then the text decides."""
    return not isinstance(origin, dict) or origin.get("kind") in (None, "human")
