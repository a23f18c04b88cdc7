"""A day's rows from its session files: each message once, nothing lost with the file, no byte changed without cause."""

from __future__ import annotations

import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.lake import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.checks import judge_windows
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.stage import NAMES, SessionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline_tests.conftest import assistant, compaction, conversation, tool, user, utc, write_session

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")
LATER = utc("2025-06-01T09:00")


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def build(
    *directories: Path, days: tuple[date, ...] = (DAY,), now: datetime = LATER, **settings: Any
) -> tuple[Lake, list[date]]:
    """A run by a new process over these directories; the lake and the days that were out of date."""
    chosen = load_settings().model_copy(update=settings)
    lake = Lake(chosen.lake_dir)
    catalogue = Catalogue(lake, chosen)
    catalogue.refresh(find_sources(list(directories)))
    stage = SessionsStage(chosen, lake, catalogue, now)
    built = [day for day in days if bring_up_to_date(stage, lake, day)]
    for day in days:
        verdict = judge_windows(lake, day)
        assert verdict.passed, verdict.offenders
    return lake, built


def rows(lake: Lake, table: str, *columns: str, day: date = DAY) -> list[Any]:
    frame = lake.read(table, [day])
    return frame[columns[0]].to_list() if len(columns) == 1 else frame.select(columns).rows()


def texts(lake: Lake, day: date = DAY) -> list[str]:
    return rows(lake, "messages", "text", day=day)


def content(lake: Lake) -> dict[str, bytes]:
    return {f"{p.relative_to(lake.root)}": p.read_bytes() for p in sorted(lake.root.rglob("*.parquet"))}


# --- one day ---


def test_a_session_gives_one_row_its_messages_and_its_windows(sessions: Path) -> None:
    path = write_session(
        sessions / "s.jsonl",
        user("2025-03-05T09:00", "one"),
        assistant("2025-03-05T09:01", "two"),
        tool("2025-03-05T09:02", "exit 1", is_error=True),
        user("2025-03-05T09:03", "three", id="kept"),
        compaction("2025-03-05T09:04", kept="kept"),
        session_id="one-session",
    )
    lake, _ = build(sessions)
    assert lake.read("sessions").drop("files_read", "files_modified").to_dicts() == [
        {
            "day": DAY,
            "session_id": "one-session",
            "harness": "pi",
            "name": "one",
            "cwd": "/src/parcels",
            "source_file": str(path),
            "started_at": utc("2025-03-05T09:00"),
            "ended_at": utc("2025-03-05T09:04"),
            "messages": 5,
            "user_messages": 2,
        }
    ]
    assert rows(lake, "messages", "role", "text", "source_line", "is_error", "tool_name") == [
        ("user", "one", 2, False, None),
        ("assistant", "two", 3, False, None),
        ("tool", "exit 1", 4, True, "bash"),
        ("user", "three", 5, False, None),
        ("injected", "What was said so far.", 6, False, None),
    ]
    assert rows(lake, "windows", "trigger", "messages", "user_messages", "observed", "reason") == [
        ("compaction", 3, 1, True, None),
        ("shutdown", 2, 1, False, "fewer than 5 user messages"),
    ]


