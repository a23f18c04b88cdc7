"""The records of a session file, and conversions of their fields.

A session file has JSON lines, written by a program that may be killed at any time. Unreadable parts become a `Problem`,
which gives the line but never quotes it, as the line may contain a secret; the rest is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from memory_pipeline.harnesses.compressed import damage_of, is_compressed, open_session
from memory_pipeline.harnesses.model import Problem

JsonObject = dict[str, Any]

# Times outside this range come from a clock that was never set.
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_YEARS = range(EARLIEST.year, 2100)
LINE_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a line; longer ones are skipped. The longest seen have 7 MB."""
_EDGE = 4096
_RECORD_START = re.compile(r'\{\s*"(?:type|id|timestamp|parentUuid|uuid|sessionId|isSidechain|cwd|ordinal)"\s*:')
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_RECORD_MARKS = ("timestamp", "sessionId", "leafUuid")


class JsonLines:
    """A JSON Lines file, whose reading can be resumed at its previous end."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.path = path
        self.problems = problems
        self.line = 0
        self._offset = 0
        self._whole = True
        self._is_compressed = is_compressed(path)
        self._edges = b""

    def records(self) -> Iterator[tuple[int, JsonObject]]:
        """Every record after the previous end, with its 1-based line; problems go to `problems`."""
        line = self.line
        raw = b""
        with open_session(self.path) as file:
            if not self._is_compressed:
                file.seek(self._offset)
            for raw in iter(partial(file.readline, LINE_LIMIT), b""):
                line += 1
                record = decoded_object(raw)
                if record is not None:
                    yield line, record
                elif not raw.isspace():
                    yield from ((line, record) for record in self._damaged(raw, line, file))
                if not raw.endswith(b"\n") and len(raw) < LINE_LIMIT:
                    break  # the rest of this line is read with it next time
            if damage := damage_of(file):
                self.problems.append(Problem(line, damage))
            if not self._is_compressed:
                self._offset = file.tell()
                self._edges = self._read_edges(file)
        self.line, self._whole = line, raw.endswith(b"\n") if raw else self._whole

    def can_go_on(self) -> bool:
        """Whether the file seems to have only grown: its beginning and its previous end are unchanged. Changes in
        between are only noticed when it is next read from the beginning. A compressed file is always read from the
        beginning."""
        if self._is_compressed:
            return False
        try:
            with Path(self.path).open("rb") as file:
                grown = os.fstat(file.fileno()).st_size >= self._offset
                return self._whole and grown and self._read_edges(file) == self._edges
        except OSError:
            return False

    def _read_edges(self, file: BinaryIO) -> bytes:
        file.seek(0)
        head = file.read(min(_EDGE, self._offset))
        file.seek(max(0, self._offset - _EDGE))
        return hashlib.sha256(head + file.read(min(_EDGE, self._offset))).digest()

    def _damaged(self, raw: bytes, line: int, file: BinaryIO) -> Iterator[JsonObject]:
        if len(raw) == LINE_LIMIT and not raw.endswith(b"\n"):
            self.problems.append(Problem(line, f"The line is longer than {LINE_LIMIT >> 20} MB; it was left out."))
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(LINE_LIMIT)
            return
        for value in decode_damaged(raw, line, self.problems):
            try:
                yield json.loads(_storable_json(value))
            except RecursionError:
                self.problems.append(Problem(line, "A record is nested too deeply; it was left out."))


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


class DamagedText:
    """Decoding of the objects in a damaged text, within a limit of a few passes over it.

    Without the limit, a text of only beginnings of objects would be scanned from each of them to its end.
    """

    # NULs and raw control characters occur inside strings of files that were damaged or written on Windows.
    # NaN, infinities and overlarge numbers, which only some programs write, become None.
    _decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)

    def __init__(self, text: str) -> None:
        self.text = text
        self.left = 8 * len(text) + 200_000
        """Number of characters that may still be scanned."""

    def decode(self, start: int) -> tuple[Any, int] | None:
        """The value that begins at this position and its end; None if there is none."""
        reached = len(self.text)
        try:
            value, reached = self._decoder.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Unterminated"):
                reached = error.pos
        except (ValueError, RecursionError):
            pass
        else:
            self.left -= reached - start
            return value, reached
        # the decoder counts the lines before a mistake
        self.left -= 100 + reached - start + reached // 16
        return None

    def objects(self, start: re.Pattern[str], position: int) -> Iterator[JsonObject]:
        """The complete objects that begin with the pattern, one after another."""
        while self.left > 0 and (found := start.search(self.text, position)):
            value, position = self.decode(found.start()) or (None, found.start() + 1)
            if isinstance(value, dict):
                yield value


def read_document(
    raw: bytes, start: re.Pattern[str], is_message: Callable[[JsonObject], bool], problems: list[Problem]
) -> Any:
    """The JSON value of a file that is one session. Of a damaged or unfinished one, the fields before `messages`, and
    the complete messages, which begin with the pattern."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        text = raw.decode("utf-8", "replace").replace("\x00", "").lstrip("\ufeff \t\r\n")
    damaged = DamagedText(text)
    if (whole := damaged.decode(0)) and isinstance(whole[0], dict | list):
        return json.loads(_storable_json(whole[0]))
    begin = _MESSAGES.search(text)
    head = DamagedText(f"{text[: begin.start()].rstrip().rstrip(',')}}}").decode(0) if begin else None
    messages = [found for found in damaged.objects(start, begin.end() if begin else 0) if is_message(found)]
    problems.append(Problem(1, f"The file is damaged or incomplete; {len(messages)} messages were read from it."))
    return json.loads(_storable_json({**(head[0] if head else {}), "messages": messages}))


