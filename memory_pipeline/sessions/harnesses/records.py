"""From the bytes of a session file to its records, and what the readers of all harnesses share.

A session file is JSON lines, written by a program that may be killed at any moment. Whatever cannot be read becomes
a `Problem`, which names the line but never quotes it, since the line may hold a secret; the rest is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memory_pipeline.sessions.model import Message, ParsedSession, Problem, Role
from memory_pipeline.sessions.redaction import redact

Record = dict[str, Any]

# NULs and raw control characters occur inside strings of files that were damaged or written on Windows.
_DECODER = json.JSONDecoder(strict=False)
_RECORD_START = re.compile(r'\{\s*"(?:type|timestamp|parentUuid|uuid|sessionId|isSidechain|cwd|ordinal)"\s*:')
_RECORD_MARKS = ("timestamp", "sessionId", "leafUuid")
# Each failed attempt may scan the rest of a line of many megabytes.
_MAX_RESYNCS = 50
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)
# Longer than nearly any token, so that none is recognised only in part at the edge of what is kept.
_CLIP_MARGIN = 1024
_CLIP_EDGE = 256


def text_of(value: object) -> str:
    """The value, if it is text; fields of a record may hold anything."""
    return value if isinstance(value, str) else ""


def words(names: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(names.split())


def read_records(path: Path, problems: list[Problem]) -> Iterator[tuple[int, Record]]:
    """Every JSON object of the file with its 1-based line; what cannot be read is added to `problems`."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                record = orjson.loads(raw)
            except orjson.JSONDecodeError:
                for record in decode_damaged(raw, number, problems):
                    yield number, record
                continue
            if type(record) is dict:
                yield number, record
            else:
                problems.append(Problem(number, "The line holds a JSON value that is not an object."))


def decode_damaged(raw: bytes, line: int, problems: list[Problem]) -> list[Record]:
    """The objects that can be saved from a line that is not exactly one JSON value."""
    text = raw.decode("utf-8", "replace").lstrip("\ufeff")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in raw:
        problems.append(Problem(line, "The line holds bytes that are not UTF-8; they were replaced."))
    if "\x00" in text:
        problems.append(Problem(line, "The line holds NUL bytes; they were left out."))
        text = text.replace("\x00", "")
    records: list[Record] = []
    position = _skip_space(text, 0)
    resyncs = 0
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            problems.append(Problem(line, _unreadable(raw, position)))
            position, value = _next_record(text, position + 1, _MAX_RESYNCS - resyncs)
            resyncs += 1
            if value is None:
                break
            records.append(value)
        else:
            position = end
            if isinstance(value, dict):
                records.append(value)
            else:
                problems.append(Problem(line, "The line holds a JSON value that is not an object."))
        position = _skip_space(text, position)
    return records


def _unreadable(raw: bytes, position: int) -> str:
    if not raw.endswith(b"\n"):
        return "The last line is incomplete; it may still be being written."
    if position:
        return "A part of the line is not valid JSON; the objects before it were read."
    return "The line, or its beginning, is not valid JSON."


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _next_record(text: str, position: int, attempts: int) -> tuple[int, Record | None]:
    """The next whole record after a broken piece: (where it ends, record), or (end of text, None).

    A content block inside the broken piece also parses, so only an object that looks like a record counts.
    """
    for _ in range(attempts):
        start = _RECORD_START.search(text, position)
        if start is None:
            break
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.start() + 1
            continue
        if "type" in value and any(mark in value for mark in _RECORD_MARKS):
            return end, value
        position = end
    return len(text), None


def to_time(value: object) -> datetime | None:
    """ISO 8601 text or Unix milliseconds as UTC; None when it is neither or lies outside 2020 to 2100."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time if _EARLIEST <= time < _LATEST else None


def message_id(harness: str, *identity: object) -> str:
    """A stable id from what identifies a message in its harness; never from where it stands in the file."""
    key = "\x1f".join(map(str, identity))
    return f"{harness}-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which neither DuckDB nor Parquet stores."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "ignore").decode()
    return text


def clip(text: str, limit: int) -> str:
    """Head and tail of a text, at most `limit` characters with the mark between them.

    What is kept is redacted before it is cut: half a token at the cut would no longer be recognised as one.
    """
    if len(text) <= limit:
        return text
    if "PRIVATE KEY-----" in text or "<private>" in text:
        # these are known by their beginning, which may lie far before the tail
        text = redact(text)
    mark = f"\n[… {len(text) - limit:,} characters left out …]\n"
    room = max(limit - len(mark), 0)
    tail_size = room // 3
    head = redact(text[: room - tail_size + _CLIP_MARGIN])[: room - tail_size]
    tail = redact(text[-(tail_size + _CLIP_MARGIN) :])[_CLIP_EDGE:][-tail_size:] if tail_size else ""
    return head + mark + tail


def content_text(content: object, line: int) -> str:
    """The readable text of a message's content: a string, or blocks of text and images; other blocks are left out.

    An image's bytes never enter the text; a mark names its type and its line.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part for block in content if (part := block_text(block, line)))


