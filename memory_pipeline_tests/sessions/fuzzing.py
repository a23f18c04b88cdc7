"""What has to be true of any file that is read as a session, whatever is in it.

`check` and `check_folders` are called by `test_fuzzing` with files that Hypothesis makes up and with those of
`corpus/`, and by `benchmarks/fuzz.py`, which looks for more of them.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch
from zoneinfo import ZoneInfo

from memory_pipeline.harnesses.model import NotASessionError, ParsedSession, Role, Source, source_of
from memory_pipeline.harnesses.opencode.reader import OpenCode
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.images import NoSuchImageError, load_image
from memory_pipeline.sessions.reading import Readings, parse, parse_file
from memory_pipeline.sessions.windows import digest, windows_by_day

CORPUS = Path(__file__).parent / "corpus"
FOLDERS = ".folders"
"""Suffix of the inputs of `check_folders`."""
LIMIT = 300
REDACTOR = Redactor(b"fuzzing")
ZONE = ZoneInfo("Europe/Berlin")
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
MODIFIED_NS = 1_780_000_000 * 10**9
# To tell what a file is it is read once or twice, then read, then its edges are read to know it again; each may fill
# a buffer that holds all of a small file.
READ_AT_MOST = 6
MAX_TIMES_AN_HONEST_FILE = 200
"""How much longer than a proper file of its size, at least of 100 KB, a file may take to be read."""
SUSPICIOUS = 0.2
"""Seconds of reading from which on it is compared with a proper file."""


def check(data: bytes, name: str) -> ParsedSession | None:
    """Read the bytes as a file of that name; the session, or None when it is refused for a proper reason."""
    path = folder_of_checks() / name
    _write(path, data)
    with counted_bytes() as counted:
        session, seconds = _parsed(path)
    assert counted[0] <= READ_AT_MOST * len(data), f"read {counted[0]} bytes of {len(data)}"
    if seconds > SUSPICIOUS:
        _compare_with_an_honest_file(path, len(data))
    _check_growth(path, data, session)
    if isinstance(session, str):
        return None
    check_session(session)
    check_images(session, str(path))
    return session


def check_folders(data: bytes) -> list[ParsedSession]:
    """Read the lines as files of a folder of OpenCode: a session, then messages, each with the parts that follow it.

    A line that begins with `+` is a part.
    """
    with temporary_folder() as folder:
        storage, message = folder / "storage", "msg_0"
        (storage / "session/p").mkdir(parents=True)
        for number, line in enumerate(data.split(b"\n")):
            file = storage / "session/p/ses_1.json"
            if line.startswith(b"+"):
                file, line = storage / "part" / message / f"prt_{number}.json", line[1:]
            elif number:
                message = f"msg_{number}"
                file = storage / f"message/ses_1/{message}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, line)
        return check_opencode(folder)


def check_opencode(folder: Path) -> list[ParsedSession]:
    """Read all that OpenCode keeps in a folder, which must be the same afterwards."""

    def read(source: Source) -> ParsedSession | str:
        return session_or_reason(lambda: parse(source, tool_text_limit=LIMIT, redactor=REDACTOR))

    before = _content(folder)
    sessions = []
    claimed = OpenCode().claims(folder, {path.name for path in folder.iterdir()})
    for source in claimed[0] if claimed else [Source(str(folder))]:
        session = read(source)
        assert session == read(source)
        if isinstance(session, ParsedSession):
            check_session(session)
            check_images(session, source.key)
            sessions.append(session)
    assert _content(folder) == before
    return sessions


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def session_or_reason(read: Any) -> ParsedSession | str:
    """The session, or the sentence that says why there is none, which never is a mistake in a reader."""
    try:
        session: ParsedSession = read()
    except NotASessionError as error:
        reason = str(error)
        if "please report it" in reason:
            raise AssertionError(reason) from error
        assert reason.endswith(".") and "\n" not in reason
        return reason
    return session


def check_session(session: ParsedSession) -> None:
    """Assert what every session has to be."""
    messages = session.messages
    assert messages
    for message in messages:
        assert message.role in get_args(Role)
        assert message.text and message.line >= 0
        assert EARLIEST <= message.said_at < LATEST and EARLIEST <= message.written_at < LATEST
        _storable(message.message_id, message.text, message.tool_name or "")
        _storable(*message.files_read, *message.files_modified, *(image.media_type for image in message.images))
    _storable(session.session_id, session.name, session.cwd, session.parent_id, session.excluded or "")
    _storable(*session.unknown_records, *session.files_read, *session.files_modified)
    assert "\n" not in session.name and len(session.name) <= 80
    assert all(before.said_at <= after.said_at for before, after in pairwise(messages))
    ids = {message.message_id for message in messages}
    assert len(ids) == len(messages)
    compacted = [identity for compaction in session.compactions for identity in compaction.message_ids]
    assert len(set(compacted)) == len(compacted) and ids.issuperset(compacted)
    assert session.inherited <= ids
    for problem in session.problems:
        assert problem.line >= 0 and problem.reason.endswith(".")
        _storable(problem.reason)
    windows = [window for found in windows_by_day(session, ZONE).values() for window in found]
    assert sorted(m.message_id for window in windows for m in window.messages) == sorted(ids)
    assert len({window.dedupe_key for window in windows}) == len(windows)
    assert len(digest(session, windows)) == 64
    for window in windows:
        _storable(window.current_task or "", window.suggested_response or "")
        assert window.tokens >= window.tokens_said >= 0


def check_images(session: ParsedSession, source_file: str) -> None:
    """Assert that every image, of the first few, can be fetched or is refused with a reason."""
    images = [image for message in session.messages for image in message.images]
    for image in images[:5]:
        try:
            assert isinstance(load_image(source_file, image.line, image.block).data, bytes)
        except NoSuchImageError as reason:
            assert str(reason).endswith(".")


@contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """A list of one number, which grows with the bytes that are read from files opened by `Path.open`."""
    counted = [0]

    class File(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            size = super().readinto(buffer)
            counted[0] += size or 0
            return size

        def readall(self) -> bytes:
            data = super().readall()
            counted[0] += len(data)
            return data

    def opened(path: Any, mode: str = "r", buffering: int = -1, *rest: Any) -> Any:
        if mode != "rb":
            return real(path, mode, buffering, *rest)
        return io.BufferedReader(File(path), buffering if buffering > 0 else io.DEFAULT_BUFFER_SIZE)

    real = io.open
    with patch.object(io, "open", opened):
        yield counted


def _parsed(path: Path) -> tuple[ParsedSession | str, float]:
    """The session or why it is none, and the seconds of this process that it took."""
    started = time.process_time()
    session = session_or_reason(lambda: parse_file(path, tool_text_limit=LIMIT, redactor=REDACTOR))
    return session, time.process_time() - started


def _compare_with_an_honest_file(path: Path, size: int) -> None:
    """Each at its quickest of a few times, so that a busy machine makes no difference."""
    header = {"type": "session", "version": 3, "id": "honest", "timestamp": "2026-03-02T10:00:00.000Z", "cwd": "/r"}
    said = {"role": "user", "content": [{"type": "text", "text": "Please look at the parcel service again. " * 5}]}
    entry = {"type": "message", "timestamp": "2026-03-02T10:00:00.000Z", "message": said}
    lines, length = [json.dumps(header)], 0
    while length < max(size, 100_000):
        lines.append(json.dumps(entry | {"id": f"{len(lines)}", "parentId": f"{len(lines) - 1}"}))
        length += len(lines[-1])
    honest = path.with_name("honest.jsonl")
    _write(honest, "\n".join(lines).encode())
    seconds, proper = (min(_parsed(each)[1] for _ in range(3)) for each in (path, honest))
    honest.unlink()
    assert seconds <= MAX_TIMES_AN_HONEST_FILE * proper, f"{size} bytes took {seconds / proper:.0f} times a proper file"


def _check_growth(path: Path, data: bytes, whole: ParsedSession | str) -> None:
    """Assert that a file that grew, read on from where it had ended, holds what it holds when it is read at once."""
    assert _read(Readings(), source_of(path)) == whole
    lines = data.splitlines(keepends=True)
    ends = {sum(map(len, lines[:count])) for count in (1, len(lines) // 2, len(lines) - 1)}
    ends.add(sum(data[:64]) * 7919 % (len(data) + 1))
    readings = Readings()
    for end in sorted(end for end in ends if 0 < end < len(data)):
        _write(path, data[:end])
        _read(readings, source_of(path))
    _write(path, data)
    assert _read(readings, source_of(path)) == whole


def _read(readings: Readings, source: Source) -> ParsedSession | str:
    return session_or_reason(lambda: readings.read(source, LIMIT, REDACTOR))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    # where nothing in a file has a time, it is when the file was written
    os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS))


def _storable(*texts: str) -> None:
    for text in texts:
        text.encode("utf-8")
        assert "\x00" not in text


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def folder_of_checks() -> Path:
    """Deep enough, since the readers look for files of a project in the folders above."""
    folder = Path(_temporary().name, "one", "two", "three")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