def _storable_json(value: object) -> bytes:
    """The value as JSON without lone surrogates, which only Python's decoder accepts and which cannot be stored."""
    return json.dumps(value, ensure_ascii=False).encode(errors="ignore")


def decode_damaged(raw: bytes, line: int, problems: list[Problem]) -> list[JsonObject]:
    """The objects that can be recovered from a line that is not exactly one JSON object of the expected form."""
    text = raw.decode("utf-8", "replace").lstrip("\ufeff")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in raw:
        problems.append(Problem(line, "The line holds bytes that are not UTF-8; they were replaced."))
    if "\x00" in text:
        problems.append(Problem(line, "The line holds NUL bytes; they were left out."))
        text = text.replace("\x00", "")
    records: list[JsonObject] = []
    position = _skip_space(text, 0)
    damaged = DamagedText(text)
    while position < len(text):
        if found := damaged.decode(position):
            value, position = found
            if isinstance(value, dict):
                records.append(value)
            else:
                problems.append(Problem(line, "The line holds a JSON value that is not an object."))
        else:
            problems.append(Problem(line, _unreadable(raw, position)))
            position, value = _next_record(damaged, position + 1)
            if value is None:
                break
            records.append(value)
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


def _next_record(damaged: DamagedText, position: int) -> tuple[int, JsonObject | None]:
    """The next complete record after a broken piece: (its end, record), or (end of text, None). A content block inside
    the broken piece also parses, so only an object that looks like a record counts."""
    while damaged.left > 0 and (start := _RECORD_START.search(damaged.text, position)):
        if found := damaged.decode(start.start()):
            value, position = found
            if "type" in value and any(mark in value for mark in _RECORD_MARKS):
                return position, value
        else:
            position = start.start() + 1
    return len(damaged.text), None


def text_of(value: object) -> str:
    """The value if it is text, else ""; fields of a record may have any value."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> JsonObject:
    """The value if it is an object or the JSON of one, else an empty object."""
    if isinstance(value, str):
        value = decoded_object(value)
    return value if isinstance(value, dict) else {}


def decoded_object(raw: bytes | str) -> JsonObject | None:
    """The JSON object, or None if it is none."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def list_of(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects_of(value: object) -> list[JsonObject]:
    """The objects in a list; empty if the value is not a list."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def words(names: str) -> frozenset[str]:
    """A set of names, from a text with blanks between them."""
    return frozenset(names.split())


def to_time(value: object) -> datetime | None:
    """ISO 8601 text or Unix milliseconds as UTC; None for other values and outside 2020 to 2100."""
    try:
        if type(value) is str:
            time = datetime.fromisoformat(value)
            if time.tzinfo is not UTC:
                time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        elif type(value) is int or type(value) is float:
            time = datetime.fromtimestamp(value / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time if time.year in _YEARS else None
