"""Collects what one session file says, and makes it ready to be stored.

Nothing gets past `Transcript` unredacted: messages are redacted where they are added, the rest where it is finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.sessions.harnesses.records import EARLIEST, Record, message_id, read_records, to_time
from memory_pipeline.sessions.model import Message, ParsedSession, Problem, Role
from memory_pipeline.sessions.redaction import excerpt, redact


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
    ) -> None:
        """Keep one message, unless it is blank or was there before; of a tool's text an excerpt."""
        text = clean(text)
        identifier = message_id(self.harness, *identity)
        if identifier in self._seen or not text or text.isspace():
            return
        self._seen.add(identifier)
        if place.said_at is None:
            self._untimed.append(len(self._messages))
        said_at = place.said_at or EARLIEST
        written_at = place.written_at or said_at
        text = excerpt(text, self.limit) if role == "tool" else redact(text)
        tool_name = tool_name and _storable(tool_name)
        message = Message(identifier, role, said_at, written_at, text, place.line, tool_name, is_error)
        self._messages.append((place.record, message))

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
            session_id=_storable(session_id or self.path.stem),
            harness=self.harness,
            name=one_line(_storable(name)) or one_line(first_words),
            cwd=_storable(cwd),
            messages=messages,
            compactions=self._compacted_ids(),
            files_read=tuple(sorted(map(_storable, self.files_read - self.files_modified))),
            files_modified=tuple(sorted(map(_storable, self.files_modified))),
            records=self.record + 1,
            unknown_records={_storable(kind): count for kind, count in self.unknown.items()},
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


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which neither DuckDB nor Parquet stores."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "ignore").decode()
    return text


def _storable(text: str) -> str:
    return redact(clean(text))
