"""A day's rows from its session files: each message once, nothing lost with the file, no byte changed without cause."""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.defs.sessions import judge_windows
from memory_pipeline.harnesses.model import NotReadableNowError, ParsedSession, Source
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions import catalogue
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import Readings
from memory_pipeline.sessions.stage import NAMES, SessionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.conftest import Entry, assistant, compaction, conversation, tool, user, utc, write_session
from memory_pipeline_tests.harnesses.test_claude_code import record
from memory_pipeline_tests.harnesses.test_codex import FORKED, copied, line, prompt, turns

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
    known = Catalogue(lake, chosen)
    known.refresh(find_sources(list(directories)))
    stage = SessionsStage(Workspace(chosen, lake), known, now)
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
            "project": "parcels",
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
        ("shutdown", 2, 1, False, "its session has fewer than 5 user messages"),
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
    another = tmp_path / "another"
    (another / "lake").mkdir(parents=True)
    shutil.copy(first.root / "salt", another / "lake/salt")  # with another one the marks would be others
    second, _ = build(sessions, workspace=another)
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


@pytest.mark.parametrize(("users", "reason"), [(5, None), (4, "its session has fewer than 5 user messages")])
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


def test_rows_that_an_older_version_stored_are_kept(sessions: Path) -> None:
    """Of a file that has gone since, the catalogue knows no more than what that version wrote."""
    gone = write_session(sessions / "gone.jsonl", *conversation(NINE, topic="parcels"))
    write_session(sessions / "there.jsonl", *conversation(NINE, topic="invoices"))
    later = DAY + timedelta(days=1)
    write_session(sessions / "later.jsonl", user(NINE + timedelta(days=1), "not stored yet"))
    lake, _ = build(sessions)
    as_an_older_version(lake)
    gone.unlink()
    (sessions / "later.jsonl").unlink()
    lake, built = build(sessions, days=(DAY, later))  # which asserts that the check passes
    assert (built, sorted(rows(lake, "sessions", "session_id")), len(texts(lake))) == (
        [DAY, later],
        ["gone", "there"],
        20,
    )
    assert build(sessions, days=(DAY, later))[1] == []


def as_an_older_version(lake: Lake) -> None:
    """The catalogue as a version wrote it that knew of each day only the digest."""
    day = pl.Struct({"day": pl.Date(), "digest": pl.String()})
    known = [
        row | {"days": [{"day": d["day"], "digest": "old"} for d in row["days"]]}
        for row in lake.read("files").to_dicts()
    ]
    columns = {name: kind for name, kind in TABLES["files"].columns.items() if name in IN_OLDER_VERSIONS}
    frame = pl.DataFrame(
        [{name: row[name] for name in columns} for row in known], schema=columns | {"days": pl.List(day)}
    )
    frame.with_columns(reader=pl.lit("1")).write_parquet(lake.path("files"))


IN_OLDER_VERSIONS = (
    *("path", "harness", "session_id", "size", "modified_ns", "reader", "last_said_at", "messages", "records"),
    *("unknown_records", "problems", "days", "reason"),
)


@pytest.mark.parametrize("copy", ["a-backup.jsonl", "z-backup.jsonl"])
def test_a_copied_file_adds_nothing_twice(copy: str, sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    lake, _ = build(sessions)
    before = [lake.read(name).drop("source_file", strict=False) for name in NAMES]
    shutil.copyfile(path, sessions / copy)
    lake, built = build(sessions)
    assert built == [DAY]
    assert all(lake.read(n).drop("source_file", strict=False).equals(b) for n, b in zip(NAMES, before, strict=True))


def test_a_partial_copy_does_not_keep_a_session_from_being_observed(sessions: Path) -> None:
    """A backup of this morning beside the session of today, under a name that sorts first."""
    whole = conversation(NINE, users=6)
    write_session(sessions / "s.jsonl", *whole)
    write_session(sessions / "a-backup.jsonl", *whole[:6], session_id="s")
    lake, _ = build(sessions)
    assert rows(lake, "windows", "messages", "observed") == [(12, True)]


# --- nothing of the user's is touched ---


def test_transcripts_are_never_written_to(sessions: Path) -> None:
    path = write_session(sessions / "s.jsonl", *conversation(NINE))
    path.chmod(0o400)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, list(sessions.rglob("*")))
    build(sessions)
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, list(sessions.rglob("*"))) == before


def test_a_run_over_one_directory_makes_a_day_of_all_that_is_known(sessions: Path, tmp_path: Path) -> None:
    """Neither was stored yet; a day that only one of them is in would be taken for the whole."""
    write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    other = write_session(tmp_path / "other/b.jsonl", *conversation(NINE, topic="invoices"))
    build(sessions, other.parent, days=())
    lake, built = build(other.parent)
    assert (built, sorted(rows(lake, "sessions", "session_id")), len(texts(lake))) == ([DAY], ["a", "b"], 20)
    assert build(sessions, other.parent)[1] == build(sessions)[1] == build(other.parent)[1] == []


