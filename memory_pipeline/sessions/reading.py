"""Reading of sessions of any known harness, which is recognised by content; reading resumes at the previous end if a
session has grown."""

from __future__ import annotations

import os
import re
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline import harnesses
from memory_pipeline.harnesses.compressed import damage_of, open_session
from memory_pipeline.harnesses.model import (
    NotASessionError,
    NotReadableNowError,
    ParsedSession,
    Problem,
    Source,
    source_of,
)
from memory_pipeline.harnesses.protocol import Harness, HarnessWithFolders, HarnessWithRecords
from memory_pipeline.harnesses.records import JsonLines, JsonObject, decode_damaged
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.redaction import Redactor

# Maximum bytes of a line (lines with images have megabytes); longer ones are skipped when a file is identified.
_HEAD_BYTES = 16 * 1024 * 1024
_HEAD_RECORDS = 20
_HEAD_LINES = 100
_TOP_BYTES = 64 * 1024
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|[{\[]\x00[^\x00]\x00|\x00[{\[]\x00[^\x00]")
"""A byte order mark, or the beginning of JSON without one. PowerShell writes UTF-16 when it redirects output."""
# Possessive, or a file of blanks would take quadratic time.
_OBJECT = re.compile(r'\s*+"(\w+)"\s*+:\s*+\{')
_FIELD = re.compile(r'\s*+(?:,\s*+)?"(\w+)"\s*+:\s*+("(?:[^"\\]|\\.)*+")')


class Reading:
    """A session being read.

    Raises `NotASessionError` if there is no readable session.
    """

    def __init__(self, source: Source, tool_text_limit: int, redactor: Redactor) -> None:
        with _as_read_error("a session"):
            self.harness = harness_of(source)
        known_as = source._replace(path=source.plain_path)
        self.transcript = Transcript(self.harness.name, known_as, tool_text_limit, redactor, self.harness.format)
        with _as_read_error(self.harness.name):
            self.reader = self.harness.reader(self.transcript)
        self.lines: JsonLines | None = None
        self.records: Callable[[], Iterator[tuple[int, Any]]]
        if isinstance(self.harness, HarnessWithRecords):
            self.records = partial(self.harness.records, source, self.transcript.problems)
        else:
            self.lines = JsonLines(source.path, self.transcript.problems)
            self.records = self.lines.records

    def read(self) -> ParsedSession:
        """The session with its current contents; only additions to a JSON Lines file are read."""
        name = self.harness.name
        with _as_read_error(name):
            for line, record in self.records():
                try:
                    self.reader.record(line, record)
                except RecursionError:  # nested, but not deeply enough for the decoder to reject it
                    reason = "The record is nested too deeply; what had not been read of it was left out."
                    self.transcript.problems.append(Problem(line, reason))
            session = self.reader.finish()
        if not session.messages and not (session.part and session.part.base):  # it may revert messages of others
            raise NotASessionError(f"It is a {name} file, but has no messages.")
        return session

    def can_go_on(self) -> bool:
        """Whether the session has only grown since it was read."""
        return self.lines is not None and self.lines.can_go_on()


def parse(source: Source, *, tool_text_limit: int = 1500, redactor: Redactor | None = None) -> ParsedSession:
    """Read one session; every stored string is redacted. Raises `NotASessionError`."""
    return Reading(source, tool_text_limit, redactor or Redactor(b"")).read()


def parse_file(path: Path, *, tool_text_limit: int = 1500, redactor: Redactor | None = None) -> ParsedSession:
    """Read a file that is one session. Raises `NotASessionError`."""
    return parse(source_of(path), tool_text_limit=tool_text_limit, redactor=redactor)


class Readings:
    """The latest readings, so that a growing session is not read from the beginning each time.

    They are only in memory, as they contain text before redaction.
    """

    def __init__(self, max_readings: int = 64, max_characters: int = 4_000_000) -> None:
        self.max_readings, self.max_characters = max_readings, max_characters
        self._latest: OrderedDict[tuple[object, ...], tuple[Source, Reading, ParsedSession, int]] = OrderedDict()

    def read(self, source: Source, tool_text_limit: int, redactor: Redactor) -> ParsedSession:
        """The current session. Raises `NotASessionError`."""
        key = (source.key, tool_text_limit, redactor.salt, redactor.forgotten.version)
        known = self._latest.pop(key, None)
        if known and known[0] == source:
            self._latest[key] = known
            return known[2]
        # if the size is unchanged, the file was rewritten or touched
        if known and source.size > known[0].size and known[1].can_go_on():
            reading = known[1]
        else:
            reading = Reading(source, tool_text_limit, redactor)
        session = reading.read()
        self._latest[key] = (source, reading, session, sum(len(m.text) for m in session.messages))
        while len(self._latest) > self.max_readings or sum(n for *_, n in self._latest.values()) > self.max_characters:
            self._latest.popitem(last=False)
        return session


@contextmanager
def _as_read_error(harness: str) -> Iterator[None]:
    """Turn a bug in a reader into a failure of one session instead of the run; the reason quotes nothing from the
    file."""
    try:
        yield
    except NotASessionError:
        raise
    except OSError as error:
        raise NotReadableNowError(
            f"The file cannot be read: {(error.strerror or 'input/output error').lower()}."
        ) from error
    except Exception as error:
        mistake = f"{type(error).__name__} in the reader of {harness}"
        raise NotASessionError(f"It could not be read: {mistake}; please report it.") from error


def harness_of(source: Source) -> Harness:
    """The harness that wrote the session, identified by its content. Raises `NotASessionError`.

    Agents that share a format are distinguished by the folder; a session within a file has the folder of the file.
    """
    if source.session:
        claiming = [harness for harness in harnesses.HARNESSES if isinstance(harness, HarnessWithFolders)]
        place = Path(source.path)
        by_name = (harness for harness in claiming if harness.name == source.agent)
        by_file = (harness for harness in claiming if harness.claims(place.parent, {place.name}))
        return next(chain(by_name, by_file), claiming[0])
    if stat.S_ISDIR(mode := os.stat(source.path).st_mode):  # noqa: PTH116
        raise _why_not_listed(source.path)
    if not stat.S_ISREG(mode):
        raise NotASessionError("It is a pipe, a socket or a device, not a file.")  # opening it might block
    records: list[JsonObject] = []
    left = _HEAD_BYTES
    with open_session(source.path) as file:
        if _UTF_16.match(file.peek(4)):
            raise NotASessionError("The file is UTF-16, which no agent writes; convert it to UTF-8 to have it read.")
        for number in range(1, _HEAD_LINES + 1):
            raw = file.readline(left)
            left -= len(raw)
            if not left and not raw.endswith(b"\n"):  # the lines after an overlong one are just as good
                while (raw := file.readline(_HEAD_BYTES)) and not raw.endswith(b"\n"):
                    pass
                left = _HEAD_BYTES
                continue
            for record in _first_decoded(raw, number):
                records.append(record)
                if harness := _recognised(record, source.agent):
                    return harness
            if not raw or left <= 0 or len(records) >= _HEAD_RECORDS:
                break
        damage = damage_of(file)
    if not source.size:
        raise NotASessionError("The file is empty.")
    if damage and not records:
        raise NotASessionError("It is a compressed file that is damaged; nothing of it can be read.")
    whole = _top_fields(Path(source.path))
    if whole and (harness := _recognised(whole, source.agent)):
        return harness
    records += [whole] if whole else []
    if records:
        raise NotASessionError("It is JSON, but not a session of a known coding agent.")
    raise NotASessionError("It is not JSON.")


def _why_not_listed(folder: str) -> NotReadableNowError:
    try:
        os.listdir(folder)  # noqa: PTH208
    except OSError as error:
        reason = (error.strerror or "input/output error").lower()
        return NotReadableNowError(f"The folder cannot be listed: {reason}. Allow reading it, then run again.")
    return NotReadableNowError("The link leads to a folder above the session directories, so it is not followed.")


def _recognised(record: JsonObject, agent: str) -> Harness | None:
    for harness in sorted(harnesses.HARNESSES, key=lambda harness: harness.name != agent):
        with _as_read_error(harness.name):
            if harness.recognises(record):
                return harness
    return None


def _first_decoded(raw: bytes, line: int) -> list[JsonObject]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        # a damaged line of a session still has a brace; a line of prose or of an image rarely does
        return decode_damaged(raw, line, []) if re.search(rb'\{\s*"', raw) else []
    return [value if isinstance(value, dict) else {}]


def _top_fields(path: Path) -> JsonObject:
    """The top of a file with one JSON object over many lines: its first text fields. They identify the harness even if
    the rest is long or incomplete. A first field that is an object is included with its first text fields."""
    with open_session(path) as file:
        text = file.read(_TOP_BYTES).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not text.startswith("{"):
        return {}
    if (inner := _OBJECT.match(text, 1)) and (fields := _text_fields(text, inner.end())):
        return {inner[1]: fields}
    return _text_fields(text, 1)


def _text_fields(text: str, position: int) -> JsonObject:
    fields: JsonObject = {}
    while field := _FIELD.match(text, position):
        fields[field[1]] = field[2][1:-1]
        position = field.end()
    return fields
