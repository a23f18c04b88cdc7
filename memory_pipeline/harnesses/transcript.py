"""Collection of a session's messages and their preparation for storage.

All text of a session is redacted in `Transcript`: messages when they are added, names and paths at the end. Invisible
characters, which may split a secret, are removed first. The path of the file is kept unchanged, as it is needed to find
the file again.
"""

from __future__ import annotations

import copy
import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, Self, TypedDict

from msgspec.structs import replace

from memory_pipeline.harnesses.answers import Answer
from memory_pipeline.harnesses.content import images_in
from memory_pipeline.harnesses.model import Compaction, Image, Message, Problem, Role, Source
from memory_pipeline.harnesses.records import EARLIEST, to_time
from memory_pipeline.llm.prompts import MARKER
from memory_pipeline.redaction import Redactor
from memory_pipeline.text.hidden import without_hidden

_NO_NAME = re.compile(r"[^\w/. -]+", re.ASCII)
_DATA_URL = re.compile(r"(data:[\w./+-]{0,60};base64,)[A-Za-z0-9+/=_-]{100,}")
_DO_NOT_INDEX = "DO NOT INDEX"
FORGOTTEN = "it was forgotten with `memory forget`"
"""The reason for not storing a session."""
# In inserted text, such as the instructions of a project, the mark only counts on its own line.
_MARK_LINE = re.compile(
    r"^(?:[^\w\n]|_)*(?:<[^<>\n]*>)?DO NOT INDEX(?: THIS \w+)?[.!]?(?:<[^<>\n]*>)?(?:[^\w\n]|_)*$", re.MULTILINE
)


class Place(NamedTuple):
    """The place and time of a message; no time if neither it nor any earlier record has one."""

    record: int
    line: int
    said_at: datetime | None
    written_at: datetime | None
    is_timed: bool = True
    """Whether the time is its own, rather than that of an earlier record."""


class MessageDetails(TypedDict, total=False):
    """Optional arguments of `Transcript.add`."""

    tool_name: str | None
    is_error: bool
    answer: Answer | None
    formerly: str


