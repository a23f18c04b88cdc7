"""A session that goes on is read on from where it ended, and what is read is always what a fresh reading would find."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses import compressed, records
from memory_pipeline.harnesses.model import NotASessionError, ParsedSession, source_of
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.reading import Readings, parse
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import compaction, conversation, write_session
from memory_pipeline_tests.sessions.test_golden import GOLDEN

LOGS = sorted(GOLDEN.glob("*/*.jsonl"))
named = each("golden", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")


class Reading:
    """Reads one file again and again, and checks each reading against a fresh one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.readings = Readings()

    def read(self) -> ParsedSession | None:
        """The session; None while there is none."""
        source = source_of(self.path)
        found = _or_reason(lambda: self.readings.read(source, 1500, Redactor(b"")))
        assert found == _or_reason(lambda: parse(source))
        return found if isinstance(found, ParsedSession) else None


def _or_reason(read: Any) -> ParsedSession | str:
    try:
        session: ParsedSession = read()
    except NotASessionError as error:
        return str(error)
    return session


@named
def test_a_session_that_grows_by_lines(golden: Path, tmp_path: Path) -> None:
    reading = Reading(tmp_path / golden.name)
    lines = golden.read_bytes().splitlines(keepends=True)
    for end in range(len(lines) + 1):
        reading.path.write_bytes(b"".join(lines[:end]))
        found = reading.read()
    assert found and found.messages


@named
def test_a_session_that_grows_in_the_middle_of_lines(golden: Path, tmp_path: Path) -> None:
    reading = Reading(tmp_path / golden.name)
    whole = golden.read_bytes()
    for end in range(0, len(whole) + 211, 211):
        reading.path.write_bytes(whole[:end])
        found = reading.read()
    assert found and found.problems == parse(source_of(golden)).problems


class Counted:
    """Stands for `Path` and counts the bytes that are read through it."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, path: str) -> Counted:
        self.path = path
        return self

    def open(self, mode: str, buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader | io.FileIO:
        counted = self

        class File(io.FileIO):
            def readinto(self, buffer: Any, /) -> int:
                count = super().readinto(buffer)
                counted.bytes += count
                return count

        file = File(self.path, "r")
        return io.BufferedReader(file, buffering) if buffering else file


def test_only_what_was_added_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = conversation("2026-05-01T09:00:00", users=12_000)
    path = write_session(tmp_path / "a.jsonl", *entries[:-2])
    readings, counted = Readings(), Counted()
    monkeypatch.setattr(records, "Path", counted)
    monkeypatch.setattr(compressed, "Path", counted)
    readings.read(source_of(path), 1500, Redactor(b""))
    size = path.stat().st_size
    assert counted.bytes > size > 5_000_000
    write_session(path, *entries)
    counted.bytes = 0
    assert len(readings.read(source_of(path), 1500, Redactor(b"")).messages) == 24_000
    # what was added, and the beginning and the end of what was known
    assert counted.bytes < size / 10
    counted.bytes = 0
    readings.read(source_of(path), 1500, Redactor(b""))
    assert counted.bytes == 0


@pytest.fixture
def grown(tmp_path: Path) -> Reading:
    """A session that was read once, of 20 messages."""
    reading = Reading(tmp_path / "a.jsonl")
    write_session(reading.path, *conversation("2026-05-01T09:00:00", users=10))
    reading.read()
    return reading


def test_a_rewritten_session_is_read_anew(grown: Reading) -> None:
    write_session(grown.path, *conversation("2026-05-01T09:00:00", users=30, topic="the invoices"))
    found = grown.read()
    assert found and len(found.messages) == 60
    assert "the invoices" in found.messages[0].text


def test_a_session_rewritten_with_the_same_size_is_read_anew(grown: Reading) -> None:
    before = grown.path.read_text()
    grown.path.write_text(before.replace("part 5", "part X"))
    os.utime(grown.path, (1_800_000_000, 1_800_000_000))
    found = grown.read()
    assert found and "part X" in found.messages[10].text


def test_a_truncated_session_is_read_anew(grown: Reading) -> None:
    lines = grown.path.read_bytes().splitlines(keepends=True)
    grown.path.write_bytes(b"".join(lines[:5]))
    found = grown.read()
    assert found and len(found.messages) == 4


def test_a_session_replaced_by_another_is_read_anew(grown: Reading, tmp_path: Path) -> None:
    other = write_session(tmp_path / "b.jsonl", *conversation("2026-06-01T09:00:00", users=50))
    other.replace(grown.path)
    found = grown.read()
    assert found and (found.session_id, len(found.messages)) == ("b", 100)


def test_what_follows_a_compaction_belongs_to_no_earlier_reading(grown: Reading) -> None:
    entries = conversation("2026-05-01T09:00:00", users=10)
    write_session(grown.path, *entries, compaction("2026-05-01T10:00:00"))
    assert (found := grown.read()) and len(found.compactions[0].message_ids) == 20
    write_session(grown.path, *entries, compaction("2026-05-01T10:00:00"), compaction("2026-05-01T11:00:00"))
    assert (found := grown.read()) and [len(c.message_ids) for c in found.compactions] == [20, 1]


def test_a_line_that_is_written_to_while_it_is_read_is_read_whole_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole, half, rest = '{"type":"one"}', '{"type":', '"two"}\n'
    path.write_text(whole + half)
    lines = records.JsonLines(str(path), [])
    reading = lines.records()
    assert next(reading)[1]["type"] == "one"
    with path.open("a") as file:
        file.write(rest)
    assert list(reading) == []
    assert not lines.can_go_on()


def test_only_the_latest_readings_are_kept(tmp_path: Path) -> None:
    paths = [write_session(tmp_path / f"{name}.jsonl", *conversation("2026-05-01T09:00:00")) for name in "abc"]
    readings = Readings(max_readings=2)
    first = [readings.read(source_of(path), 1500, Redactor(b"")) for path in paths]
    again = [readings.read(source_of(path), 1500, Redactor(b"")) for path in reversed(paths)]
    assert [known is found for known, found in zip(reversed(first), again, strict=True)] == [True, True, False]
