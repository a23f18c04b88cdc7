"""The reader of Goose's database, and of the files that older versions left."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_pipeline.harnesses.goose import Goose
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.harnesses.databases import GOLDEN, execute, ids, made, sessions, shape


def test_folders() -> None:
    home = Path("/home/ada")
    standard = [home / ".local/share/goose/sessions", home / "Library/Application Support/Block/goose/sessions"]
    assert Goose().default_roots(home, {}) == standard
    assert Goose().default_roots(home, {"XDG_DATA_HOME": "/data"})[0] == Path("/data/goose/sessions")
    assert Goose().default_roots(home, {"GOOSE_PATH_ROOT": "/goose"})[0] == Path("/goose/data/sessions")


def test_a_session_in_a_file_and_in_the_database_is_read_once_and_its_messages_are_the_same(tmp_path: Path) -> None:
    database = made(tmp_path / "sessions.db", "goose/1.25.sql")
    for name in ("20260501_1", "20260430_1"):
        shutil.copy(GOLDEN / "goose/1.9.jsonl", tmp_path / f"{name}.jsonl")
    found = sessions(tmp_path)
    assert sorted(found) == ["20260430_1", "20260501_1", "20260501_2"]
    assert found["20260430_1"].began_at is None
    header, *messages = (GOLDEN / "goose/1.9.jsonl").read_text("utf-8").splitlines()
    assert "working_dir" in header
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO sessions (id, working_dir) VALUES ('20260430_1', '/home/ada/shop')")
        for message in map(json.loads, messages):
            row = ("20260430_1", message["role"], json.dumps(message["content"]), message["created"])
            columns = "session_id, role, content_json, created_timestamp"
            connection.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?)", row)
        connection.commit()
    imported = sessions(tmp_path)
    assert len(imported) == 3
    assert ids(imported["20260430_1"]) == ids(found["20260430_1"])


def test_a_file_that_lost_its_first_line_is_a_session_of_goose(tmp_path: Path) -> None:
    path = tmp_path / "20260430_1.jsonl"
    path.write_text((GOLDEN / "goose/1.9.jsonl").read_text("utf-8").split("\n", 1)[1], "utf-8")
    session = parse_file(path)
    assert (session.harness, session.session_id, len(session.messages)) == ("goose", "20260430_1", 6)


def test_who_typed_follows_from_the_type_of_the_session(tmp_path: Path) -> None:
    database = made(tmp_path / "sessions.db", "goose/1.25.sql")
    roles = {"user": "user", "terminal": "user", "acp": "user", "scheduled": "injected", "hidden": "injected"}
    for kind, role in {**roles, "gateway": "injected", "sub_agent": "injected"}.items():
        execute(database, f"UPDATE sessions SET session_type = '{kind}' WHERE id = '20260501_1';")
        assert shape(sessions(tmp_path)["20260501_1"])[0][0] == role, kind


def test_a_compaction_that_writes_all_messages_anew_keeps_their_ids(tmp_path: Path) -> None:
    database = made(tmp_path / "sessions.db", "goose/1.25.sql")
    before = sessions(tmp_path)["20260501_1"]
    execute(
        database,
        """CREATE TABLE copy AS SELECT * FROM messages; DELETE FROM messages;
        INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json)
            SELECT session_id, role, content_json, created_timestamp, metadata_json FROM copy ORDER BY id;""",
    )
    after = sessions(tmp_path)["20260501_1"]
    assert ids(after) == ids(before)


def test_a_prompt_repeated_by_a_person_is_theirs(tmp_path: Path) -> None:
    database = made(tmp_path / "sessions.db", "goose/1.25.sql")
    columns = "session_id, role, content_json, created_timestamp, metadata_json"
    said, seen = json.dumps([{"type": "text", "text": "Then leave the build folder alone."}]), '{"userVisible":true}'
    execute(
        database, f"INSERT INTO messages ({columns}) VALUES ('20260501_1', 'user', '{said}', 1777636900, '{seen}');"
    )
    assert shape(sessions(tmp_path)["20260501_1"])[-1] == ("user", "Then leave the build folder alone.")


def test_while_the_database_is_locked_its_files_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.harnesses.sqlite._BUSY_SECONDS", 0.01)
    database = made(tmp_path / "sessions.db", "goose/1.25.sql")
    shutil.copy(GOLDEN / "goose/1.9.jsonl", tmp_path / "20260501_1.jsonl")
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert [(Path(source.path).name, source.session) for source in find_sources([tmp_path])] == [
            ("sessions.db", "*")
        ]
        writer.execute("ROLLBACK")
    assert len(sessions(tmp_path)) == 2