@pytest.mark.parametrize("stored", [False, True])
def test_a_day_of_a_session_that_cannot_be_read_for_now_is_made_again(
    stored: bool, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(sessions / "a.jsonl", *conversation(NINE, users=2, topic="parcels"))
    if stored:
        build(sessions)
        write_session(path, *conversation(NINE, users=3, topic="parcels"))
    write_session(sessions / "b.jsonl", *conversation(NINE, topic="invoices"))
    build(sessions, days=())  # the catalogue has read all of it
    with monkeypatch.context() as for_now:
        for_now.setattr(catalogue, "_READINGS", Locked("a.jsonl"))
        lake, built = build(sessions)
        assert (built, len(texts(lake))) == ([DAY], 14 if stored else 10)
        assert build(sessions)[1] == [DAY]
    lake, built = build(sessions)
    assert (built, len(texts(lake))) == ([DAY], 16 if stored else 14)
    assert build(sessions)[1] == []


def test_a_day_of_a_session_that_cannot_be_looked_at_for_now_is_made_again(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on, on another day, and is locked when it is looked at."""
    path = write_session(sessions / "a.jsonl", *conversation(NINE, topic="parcels"))
    write_session(sessions / "b.jsonl", *conversation(NINE, topic="invoices"))
    build(sessions, days=())
    write_session(path, *conversation(NINE, topic="parcels"), user(NINE + timedelta(days=1), "more"))
    with monkeypatch.context() as for_now:
        for_now.setattr(catalogue, "_READINGS", Locked("a.jsonl"))
        assert len(texts(build(sessions)[0])) == 10
        assert build(sessions)[1] == [DAY]
    lake, built = build(sessions)
    assert (built, len(texts(lake)), build(sessions)[1]) == ([DAY], 20, [])


class Locked(Readings):
    """All but one file can be read."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def read(self, source: Source, tool_text_limit: int, redactor: Redactor) -> ParsedSession:
        if source.path.endswith(self.name):
            raise NotReadableNowError("It is locked.")
        return super().read(source, tool_text_limit, redactor)


def test_what_two_files_of_one_session_say_stays_when_one_is_gone(sessions: Path) -> None:
    """Claude Code resumed it into another file. The window is that of the session, whichever file a message is from."""
    first, second = ([claude(number, f"{name} {number}") for number in range(3)] for name in ("one", "two"))
    one, two = write_lines(sessions / "s-1.jsonl", *first), write_lines(sessions / "z.jsonl", *second)
    build(sessions)
    one.unlink()
    write_lines(two, *second, claude(9, "more"))
    lake, built = build(sessions)
    assert (built, sorted(texts(lake))) == (
        [DAY],
        sorted([*(f"{n} {i}" for n in ("one", "two") for i in range(3)), "more"]),
    )
    assert rows(lake, "windows", "messages", "user_messages", "observed") == [(7, 7, True)]
    assert sorted(rows(lake, "sessions", "source_file", "messages")) == [(str(one), 3), (str(two), 4)]
    assert build(sessions)[1] == []


def test_two_files_of_one_session_that_begin_at_one_time_have_one_window(sessions: Path) -> None:
    for name in ("s-1", "z"):
        write_lines(sessions / f"{name}.jsonl", *(claude(number, f"{name} {number}") for number in range(3)))
    lake, _ = build(sessions)
    assert rows(lake, "windows", "messages") == [6]


def claude(number: int, text: str) -> dict[str, Any]:
    return record(number, "user", text, uuid=text, timestamp=f"2025-03-05T09:00:{number:02d}.000Z")


def write_lines(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in records), "utf-8")
    return path


# --- forks of Codex, which copy what they go on from under new times ---

FORK_DAY = date(2026, 5, 1)


def rollout(path: Path, name: str, *records: dict[str, Any]) -> Path:
    return write_lines(path, line(0, "session_meta", id=name, cwd="/"), *records)


def test_a_copy_of_a_session_that_vanished_before_it_was_stored_is_stored(sessions: Path) -> None:
    parent = rollout(sessions / "parent.jsonl", "parent", *turns("a", "b"))
    rollout(sessions / "fork.jsonl", "fork", FORKED, *copied(*turns("a", "b")), *prompt(30, "c"))
    build(sessions, days=())
    parent.unlink()
    lake, _ = build(sessions, days=(FORK_DAY,))
    assert sorted(texts(lake, FORK_DAY)) == ["a", "b", "c", "to a", "to b"]


def test_a_prompt_that_followed_a_copy_at_once_stays_when_the_original_is_gone(sessions: Path) -> None:
    parent = rollout(sessions / "parent.jsonl", "parent", *turns("a", "b"))
    own = copied(*prompt(3, "c"), at="2026-05-01T12:00:03.110Z")
    fork = [FORKED, *copied(*turns("a", "b")), *own]
    rollout(sessions / "fork.jsonl", "fork", *fork)
    build(sessions, days=(FORK_DAY,))
    parent.unlink()
    rollout(sessions / "fork.jsonl", "fork", *fork, *prompt(30, "d"))
    lake, _ = build(sessions, days=(FORK_DAY,))
    assert sorted(texts(lake, FORK_DAY)) == ["a", "b", "c", "d", "to a", "to b"]


def test_a_copy_of_a_session_that_cannot_be_read_for_now_is_not_stored(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day_before = [record | {"timestamp": "2026-04-30T12:00:00Z"} for record in turns("a", "b")]
    rollout(sessions / "parent.jsonl", "parent", *day_before)
    rollout(sessions / "fork.jsonl", "fork", FORKED, *copied(*turns("a", "b")), *prompt(30, "c"))
    build(sessions, days=())
    with monkeypatch.context() as for_now:
        for_now.setattr(catalogue, "_READINGS", Locked("parent.jsonl"))
        assert texts(build(sessions, days=(FORK_DAY,))[0], FORK_DAY) == ["c"]
    days = (date(2026, 4, 30), FORK_DAY)
    lake, built = build(sessions, days=days)
    assert (built, len(texts(lake, days[0])), texts(lake, FORK_DAY)) == (list(days), 4, ["c"])


def test_a_sub_agent_that_copies_a_prompt_does_not_say_it_again(sessions: Path) -> None:
    """There it is the program that puts it in."""
    rollout(sessions / "parent.jsonl", "parent", *turns("a"))
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    head = line(0, "session_meta", id="s-2", source=spawned, subagent_history_start_ordinal=4)
    records = [record | {"ordinal": number} for number, record in enumerate(turns("a", "look"), start=1)]
    write_lines(sessions / "agent.jsonl", head, *records)
    lake, _ = build(sessions, days=(FORK_DAY,))
    assert sorted(texts(lake, FORK_DAY)) == ["a", "look", "to a", "to look"]


# --- what the user does not want to be stored ---

SECRET = "AKIA" + "Q3EXAMPLE7ZK4WNT"


def test_what_is_kept_is_redacted_once_redaction_is_on(sessions: Path) -> None:
    said = user(NINE, f"the key is {SECRET}", "key")
    gone = write_session(sessions / "gone.jsonl", said, *conversation(NINE, topic="parcels"))
    lake, _ = build(sessions, redact=False)
    assert SECRET in f"{lake.read('messages').rows()}{lake.read('sessions').rows()}"
    gone.unlink()
    lake, built = build(sessions, redact=True)
    assert (built, len(texts(lake))) == ([DAY], 11)
    assert not any(SECRET.encode() in data for name, data in content(lake).items() if not name.startswith("files"))
    assert SECRET not in "".join(f"{lake.read(name).rows()}" for name in NAMES)


REMINDER = "<system-reminder>ORCHID</system-reminder>"
PRIVATE = {
    "around a reminder": [f"Look. <private>TULIP {REMINDER} ROSE</private> Go on."],
    "over three blocks": ["Look. <private>TULIP", f"ORCHID {REMINDER}", "ROSE</private> Go on."],
}


@pytest.mark.parametrize("blocks", PRIVATE.values(), ids=PRIVATE)
def test_nothing_private_is_stored(blocks: list[str], sessions: Path) -> None:
    said = [{"type": "text", "text": text} for text in blocks]
    write_session(sessions / "pi.jsonl", Entry(NINE, {"type": "message", "message": {"role": "user", "content": said}}))
    write_lines(sessions / "s-1.jsonl", record(1, "user", said, timestamp="2025-03-05T09:00:00Z"))
    lake, _ = build(sessions)
    stored = "".join(f"{lake.read(name).rows()}" for name in NAMES)
    assert sorted(rows(lake, "sessions", "harness")) == ["claude_code", "pi"]
    assert "Look." in stored and "Go on." in stored
    assert not [word for word in ("TULIP", "ORCHID", "ROSE") if word in stored]


# --- the project ---


def test_a_folder_below_a_repository_is_its_project_as_soon_as_a_session_tells(sessions: Path) -> None:
    def session(name: str, cwd: str, branch: str) -> None:
        fields = {"cwd": cwd, "gitBranch": branch, "sessionId": name, "uuid": name}
        write_lines(sessions / f"{name}.jsonl", record(1, "user", name, timestamp="2025-03-05T09:00:00Z", **fields))

    session("below", "/home/ada/src/kiln/web/app", "main")
    lake, _ = build(sessions)
    assert [row[0] for row in lake.read("sessions").select("project").rows()] == ["app"]
    session("top", "/home/ada/src/kiln", "main")
    lake, _ = build(sessions)
    assert set(lake.read("sessions").select("session_id", "project").rows()) == {("below", "kiln"), ("top", "kiln")}
    assert build(sessions)[1] == []