def block_text(block: object, line: int) -> str:
    """The text of one content block, or the mark of an image; "" for any other block."""
    if not isinstance(block, dict):
        return ""
    text = block.get("text")
    if isinstance(text, str):
        return text
    if str(block.get("type")).endswith("image"):
        return image_mark(block, line)
    return ""


def image_mark(block: Mapping[str, Any], line: int) -> str:
    """What stands in a text for an image, so that the image can be found again in the file."""
    source = block.get("source")
    kind = block.get("mimeType") or (source.get("media_type") if isinstance(source, dict) else None)
    url = block.get("image_url")
    if kind is None and isinstance(url, str) and url.startswith("data:"):
        kind = url[5:40].split(";")[0]
    return f"[image: {kind if isinstance(kind, str) and len(kind) < 40 else 'unknown type'}, line {line}]"


def call_text(name: str, arguments: object, limit: int) -> str:
    """A tool call as `name(key=value, …)`, clipped."""
    if isinstance(arguments, dict):
        shown = ", ".join(f"{key}={_value_text(value, limit)}" for key, value in arguments.items())
    else:
        shown = _value_text(arguments, limit) if arguments is not None else ""
    return clip(f"{name}({shown})", limit)


def _value_text(value: object, limit: int) -> str:
    if isinstance(value, str):
        return clip(value, limit)
    try:
        return clip(orjson.dumps(value).decode(), limit)
    except (TypeError, ValueError, RecursionError):
        return "…"


_REMINDER = re.compile(r"(<system-reminder>.*?(?:</system-reminder>|\Z))", re.DOTALL)
_TAG = re.compile(r"<([A-Za-z][\w:-]*)(?:\s[^<>]*)?/?>")
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]*\]")
_IDE_REQUEST = "## My request for Codex:"
_IDE_HEADERS = ("# Context from my IDE setup", "# Files mentioned by the user")
# What a harness puts before the user's words; other elements at the start of a text are taken with all that follows.
_WRAPPERS = words(
    "skill file system-reminder task-notification environment_context user_instructions INSTRUCTIONS turn_aborted "
    "recommended_plugins ide_opened_file ide_selection ide_diagnostics user-prompt-submit-hook session-start-hook "
    "bash-input bash-stdout bash-stderr local-command-stdout local-command-stderr local-command-caveat"
)
_INJECTED_HEADERS = (
    "Caveat: The messages below were generated by the user while running local commands",
    "This session is being continued from a previous conversation",
    "Base directory for this skill:",
    "Implement the following plan:",
    "Operation stopped by hook:",
    "Stop hook feedback:",
    "# AGENTS.md instructions",
)

Voice = tuple[Role, str]


def voices(content: object, line: int) -> list[Voice]:
    """The content of a user record, taken apart into what the harness put in and what the person typed, in order."""
    if not isinstance(content, list):
        return split_voices(content) if isinstance(content, str) else []
    found: list[Voice] = []
    for block in content:
        text = block_text(block, line)
        # the mark of an image begins with a bracket, so it is taken for words of the user, as it should
        for role, part in split_voices(text):
            if found and found[-1][0] == role:
                found[-1] = (role, f"{found[-1][1]}\n{part}")
            else:
                found.append((role, part))
    return found


def split_voices(text: str) -> list[Voice]:
    """One text, taken apart; blank pieces are left out."""
    found: list[Voice] = []
    for chunk in _REMINDER.split(text) if "<system-reminder>" in text else [text]:
        if chunk.startswith("<system-reminder>"):
            found.append(("injected", chunk))
        else:
            found.extend(_split_lead(chunk.strip()))
    return [(role, part) for role, part in found if part and not part.isspace()]


def _split_lead(text: str) -> Iterator[Voice]:
    """What the harness put at the start of a text, piece by piece, then the user's words."""
    while text:
        tag = _TAG.match(text)
        mark = _INTERRUPTED.match(text)
        if mark:
            end = mark.end()
        elif text.startswith(_INJECTED_HEADERS):
            end = len(text)
        elif text.startswith(_IDE_HEADERS):
            heading = text.rfind(_IDE_REQUEST)
            end = heading + len(_IDE_REQUEST) if heading >= 0 else len(text)
        elif tag and tag[1].startswith("command-"):
            before, opening, rest = text.partition("<command-args>")
            typed, closing, after = rest.partition("</command-args>")
            yield "injected", before + opening + closing + after
            yield "user", typed.strip()
            return
        elif tag and tag[1] != "private" and (tag[1] in _WRAPPERS or f"</{tag[1]}>" in text):
            close = text.find(f"</{tag[1]}>")
            whole = close < 0 or tag[1] not in _WRAPPERS
            end = len(text) if whole else close + len(tag[1]) + 3
        else:
            yield "user", text
            return
        yield "injected", text[:end]
        text = text[end:].strip()


