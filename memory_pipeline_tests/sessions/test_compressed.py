"""Session files that are compressed with zstd."""

from __future__ import annotations

import base64
import json
import sys
from datetime import date
from pathlib import Path

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from memory_pipeline.harnesses import compressed, records
from memory_pipeline.harnesses.model import NotASessionError, ParsedSession, source_of
from memory_pipeline.planning import Stages
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.images import load_image
from memory_pipeline.sessions.reading import Readings, parse_file
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline_tests.conftest import conversation
from memory_pipeline_tests.sessions.machine import Machine
from memory_pipeline_tests.sessions.test_golden import GOLDEN

LOGS = sorted(GOLDEN.glob("*/*.jsonl"))
TOLD = conversation("2025-03-03T09:00", topic="parcels")


def compress(path: Path, *, frames: int = 1) -> Path:
    """The file as its harness compresses it: another file takes its place, in one frame or more."""
    data, out = path.read_bytes(), path.with_name(f"{path.name}.zst")
    size = len(data) // frames + 1
    out.write_bytes(b"".join(zstd.compress(data[start : start + size]) for start in range(0, len(data), size)))
    path.unlink()
    return out


def test_a_compressed_file_of_any_harness_is_read_as_before(tmp_path: Path) -> None:
    other = {}
    for number, log in enumerate(LOGS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (path := folder / log.name).write_bytes(log.read_bytes())
        before = parse_file(path)
        if parse_file(compress(path, frames=1 + number % 3)) != before:
            other[str(log)] = before.session_id
    assert len(LOGS) > 10 and not other


def built(machine: Machine) -> list[date]:
    """The days that the first stage had to build."""
    sessions = Stages.from_settings(machine.settings).sessions
    sessions.look()
    return [day for day in sessions.catalogue.days() if bring_up_to_date(sessions, sessions.lake, day)]


def test_a_file_that_is_compressed_changes_nothing(machine: Machine) -> None:
    path = machine.write("a.jsonl", *TOLD)
    assert built(machine) == [date(2025, 3, 3)]
    before = machine.tables()
    out = compress(path)
    assert built(machine) == []
    assert machine.tables() == before == machine.made_anew()
    assert [row["path"] for row in machine.rows("files")] == [str(path)]
    out.unlink()  # gone as any other
    assert built(machine) == []
    assert machine.tables() == before


def test_one_that_also_lies_there_as_it_was_is_found_once(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.zst", "b.jsonl.zst", "c.zst", "d.json.zst"):
        (tmp_path / name).write_bytes(b"")
    found = list(find_sources([tmp_path]))
    assert [(Path(source.path).name, Path(source.key).name) for source in found] == [
        ("a.jsonl", "a.jsonl"),
        ("b.jsonl.zst", "b.jsonl"),
    ]


def problems(session: ParsedSession) -> str:
    return " ".join(problem.reason for problem in session.problems)


def test_of_a_damaged_file_is_read_what_can_be(tmp_path: Path) -> None:
    (path := tmp_path / "a.jsonl").write_bytes(GOLDEN.joinpath("codex", "0.142.jsonl").read_bytes())
    whole = parse_file(path)
    lines = path.read_bytes().splitlines(keepends=True)
    half = [b"".join(lines[: len(lines) // 2]), b"".join(lines[len(lines) // 2 :])]
    frames = [zstd.compress(part) for part in half]
    path = path.with_name("a.jsonl.zst")
    for data, reason in (
        (frames[0] + frames[1][:-20], "ends in the middle"),
        (frames[0] + b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "is damaged from here on"),
    ):
        path.write_bytes(data)
        session = parse_file(path)
        assert reason in problems(session)
        assert 0 < len(session.messages) < len(whole.messages)
        assert {m.message_id for m in session.messages} <= {m.message_id for m in whole.messages}
    path.write_bytes(b"\xff" * 50)
    with pytest.raises(NotASessionError, match="compressed file that is damaged"):
        parse_file(path)


def test_a_file_that_holds_too_much_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LINE_LIMIT", 100_000)
    monkeypatch.setattr(compressed, "DECOMPRESSED_LIMIT", 5_000_000)
    lines = GOLDEN.joinpath("codex", "0.142.jsonl").read_bytes()
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstd.compress(lines + b"0" * 2_000_000 + b"\n" + lines[:200] + b"\n" + b" " * 100_000_000))
    assert path.stat().st_size < 50_000
    session = parse_file(path)
    assert "longer than" in problems(session) and "the rest was left out" in problems(session)
    assert session.messages


def test_an_image_is_fetched_from_a_compressed_file(tmp_path: Path) -> None:
    data = base64.b64encode(b"a picture").decode()
    block = {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
    payload = {"type": "message", "role": "user", "content": [block]}
    record = {"timestamp": "2026-03-02T09:00:00.000Z", "type": "response_item", "payload": payload}
    (path := tmp_path / "a.jsonl").write_text(f"{json.dumps(record)}\n")
    (found,) = parse_file(path).messages[0].images
    compress(path)
    assert load_image(str(path), found.line, found.block).data == b"a picture"


def test_a_compressed_file_that_is_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    (path := tmp_path / "a.jsonl").write_bytes(lines := GOLDEN.joinpath("codex", "0.142.jsonl").read_bytes())
    readings = Readings()
    first = b"".join(lines.splitlines(keepends=True)[:5])
    path.write_bytes(first)
    path = compress(path)
    before = readings.read(source_of(path), 1500, Redactor(b""))
    path.write_bytes(zstd.compress(first) + zstd.compress(lines.removeprefix(first)))
    after = readings.read(source_of(path), 1500, Redactor(b""))
    assert len(before.messages) < len(after.messages)
    assert after == parse_file(path)
