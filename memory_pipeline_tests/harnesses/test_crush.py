"""The reader of Crush's databases, one in each project."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_pipeline.harnesses.crush import Crush
from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.harnesses.databases import execute, ids, made, sessions, shape


def test_projects_are_found_where_crush_lists_them(tmp_path: Path) -> None:
    listed = [
        {"path": "/home/ada/shop", "data_dir": "/home/ada/shop/.crush"},
        {"path": "/home/ada/bakery", "data_dir": "data"},
        {"path": "bakery", "data_dir": "relative"},
        {"path": 3, "data_dir": None},
    ]
    found = [Path("/home/ada/shop/.crush"), Path("/home/ada/bakery/data")]
    places: dict[str, dict[str, str]] = {
        ".local/share/crush": {},
        "share/crush": {"XDG_DATA_HOME": str(tmp_path / "share")},
        "own": {"CRUSH_GLOBAL_DATA": str(tmp_path / "own"), "XDG_DATA_HOME": "/elsewhere"},
    }
    for place, env in places.items():
        assert Crush().default_roots(tmp_path, env) == [], place
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "projects.json").write_text(json.dumps({"projects": listed}))
        assert Crush().default_roots(tmp_path, env) == found, place
        for broken in ("{", "[]", '{"projects": 3}', ""):
            (tmp_path / place / "projects.json").write_text(broken)
            assert Crush().default_roots(tmp_path, env) == [], broken


def test_only_the_database_of_a_project_is_looked_at(tmp_path: Path) -> None:
    database = made(tmp_path / "shop/.crush/crush.db", "crush/0.90.sql")
    (database.parent / "crush.json").write_text("{}")
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in database.parent.iterdir()}
    found = sessions(tmp_path)
    assert {name: session.cwd for name, session in found.items()} == {
        "s1": str(tmp_path / "shop"),
        "m2$$call_9": str(tmp_path / "shop"),
    }
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in database.parent.iterdir()} == before


def test_a_session_that_goes_on_is_seen_to_have_changed_and_keeps_its_ids(tmp_path: Path) -> None:
    database = made(tmp_path / "crush.db", "crush/0.90.sql")
    before = {source.session: source for source in find_sources([tmp_path])}
    first = parse(before["s1"])
    longer = json.dumps([{"type": "text", "data": {"text": "Retrying."}}])
    execute(database, f"UPDATE messages SET parts = '{longer}' WHERE id = 'm8';")  # within the same second
    after = {source.session: source for source in find_sources([tmp_path])}
    assert before["s1"] != after["s1"]
    assert before["m2$$call_9"] == after["m2$$call_9"]
    second = parse(after["s1"])
    assert ids(second)[:16] == ids(first)[:16]
    assert shape(second)[-1] == ("assistant", "Retrying.")
    execute(database, "UPDATE sessions SET title = 'Prices' WHERE id = 's1';")
    (renamed,) = (source for source in find_sources([tmp_path]) if source.session == "s1")
    assert renamed != after["s1"]
    assert parse(renamed).name == "Prices"


def test_damaged_parts_cost_only_themselves(tmp_path: Path) -> None:
    database = made(tmp_path / "crush.db", "crush/0.90.sql")
    execute(
        database,
        """UPDATE messages SET parts = '[{"type":"text"' WHERE id = 'm1';
        UPDATE messages SET parts = '[3, {"type": 3, "data": 3}, {"type": "tool_call", "data": {"input": 3}}]'
            WHERE id = 'm2';
        UPDATE messages SET role = 'narrator' WHERE id = 'm4';
        UPDATE messages SET created_at = 'noon' WHERE id = 'm7';""",
    )
    session = sessions(tmp_path)["s1"]
    assert [problem.reason for problem in session.problems] == [
        "The blocks of the message are not a JSON list; left out."
    ]
    assert session.unknown_records["message/narrator"] == 1
    assert ("user", "Euro cents, always.") in shape(session)


def test_databases_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.harnesses.sqlite._BUSY_SECONDS", 0.01)
    foreign = tmp_path / "a/crush.db"
    foreign.parent.mkdir()
    execute(foreign, "CREATE TABLE messages (id TEXT);")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/crush.db").write_bytes(made(tmp_path / "c.db", "crush/0.90.sql").read_bytes()[:5000])
    cases = {"a": "It is an SQLite database, but not one of Crush.", "b": "The database is damaged."}
    for folder, reason in cases.items():
        (source,) = find_sources([tmp_path / folder])
        with pytest.raises(NotASessionError, match=reason):
            parse(source)
    (tmp_path / "d").mkdir()
    execute(tmp_path / "d/crush.db", "")
    assert list(find_sources([tmp_path / "d"])) == []  # Crush made it, and nothing in it yet
    locked = made(tmp_path / "e/crush.db", "crush/0.90.sql")
    with closing(sqlite3.connect(locked, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        (source,) = find_sources([tmp_path / "e"])
        with pytest.raises(NotReadableNowError, match="locked by another program"):
            parse(source)
        writer.execute("ROLLBACK")
    assert len(sessions(tmp_path / "e")) == 2