class Place(NamedTuple):
    """Where and when something was said; no time when neither it nor any record before it has one."""

    record: int
    line: int
    said_at: datetime | None
    written_at: datetime | None


class Transcript:
    """Collects what one file says while a harness's reader goes through its records."""

    def __init__(self, harness: str, path: Path, tool_text_limit: int) -> None:
        self.harness = harness
        self.path = path
        self.limit = tool_text_limit
        self.line = 0
        self.record = -1
        self.problems: list[Problem] = []
        self.unknown: Counter[str] = Counter()
        self.files_read: set[str] = set()
        self.files_modified: set[str] = set()
        self._messages: list[tuple[int, Message]] = []
        self._untimed: list[int] = []
        self._seen: set[str] = set()
        self._occurrences: Counter[str] = Counter()
        self._compactions: list[tuple[int, range]] = []
        self._time: datetime | None = None
        self._first_time: datetime | None = None

    def records(self) -> Iterator[Record]:
        """The records of the file; `record` and `line` say which one is being read."""
        for line, record in read_records(self.path, self.problems):
            self.line = line
            self.record += 1
            yield record

    def place(self, written: object, said: object = None) -> Place:
        """Where the current record stands; without a usable time it has that of the record before."""
        written_at = to_time(written)
        said_at = (to_time(said) if said is not None else None) or written_at or self._time
        if said_at is not None:
            self._time = said_at
            self._first_time = self._first_time or said_at
        return Place(self.record, self.line, said_at, written_at or said_at)

    def occurrence(self, *identity: object) -> int:
        """How often this identity came before, for records that carry no id of their own."""
        key = repr(identity)
        self._occurrences[key] += 1
        return self._occurrences[key]

    def add(
        self,
        role: Role,
        text: str,
        place: Place,
        identity: tuple[object, ...],
        *,
        tool_name: str | None = None,
        is_error: bool = False,
    ) -> bool:
        """Keep one message, unless it is blank or was there before; says whether it was kept."""
        identifier = message_id(self.harness, *identity)
        if identifier in self._seen or not text or text.isspace():
            return False
        self._seen.add(identifier)
        if place.said_at is None:
            self._untimed.append(len(self._messages))
        said_at = place.said_at or _EARLIEST
        written_at = place.written_at or said_at
        message = Message(identifier, role, said_at, written_at, clean(text), place.line, tool_name, is_error)
        self._messages.append((place.record, message))
        return True

    def compact(self, before: int, kept: range = range(0)) -> None:
        """A compaction summarised away every message of the records below `before` that are not in `kept`."""
        self._compactions.append((before, kept))

    def finish(self, session_id: str, name: str, cwd: str) -> ParsedSession:
        """The session; an empty `name` is replaced by the first thing that the user said."""
        if self._untimed:
            time = self._first_time or datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
            for index in self._untimed:
                record, message = self._messages[index]
                self._messages[index] = (record, replace(message, said_at=time, written_at=time))
        self._messages.sort(key=lambda pair: (pair[1].said_at, pair[1].line))
        messages = tuple(message for _, message in self._messages)
        first_words = next((message.text for message in messages if message.role == "user"), "")
        return ParsedSession(
            session_id=session_id or self.path.stem,
            harness=self.harness,
            name=clean(one_line(name) or one_line(first_words)),
            cwd=clean(cwd),
            messages=messages,
            compactions=self._compacted_ids(),
            files_read=tuple(sorted(map(clean, self.files_read - self.files_modified))),
            files_modified=tuple(sorted(map(clean, self.files_modified))),
            records=self.record + 1,
            unknown_records=dict(self.unknown),
            problems=tuple(self.problems),
        )

    def _compacted_ids(self) -> tuple[tuple[str, ...], ...]:
        left = self._messages
        compactions = []
        for before, kept in self._compactions:
            gone = tuple(message.message_id for record, message in left if record < before and record not in kept)
            left = [(record, message) for record, message in left if record >= before or record in kept]
            compactions.append(gone)
        return tuple(compactions)


def one_line(text: str, limit: int = 80) -> str:
    """A title: white space run together, at most `limit` characters."""
    # the first words are enough; a pasted log need not be split as a whole
    title = " ".join(text[: limit * 20].split())
    return title if len(title) <= limit else f"{title[: limit - 1]}…"