def test_every_message_points_at_its_line_of_the_file(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    lake, _ = build(sessions)
    lines = path.read_text().splitlines()
    found = rows(lake, "messages", "text", "source_file", "source_line")
    assert len(found) == 10
    assert all(Path(file) == path and text in lines[line - 1] for text, file, line in found)


def test_a_session_over_midnight_has_a_row_on_each_day(sessions: Path) -> None:
    night = utc("2025-03-05T23:56")
    write_session(sessions / "s.jsonl", *conversation(night, users=5))
    lake, _ = build(sessions, days=(DAY, DAY + timedelta(days=1)))
    assert rows(lake, "sessions", "messages", "user_messages") == [(4, 2)]
    assert rows(lake, "sessions", "messages", "user_messages", day=DAY + timedelta(days=1)) == [(6, 3)]
    assert lake.read("windows")["dedupe_key"].n_unique() == 2


def test_a_day_without_sessions_is_empty_and_known_to_be(sessions: Path) -> None:
    sessions.mkdir()
    lake, built = build(sessions)
    assert built == [DAY]
    assert all(lake.days(name) == [DAY] and lake.read(name).height == 0 for name in NAMES)


def test_an_active_session_is_stored_and_observed_once_idle(sessions: Path) -> None:
    write_session(sessions / "s.jsonl", *conversation(NINE))
    lake, _ = build(sessions, now=NINE + timedelta(minutes=10))
    assert rows(lake, "windows", "observed", "reason") == [(False, "the session is still active")]
    lake, built = build(sessions, now=NINE + timedelta(minutes=30))
    assert (built, rows(lake, "windows", "observed", "reason")) == ([DAY], [(True, None)])


def test_a_session_that_is_taken_up_again_leaves_the_observed_days_before_it(sessions: Path) -> None:
    """Nothing of that day has changed, so none of its bytes may; until it is idle its observations are gone."""
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    build(sessions, now=NINE + timedelta(hours=1))
    days_later = NINE + timedelta(days=3)
    write_session(path, *conversation(NINE), user(days_later, "Where were we?"))
    lake, built = build(sessions, now=days_later + timedelta(minutes=1))
    assert (built, rows(lake, "windows", "observed", "reason")) == ([], [(True, None)])


def test_two_sessions_with_one_conversation_at_one_time_keep_apart(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    write_session(sessions / "b.jsonl", *conversation(NINE, topic="invoices"))
    lake, _ = build(sessions)
    assert rows(lake, "windows", "session_id", "messages") in ([("a", 10), ("b", 10)], [("b", 10), ("a", 10)])


# --- days that are built again ---


def test_a_second_run_over_unchanged_files_changes_no_byte(sessions: Path) -> None:
    write_session(sessions / "s.jsonl", *conversation(NINE), compaction("2025-03-05T10:00"), user(NINE, "x"))
    lake, built = build(sessions)
    before = content(lake)
    assert (built, build(sessions)[1]) == ([DAY], [])
    assert content(lake) == before


def test_building_again_from_nothing_gives_the_same_bytes(sessions: Path, tmp_path: Path) -> None:
    for name in "cab":
        write_session(sessions / f"{name}.jsonl", *conversation(NINE, topic=name))
    first, _ = build(sessions)
    second, _ = build(sessions, workspace=tmp_path / "another")
    assert content(second) == content(first)


def test_a_session_that_grew_replaces_its_rows(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE, users=4))
    lake, _ = build(sessions)
    key = rows(lake, "windows", "dedupe_key")
    ids = rows(lake, "messages", "message_id")
    write_session(path, *conversation(NINE, users=5))
    lake, built = build(sessions)
    assert built == [DAY]
    assert rows(lake, "windows", "dedupe_key", "messages", "observed") == [(key[0], 10, True)]
    assert rows(lake, "messages", "message_id")[:8] == ids
    assert lake.read("sessions").height == 1


def test_a_message_that_was_rewritten_away_is_gone(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", user(NINE, "one"), user(NINE, "two"))
    build(sessions)
    write_session(path, user(NINE, "one"))
    lake, _ = build(sessions)
    assert texts(lake) == ["one"]


def test_a_session_that_moved_to_another_day_leaves_its_old_day(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", user(NINE, "one"))
    write_session(sessions / "t.jsonl", user(NINE, "other"))
    days = (DAY, DAY + timedelta(days=1))
    build(sessions, days=days)
    write_session(path, user(NINE + timedelta(days=1), "one"))
    lake, built = build(sessions, days=days)
    assert built == list(days)
    assert (texts(lake), texts(lake, days[1])) == (["other"], ["one"])


# --- files that are not there any more, or that are there twice ---


def test_rows_of_a_vanished_file_are_kept(sessions: Path) -> None:
    """Harnesses delete old transcripts; what was learnt from them must not go with them."""
    gone = write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    other = write_session(sessions / "b.jsonl", *conversation(NINE, users=1, topic="invoices"))
    lake, _ = build(sessions)
    kept = {name: lake.read(name).rows(named=True) for name in NAMES}
    gone.unlink()
    assert build(sessions)[1] == []  # nothing to do
    write_session(other, *conversation(NINE, users=2, topic="invoices"))
    lake, built = build(sessions)
    assert built == [DAY]
    assert rows(lake, "sessions", "session_id", "messages") == [("a", 10), ("b", 4)]
    for name in NAMES:
        mine = [row for row in lake.read(name).rows(named=True) if row["session_id"] == "a"]
        assert mine == [row for row in kept[name] if row["session_id"] == "a"]


@pytest.mark.parametrize(("users", "reason"), [(5, None), (4, "fewer than 5 user messages")])
def test_a_session_that_vanished_while_it_was_active_is_decided_on_once_it_would_be_idle(
    users: int, reason: str | None, sessions: Path
) -> None:
    """Nothing more will come of it, and nothing that was said is to be lost."""
    gone = write_session(sessions / "s.jsonl", *conversation(NINE, users=users))
    lake, _ = build(sessions, now=NINE + timedelta(minutes=10))
    gone.unlink()
    assert build(sessions, now=NINE + timedelta(minutes=11))[1] == []
    lake, built = build(sessions, now=NINE + timedelta(minutes=30))
    assert (built, rows(lake, "windows", "observed", "reason")) == ([DAY], [(reason is None, reason)])


def test_rows_of_a_file_that_cannot_be_read_any_more_are_kept(sessions: Path) -> None:
    """A disk error or a half-restored backup is no reason to forget."""
    broken = write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    write_session(sessions / "b.jsonl", *conversation(NINE, users=1, topic="invoices"))
    build(sessions)
    broken.write_bytes(b"\x00" * 100)
    write_session(sessions / "b.jsonl", *conversation(NINE, users=2, topic="invoices"))
    lake, _ = build(sessions)
    assert rows(lake, "sessions", "session_id", "messages") == [("a", 10), ("b", 4)]


def test_rows_of_another_directory_are_kept(sessions: Path, tmp_path: Path) -> None:
    """`memory run --sessions` looks at one directory only."""
    write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    build(sessions)
    write_session(tmp_path / "other/b.jsonl", *conversation(NINE, topic="invoices"))
    lake, _ = build(tmp_path / "other")
    assert sorted(rows(lake, "sessions", "session_id")) == ["a", "b"]
    assert len(texts(lake)) == 20
    assert sorted(rows(lake, "windows", "session_id")) == ["a", "b"]


@pytest.mark.parametrize("copy", ["a-backup.jsonl", "z-backup.jsonl"])
def test_a_copied_file_adds_nothing_twice(copy: str, sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    lake, _ = build(sessions)
    before = [lake.read(name).drop("source_file", strict=False) for name in NAMES]
    shutil.copyfile(path, sessions / copy)
    lake, built = build(sessions)
    assert built == [DAY]
    assert all(lake.read(n).drop("source_file", strict=False).equals(b) for n, b in zip(NAMES, before, strict=True))


def test_a_file_that_was_moved_keeps_its_rows_once(sessions: Path) -> None:
    """Codex moves a session to archived_sessions."""
    path = write_session(sessions / "live/s.jsonl", *conversation(NINE))
    build(sessions)
    (sessions / "archived").mkdir()
    path = path.rename(sessions / "archived/s.jsonl")
    lake, _ = build(sessions)
    assert rows(lake, "sessions", "source_file", "messages") == [(str(path), 10)]
    assert len(texts(lake)) == 10
    assert rows(lake, "windows", "messages", "observed") == [(10, True)]


def test_a_fork_adds_only_what_was_said_in_it(sessions: Path) -> None:
    shared = conversation(NINE, topic="parcels")
    write_session(sessions / "a.jsonl", *shared)
    write_session(sessions / "b.jsonl", *shared, *conversation("2025-03-05T11:00", topic="invoices"))
    lake, _ = build(sessions)
    assert rows(lake, "windows", "session_id", "messages") == [("a", 10), ("b", 10)]
    assert len(set(rows(lake, "messages", "message_id"))) == 20


def test_a_fork_that_outlives_its_original_leaves_the_original_whole(sessions: Path) -> None:
    """The fork has the original's first messages; then the harness deletes the original and the fork grows."""
    shared = conversation(NINE, topic="parcels")
    original = write_session(sessions / "a.jsonl", *shared)
    more = conversation("2025-03-05T11:00", topic="invoices")
    write_session(sessions / "b.jsonl", *shared[:4], *more)
    build(sessions)
    original.unlink()
    write_session(sessions / "b.jsonl", *shared[:4], *more, user("2025-03-05T12:00", "one more"))
    lake, _ = build(sessions)  # which asserts that every message lies in exactly one window
    assert len(texts(lake)) == 21


def test_a_partial_copy_does_not_keep_a_session_from_being_observed(sessions: Path) -> None:
    """A backup of this morning beside the session of today, under a name that sorts first."""
    whole = conversation(NINE, users=6)
    write_session(sessions / "s.jsonl", *whole)
    write_session(sessions / "a-backup.jsonl", *whole[:6], session_id="s")
    lake, _ = build(sessions)
    assert rows(lake, "windows", "messages", "observed") == [(12, True)]


# --- nothing of a person's is touched ---


def test_transcripts_are_never_written_to(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    path.chmod(0o400)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, list(sessions.rglob("*")))
    build(sessions)
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, list(sessions.rglob("*"))) == before


def test_a_secret_is_not_stored(sessions: Path) -> None:
    secret = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5oQ7sU9wY1"
    write_session(sessions / "s.jsonl", user(NINE, f"the key is {secret}"), tool(NINE, f"export KEY={secret}"))
    lake, _ = build(sessions)
    assert not any(secret in text for text in texts(lake))
    assert not any(secret.encode() in data for data in content(lake).values())
    assert secret not in str(lake.read("sessions").rows()) + str(lake.read("windows").rows())
