"""From the bytes of a session file to its records, and what the fields of a record are taken for.

A session file is JSON lines, written by a program that may be killed at any moment. Whatever cannot be read becomes
a `Problem`, which names the line but never quotes it, since the line may hold a secret; the rest is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline.sessions.model import Problem

Record = dict[str, Any]

# Clocks that were never set are told by a time outside these.
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)
# NULs and raw control characters occur inside strings of files that were damaged or written on Windows.
_DECODER = json.JSONDecoder(strict=False)
_RECORD_START = re.compile(r'\{\s*"(?:type|timestamp|parentUuid|uuid|sessionId|isSidechain|cwd|ordinal)"\s*:')
_RECORD_MARKS = ("timestamp", "sessionId", "leafUuid")
# Each failed attempt may scan the rest of a line of many megabytes.
_MAX_RESYNCS = 50


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
    return time if EARLIEST <= time < _LATEST else None


def message_id(harness: str, *identity: object) -> str:
    """A stable id from what identifies a message in its harness; never from where it stands in the file."""
    key = "\x1f".join(map(str, identity))
    return f"{harness}-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
