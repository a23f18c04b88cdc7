"""Cursor's agent: `~/.cursor/projects/<workspace>/agent-transcripts/<id>/<id>.jsonl`, since version 2.4 (early 2026).

Records have no ids and no times. A prompt begins with its time to the minute; for other messages, in versions since
spring 2026, only the order is known. Cursor rewrites a file when it prunes the history, so a message is identified by
its session, its prompt's time and its text. Results of tools are not recorded, and thoughts only as the mark
`[REDACTED]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec

from memory_pipeline.harnesses.authorship import Evidence, is_person
from memory_pipeline.harnesses.content import Block, Content, call_text, content_text
from memory_pipeline.harnesses.model import ParsedSession, Role
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.records import Fields, JsonObject, Other, text_of, words
from memory_pipeline.harnesses.speakers import Passage, split_by_speaker, without_private
from memory_pipeline.harnesses.transcript import Transcript

_IGNORED = words("turn_ended metadata")
_READS = words("Read ReadFile read_file")
_WRITES = words("Write StrReplace MultiEdit Edit Delete EditNotebook ApplyPatch edit_file search_replace delete_file")
_PATCHED_FILE = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ([^\n]+)")
_REDACTED = re.compile(r"(?:\A|\n)\s*\[REDACTED\]\s*(?=\n|\Z)")
_TIMESTAMP = re.compile(r"\s*<timestamp>([^<>]*)</timestamp>\s*")
_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_WRITTEN = re.compile(
    r"(?:\w+, )?(?P<month>[A-Z][a-z]{2})\w* (?P<day>\d{1,2}), (?P<year>\d{4}),? (?:at )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::\d\d)?\s(?P<half>[AP])M"
    r"(?: \((?:UTC|GMT)(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::(?P<minutes>\d\d))?)?\))"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Message(Fields):
    content: Content = None


class Record(Fields):
    """A line: a message, or the end of a turn."""

    role: Any = None
    type: Any = None
    message: _Message | Other = None


class _Trust(Fields):
    """The file in which Cursor records that the user trusts a workspace."""

    workspacePath: Any = None


class Cursor(Harness[Record]):
    name = "cursor"
    record_type = Record
    folders = ("${CURSOR_CONFIG_DIR:-~/.cursor}/projects/*/agent-transcripts",)
    side_files = (
        ".cursor/*.json",
        ".cursor/projects/*/*.json",
        "mcps/*/*.json",
        "mcps/*/tools/*.json",
        "chats/*/*/meta.json",
    )

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a message, which only has a role and content."""
        message = record.get("message")
        is_message = record.get("role") in ("user", "assistant") and isinstance(message, dict) and "content" in message
        return is_message and record.keys() <= {"role", "message"}

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        path = Path(transcript.source.path)
        self.session = path.stem
        # a sub-agent's transcript is in the folder of the session that started it
        self.parent = path.parent.parent.name if path.parent.name == "subagents" else ""
        self.cwd = _workspace(path)
        self.is_attended = is_person(Evidence("cursor", parent_session=self.parent, cwd=self.cwd))
        self.prompted = ""
        self.identity = ""

    def finish(self) -> ParsedSession:
        return self.transcript.finish(self.session, "", self.cwd, parent_id=self.parent, is_attended=self.is_attended)

    def record(self, line: int, record: Record) -> None:
        role = record.role
        content = record.message.content if isinstance(record.message, _Message) else None
        if role not in ("user", "assistant"):
            self.transcript.skip_record()
            kind = text_of(record.type) or text_of(role)
            if kind not in _IGNORED:
                self.transcript.unknown[kind] += 1
            return
        text = content_text(_texts(content), line)
        sent = _TIMESTAMP.match(text) if role == "user" else None
        self.transcript.next_record(line, sent and _time(sent[1]))
        self.prompted = sent[1] if sent else self.prompted
        digest = self.transcript.digest(msgspec.json.encode(content))
        self.identity = f"{self.session}\x1f{self.prompted}\x1f{role}\x1f{digest}"
        self.identity = f"{self.identity}\x1f{self.transcript.occurrence(self.identity)}"
        if role == "user":
            for number, (speaker, said) in enumerate(_passages(text[sent.end() :] if sent else text)):
                self._add(speaker, said, number)
        elif isinstance(content, str):
            self._add("assistant", _REDACTED.sub("", content).strip(), 0)
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, Block):
                self._block(block, role, line, number)

    def _block(self, block: Block, role: str, line: int, number: int) -> None:
        if block.type == "text":
            if role == "assistant":
                self._add("assistant", _REDACTED.sub("", text_of(block.text)).strip(), "block", number)
        elif block.type == "tool_use":
            name = text_of(block.name)
            handle = self._add("tool", call_text(name, block.input), "block", number, tool_name=name)
            paths = tuple(_paths(block.input))
            if name in _READS:
                self.transcript.touch(handle, read=paths)
            elif name in _WRITES:
                self.transcript.touch(handle, modified=paths)
        elif block.type == "tool_result":
            output = content_text(_texts(block.content), line) or "(no output)"
            self._add("tool", output, "block", number, is_error=block.is_error is True)
        elif block.type not in ("thinking", "redacted_thinking", "image"):
            self.transcript.unknown[f"block/{block.type}"] += 1

    def _add(
        self, role: Role, text: str, *key: object, tool_name: str | None = None, is_error: bool = False
    ) -> int | None:
        identity = "\x1f".join(map(str, (self.identity, *key)))
        return self.transcript.add(role, text, identity, tool_name=tool_name, is_error=is_error)


def _texts(content: object) -> object:
    """The content without its images."""
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Block) and block.type == "text"]
    return content


def _passages(text: str) -> Iterator[Passage]:
    """The text in `<user_query>` is the user's, the rest is Cursor's; older prompts are not wrapped."""
    text = without_private([text])[0]
    end = 0
    for query in _QUERY.finditer(text):
        yield "injected", text[end : query.start()].strip()
        yield from split_by_speaker(query[1])
        end = query.end()
    if end:
        yield "injected", text[end:].strip()
    else:
        yield from split_by_speaker(text)


def _paths(given: object) -> list[str]:
    """The paths in the arguments of a call, which for a patch are one text."""
    patch = given if isinstance(given, str) else ""
    if isinstance(given, dict):
        named = [text_of(given.get(name)) for name in ("path", "file_path", "target_file", "target_notebook")]
        if any(named):
            return list(filter(None, named))
        patch = text_of(given.get("patch")) or text_of(given.get("input"))
    return [path.strip() for path in _PATCHED_FILE.findall(patch)]


def _time(written: str) -> str | None:
    """The time of a prompt, from `Tuesday, Jul 21, 2026, 6:57 PM (UTC+8)` or ISO 8601; None for other forms."""
    found = _WRITTEN.fullmatch(written.strip())
    if not found:
        return written.strip()
    offset = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    try:
        zone = timezone(-offset if found["sign"] == "-" else offset)
        hour = int(found["hour"]) % 12 + (12 if found["half"] == "P" else 0)
        month = _MONTHS.index(found["month"]) + 1
        moment = datetime(int(found["year"]), month, int(found["day"]), hour, int(found["minute"]), tzinfo=zone)
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def _workspace(path: Path) -> str:
    """The directory of the workspace if the user trusted it; the name of its folder cannot be converted back to a
    path."""
    project = next((folder.parent for folder in path.parents if folder.name == "agent-transcripts"), None)
    try:
        raw = (project / ".workspace-trusted").read_bytes() if project else b""
        return text_of(msgspec.json.decode(raw, type=_Trust).workspacePath)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return ""
