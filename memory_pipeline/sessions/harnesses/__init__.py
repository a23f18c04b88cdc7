"""The harnesses whose session files can be read, and the one way to read a file: `parse_file`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import orjson

from memory_pipeline.sessions.harnesses import claude_code, codex, pi
from memory_pipeline.sessions.harnesses.records import Record, decode_damaged
from memory_pipeline.sessions.model import NotASession, ParsedSession

# To add a harness, write its module with HARNESS, recognises() and parse(), and add it here.
HARNESSES: tuple[ModuleType, ...] = (
    pi,
    claude_code,
    codex,
)

# A first line with an image in it has megabytes; more than this is not looked at to tell what a file is.
_HEAD_BYTES = 16 * 1024 * 1024
_HEAD_RECORDS = 20
_HEAD_LINES = 100


def parse_file(path: Path, *, tool_text_limit: int = 1500) -> ParsedSession:
    """Read a session file of any known harness, told by its content; every stored string is redacted.

    Raises `NotASession` when the file holds no session that can be read.
    """
    try:
        harness = _harness_of(path)
        with _mistakes_named(harness):
            session: ParsedSession = harness.parse(path, tool_text_limit=tool_text_limit)
    except OSError as error:
        raise NotASession(f"The file cannot be read: {(error.strerror or 'input/output error').lower()}.") from error
    if not session.messages:
        raise NotASession(f"It is a {harness.HARNESS} file, but nobody says anything in it.")
    return session


@contextmanager
def _mistakes_named(harness: ModuleType) -> Iterator[None]:
    """A mistake in a reader costs the one file, never the run; the reason quotes nothing of the file."""
    try:
        yield
    except (OSError, NotASession):
        raise
    except Exception as error:
        mistake = f"{type(error).__name__} in the reader of {harness.HARNESS}"
        raise NotASession(f"It could not be read: {mistake}; please report it.") from error


def _harness_of(path: Path) -> ModuleType:
    records, size = _head(path)
    for harness in HARNESSES:
        with _mistakes_named(harness):
            if harness.recognises(records):
                return harness
    if size == 0:
        raise NotASession("The file is empty.")
    if not records:
        records = _whole(path, size)
    if any("sessionId" in record and "projectHash" in record for record in records):
        raise NotASession("It is a Gemini CLI session, which is not read yet.")
    if records:
        raise NotASession("It is JSON, but not a session of a known coding agent.")
    raise NotASession("It is not JSON.")


def _head(path: Path) -> tuple[list[Record], int]:
    """The first few records of a file, however long it is, and its size."""
    records: list[Record] = []
    left = _HEAD_BYTES
    with path.open("rb") as file:
        for number in range(1, _HEAD_LINES + 1):
            raw = file.readline(left)
            left -= len(raw)
            records += _first_decoded(raw, number)
            if not raw or left <= 0 or len(records) >= _HEAD_RECORDS:
                break
    return records, path.stat().st_size


def _first_decoded(raw: bytes, line: int) -> list[Record]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        # a damaged line of a session still holds a brace; a line of prose or of a picture rarely does
        return decode_damaged(raw, line, []) if re.search(rb'\{\s*"', raw) else []
    return [value] if isinstance(value, dict) else []


def _whole(path: Path, size: int) -> list[Record]:
    """The file as one JSON value over many lines."""
    if size > _HEAD_BYTES:
        return []
    try:
        value = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return []
    return [value] if isinstance(value, dict) else [{}]