class Transcript:
    """A collector of one session's messages, filled by the reader of a harness."""

    def __init__(
        self, harness: str, source: Source, tool_text_limit: int, redactor: Redactor, id_prefix: str = ""
    ) -> None:
        self.harness = harness
        self.id_prefix = id_prefix or harness
        self.source = source
        self.limit = tool_text_limit
        self.redactor = redactor
        self.record = -1
        self.place = Place(-1, 0, None, None, is_timed=False)
        self.problems: list[Problem] = []
        self.unknown: Counter[str] = Counter()
        self.excluded: str | None = None
        self.hidden = 0
        self._messages: list[Message] = []
        self._records: list[int] = []
        self._untimed: list[int] = []
        self._seen: set[str] = set()
        self._occurrences: dict[str, int] = {}
        self.former: dict[str, str] = {}
        """The former ids of messages, by current id."""
        self._compactions: list[tuple[int, Container[int], range, datetime | None, int | None]] = []
        self._first_time: datetime | None = None

    def copy(self) -> Self:
        """An independent copy for adding messages that are only known at the end, without ending the original."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | set | dict):
                setattr(twin, name, copy.copy(value))
        return twin

    def next_record(self, line: int, written: object, said: object = None) -> None:
        """Begin a record; without a valid time it gets the time of the previous record, and is not timed."""
        self.record += 1
        written_at = to_time(written)
        own = (to_time(said) if said is not None else None) or written_at
        said_at = own or self.place.said_at
        if self._first_time is None:
            self._first_time = said_at
        self.place = Place(self.record, line, said_at, written_at or said_at, own is not None)

    def skip_record(self) -> None:
        """Count a record without messages."""
        self.record += 1

    def digest(self, content: str | bytes) -> str:
        """A salted hash of content for an identity, so that no id discloses redacted text."""
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        return hashlib.sha256(self.redactor.salt + data).hexdigest()

    def occurrence(self, identity: str) -> int:
        """The number of earlier occurrences of this identity, for records without ids."""
        number = self._occurrences[identity] = self._occurrences.get(identity, 0) + 1
        return number

    def add(
        self,
        role: Role,
        text: str,
        identity: str,
        *,
        tool_name: str | None = None,
        is_error: bool = False,
        answer: Answer | None = None,
        formerly: str = "",
    ) -> int | None:
        """Add a message, unless it is blank or was added before; tool text and answered text are shortened.
        `formerly` is the identity in an earlier version of the reader. Returns a handle for `touch`."""
        hidden = 0
        images: tuple[Image, ...] = ()
        if "\x00" in text or not text.isascii():
            images = images_in(text)
            text, hidden = without_hidden(clean(text))
        if ";base64," in text:
            text = _DATA_URL.sub(r"\1[base64 left out]", text)
        if not text or text.isspace():
            return None
        identifier = message_id(self.id_prefix, identity)
        if identifier in self._seen or self.redactor.forgotten.has_message(identifier):
            return None
        if formerly:
            former = message_id(self.id_prefix, formerly)
            if self.redactor.forgotten.has_message(former):
                return None
            self.former[identifier] = former
        if role == "tool":
            text = self.redactor.excerpt(text, self.limit)
        else:
            if _DO_NOT_INDEX in text or MARKER in text:
                self.detect_marks(role, text)
            text = self.redactor.redact(text)
        if tool_name:
            tool_name = self.storable(tool_name)
        answered = self.redactor.excerpt(storable(answer.answered), self.limit) if answer and answer.answered else None
        record, line, said_at, written_at, is_timed = self.place
        messages = self._messages
        if said_at is None or written_at is None:
            self._untimed.append(len(messages))
            said_at = written_at = EARLIEST
        self._seen.add(identifier)
        self.hidden += hidden
        self._records.append(record)
        messages.append(
            Message(
                *(identifier, role, said_at, written_at, text, line, tool_name, is_error),
                images=images,
                is_timed=is_timed,
                answer_to=answer and answer.to,
                answered=answered,
            )
        )
        return len(messages) - 1

    def touch(self, handle: int | None, *, read: tuple[str, ...] = (), modified: tuple[str, ...] = ()) -> None:
        """Record that the message, a tool call, reads or modifies these files."""
        if handle is not None:
            self._messages[handle] = replace(
                self._messages[handle],
                files_read=tuple(self.storable(path) for path in read if path),
                files_modified=tuple(self.storable(path) for path in modified if path),
            )

    def compact(
        self, before: int, kept: Container[int] = (), stretch: range = range(0), *, tokens_before: object = None
    ) -> None:
        """Record that the current record summarised away every message of the records below `before`, except those in
        `kept` and in the `stretch`.
        """
        tokens = tokens_before if isinstance(tokens_before, int) and 0 <= tokens_before < 2**53 else None
        self._compactions.append((before, kept, stretch, self.place.said_at, tokens))

    def numbered_messages(
        self, began_at: datetime | None, voided: Container[int], *, is_attended: bool
    ) -> list[tuple[int, Message]]:
        """The messages as they were added, each with the number of its record; `voided` are numbers of records. In an
        unattended session a program typed the user's text."""
        pairs = list(zip(self._records, self._messages, strict=True))
        if not is_attended:
            pairs = [(r, _typed_by_program(m) if m.role == "user" else m) for r, m in pairs]
        if self._untimed:
            time = self._first_time or began_at or to_time(self.source.modified_ns / 1e6) or EARLIEST
            for index in self._untimed:
                pairs[index] = (pairs[index][0], replace(pairs[index][1], said_at=time, written_at=time))
        return [(r, replace(m, voided=True) if r in voided else m) for r, m in pairs] if voided else pairs

    def compactions(self, pairs: list[tuple[int, Message]]) -> tuple[Compaction, ...]:
        """The compactions, given the numbered messages."""
        compactions = []
        left = sorted((record, index) for index, (record, _) in enumerate(pairs)) if self._compactions else []
        start = 0
        for before, kept, stretch, at, tokens in self._compactions:
            end = max(bisect_left(left, (before,)), start)
            # kept consecutive records are skipped, as every compaction may keep everything that the previous one kept
            first = min(max(bisect_left(left, (stretch.start,)), start), end)
            last = max(min(bisect_left(left, (stretch.stop,)), end), first)
            gone = [place for place in chain(left[start:first], left[last:end]) if place[0] not in kept]
            if gone:
                more = [place for place in left[last:end] if place[0] in kept]
                stay = [*(place for place in left[start:first] if place[0] in kept), *left[first:last], *more]
                start = end - len(stay)
                left[start:end] = stay
            ids = tuple(pairs[index][1].message_id for _, index in sorted(gone, key=itemgetter(1)))
            compactions.append(Compaction(ids, at, tokens))
        return tuple(compactions)

    def detect_marks(self, role: Role, text: str) -> None:
        """Exclude the session if the text has a mark for that; those in a program's prompt count as in a person's."""
        if role in ("user", "injected") and text.startswith(MARKER):
            self.excluded = self.excluded or "written by the pipeline's own model command"
        elif (role == "user" and _DO_NOT_INDEX in text) or (role == "injected" and _MARK_LINE.search(text)):
            self.excluded = self.excluded or f"line {self.place.line} says {_DO_NOT_INDEX}"

    def unknown_records(self) -> dict[str, int]:
        """The unknown record types without characters that names do not have, as a damaged file may contain
        anything."""
        found: Counter[str] = Counter()
        for kind, count in self.unknown.items():
            found[self.storable(_NO_NAME.sub("", kind)[:60]) or "no name"] += count
        return dict(found)

    def storable(self, text: str) -> str:
        """A name or a path as it is stored."""
        return self.redactor.redact(storable(text))


def _typed_by_program(message: Message) -> Message:
    return replace(message, role="injected", answer_to=None, answered=None)


def one_line(text: str, limit: int = 80) -> str:
    """The text as a title: on one line, with at most `limit` characters."""
    # the first words are enough; a pasted log need not be split entirely
    title = " ".join(text[: limit * 20].split())
    return title if len(title) <= limit else f"{title[: limit - 1]}…"


def storable(text: str) -> str:
    """The text before redaction, reduced to valid visible characters."""
    return without_hidden(clean(text))[0]


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which neither DuckDB nor Parquet stores."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "ignore").decode()
    return text


def message_id(prefix: str, identity: str) -> str:
    """A stable id from the message's identity in its harness, never from its position in the file."""
    return f"{prefix}-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
