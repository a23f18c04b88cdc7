"""claude-mem's database: its decisions and directives, never its observations of what was done."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_pipeline.operations.importing import claude_mem
from memory_pipeline.operations.importing.lines import Importer
from memory_pipeline.operations.importing.sources import read_path
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import workspace

SCHEMA = """
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT,
  subtitle TEXT, facts TEXT, narrative TEXT, created_at_epoch INTEGER);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, project TEXT, learned TEXT);
"""
DIRECTIVES = "CREATE TABLE directives (id INTEGER PRIMARY KEY, project TEXT, content TEXT, status TEXT);"
DECISION = ("kiln", "decision", "Chose SQLite over a flat file.", "Firings are queried by date.")


@pytest.fixture
def importer(tmp_path: Path) -> Importer:
    return Importer(Workspace(*workspace(tmp_path / "ws")))


def database(folder: Path, *rows: tuple[str, str, str, str | None], more: str = "") -> Path:
    path = folder / "claude-mem.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA + more)
        query = "INSERT INTO observations (project, type, title, subtitle) VALUES (?, ?, ?, ?)"
        connection.executemany(query, rows)
        connection.commit()
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Of the database and its log; the memory that its users share has a mark for each reader."""
    return {one.name: one.read_bytes() * (not one.name.endswith("-shm")) for one in folder.glob("claude-mem.db*")}


def test_a_decision_is_a_line_and_what_was_done_is_none(importer: Importer, tmp_path: Path) -> None:
    rows = [("kiln", kind, "Something about the kiln", "that is told here") for kind in ("bugfix", "discovery")]
    summary = "INSERT INTO session_summaries (learned) VALUES ('much');"
    (file,) = read_path(importer, database(tmp_path, *rows, DECISION, more=summary))
    (line,) = file.lines
    assert line.text == "Chose SQLite over a flat file: Firings are queried by date."
    assert (line.number, line.project, line.origin) == (3, "kiln", "claude-mem")


def test_directives_that_hold_are_rules(importer: Importer, tmp_path: Path) -> None:
    rows = "INSERT INTO directives (content, status) VALUES ('Speak French with the kiln.', 'active'), ('Old', 'off');"
    (file,) = read_path(importer, database(tmp_path, more=DIRECTIVES + rows))
    assert [line.text for line in file.lines] == ["Speak French with the kiln."]
    assert file.lines[0].section(importer.workspace.settings) == "Hard Rules"


def test_of_many_decisions_the_newest_are_read(
    importer: Importer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_mem, "MAX_ROWS", 2)
    rows = [("kiln", "decision", f"Chose brick number {n}", None) for n in range(5)]
    (file,) = read_path(importer, database(tmp_path, *rows))
    assert [line.text for line in file.lines] == ["Chose brick number 4", "Chose brick number 3"]


def test_no_secret_of_a_decision_is_read(importer: Importer, tmp_path: Path) -> None:
    row = ("kiln", "decision", "Chose a key for the kiln", "AKIAIOSFODNN7EXAMPLE")
    (file,) = read_path(importer, database(tmp_path, row))
    assert file.lines == ()


def test_a_database_in_use_is_read_and_nothing_is_written_beside_it(importer: Importer, tmp_path: Path) -> None:
    path = database(tmp_path)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO observations (project, type, title, subtitle) VALUES (?, ?, ?, ?)", DECISION)
        writer.commit()
        before = contents(tmp_path)
        (file,) = read_path(importer, path)
        assert len(file.lines) == 1
        assert contents(tmp_path) == before


def test_a_locked_database_is_a_sentence(importer: Importer, tmp_path: Path) -> None:
    path = database(tmp_path, DECISION)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        (file,) = read_path(importer, path)
        assert file.problem.endswith("run it again when claude-mem is idle.")


def test_a_damaged_or_foreign_database_is_a_sentence(importer: Importer, tmp_path: Path) -> None:
    path = database(tmp_path, *[DECISION] * 200)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    assert read_path(importer, path)[0].problem == f"{path}: The database is damaged."
    path.write_bytes(data[:5000])
    assert read_path(importer, path)[0].problem == f"{path}: The database is damaged."
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bricks (id)")
    assert "not one of claude-mem" in read_path(importer, path)[0].problem


def test_a_database_of_another_version_is_a_sentence(importer: Importer, tmp_path: Path) -> None:
    path = tmp_path / "claude-mem.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE observations (id INTEGER PRIMARY KEY, raw TEXT)")
    assert read_path(importer, path)[0].problem.startswith(f"{path}: The database cannot be read")
