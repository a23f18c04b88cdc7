"""Segments and facts as rows, and rows as the day's log shows them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.rows import Rows, log_window, rows_of
from memory_pipeline.observations.types import EvidenceSpan, Segment, observation_id, row_id
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.daily_log.render import render_observations
from memory_pipeline_tests.observations.talking import LONDON, START, fact
from memory_pipeline_tests.rows import DAY, at

NEW_YORK = ZoneInfo("America/New_York")
WINDOW = {
    "day": DAY,
    "dedupe_key": "w1",
    "session_id": "s1",
    "started_at": START,
    "trigger": "shutdown",
    "current_task": "Make the build green.",
    "files_read": ["a", "b"],
    "files_modified": ["c"],
    "untimed": False,
}
RULE = fact("Never deploy on a Friday.", "high", EvidenceSpan("m1", 0, 25))
DUE = fact("The key expires tomorrow.", "medium", EvidenceSpan("m2", 3, 9), minutes=70, flags=("time_removed",))
SEGMENTS = [
    Segment("They spoke of deploys.", "m1", "m2", (RULE, DUE), title="Deploys", answer="a1"),
    Segment("Nothing came of it.", "m3", "m4", (), parsed=False, problem="It is empty.", current_task="Renew the key."),
]


def settings_in(zone: str) -> Settings:
    return Settings(workspace=Path(), timezone=zone, default_session_dirs=False)


def test_the_rows_of_a_window() -> None:
    rows = rows_of(WINDOW, SEGMENTS, "openai:gpt#1", LONDON).located("/src/kiln", "kiln", "me")
    first, second = rows.segments
    assert first == {
        "day": DAY,
        "dedupe_key": "w1",
        "session_id": "s1",
        "observer": "openai:gpt#1",
        "segment_id": row_id("s", "w1", "m1"),
        "position": 0,
        "narrative": "They spoke of deploys.",
        "title": "Deploys",
        "first_message_id": "m1",
        "last_message_id": "m2",
        "parsed": True,
        "problem": None,
        "answer": "a1",
        "current_task": None,
        "suggested_response": None,
        "used": [],
        "basis": None,
        "times_invented": None,
        "times_written": None,
    }
    assert (second["position"], second["parsed"], second["problem"]) == (1, False, "It is empty.")
    assert rows.observations[1] == {
        "day": DAY,
        "dedupe_key": "w1",
        "session_id": "s1",
        "observer": "openai:gpt#1",
        "segment_id": first["segment_id"],
        "observation_id": observation_id("w1", DUE),
        "priority": "medium",
        "kind": "statement",
        "observed_at": at("10:10"),
        "referenced_at": at("00:00", DAY.replace(day=6)),
        "text": "The key expires tomorrow.",
        "evidence": [{"message_id": "m2", "start": 3, "end": 9}],
        "trust": "user",
        "flags": ["time_removed"],
        "tokens": 8,
        "trace": None,
        "untimed": None,
        "cwd": "/src/kiln",
        "project": "kiln",
        "owner": "me",
    }


def test_the_rows_have_all_columns_of_their_tables() -> None:
    for rows in (rows_of(WINDOW, SEGMENTS, "openai:gpt#1", LONDON), Rows()):
        for name, frame in rows.frames().items():
            assert dict(frame.schema) == TABLES[name].columns


def test_ids_are_the_same_every_time_and_differ_between_windows() -> None:
    def ids(window: dict[str, Any]) -> list[str]:
        rows = rows_of(window, SEGMENTS, "openai:gpt#1", LONDON)
        return [s["segment_id"] for s in rows.segments] + [o["observation_id"] for o in rows.observations]

    assert ids(WINDOW) == ids(WINDOW)
    assert len({*ids(WINDOW), *ids(WINDOW | {"dedupe_key": "w2"})}) == 8


def test_a_day_that_is_spoken_of_is_counted_in_the_configured_zone() -> None:
    """Said at 23:30 in New York, which is the next day in UTC."""
    late = fact("Due tomorrow.", "low", minutes=19 * 60 + 30)
    assert late.observed_at == datetime(2025, 3, 6, 4, 30, tzinfo=UTC)
    (row,) = rows_of(WINDOW, [Segment("x", "m1", "m1", (late,))], "x", NEW_YORK).observations
    assert row["referenced_at"] == datetime(2025, 3, 6, 5, tzinfo=UTC)  # midnight of the 6th in New York
    (row,) = rows_of(WINDOW, [Segment("x", "m1", "m1", (late,))], "x", LONDON).observations
    assert row["referenced_at"] == datetime(2025, 3, 7, tzinfo=UTC)


def test_the_log_shows_segments_with_facts_in_local_time() -> None:
    session = {
        "name": "deploys",
        "files_read": ["a", "b", "d"],
        "files_modified": ["c", "e"],
        "project": "depot",
    }  # of all its windows
    rows = rows_of(WINDOW, SEGMENTS, "x", LONDON)
    shown = log_window(WINDOW, rows, session, settings_in("Asia/Tokyo"))
    assert (shown.key, shown.session_name, shown.time, shown.files_read, shown.files_modified) == (
        *("w1", "deploys", "18:00"),
        *(2, 1),
    )
    (segment,) = shown.segments
    assert (segment.title, [(f.priority, f.time) for f in segment.facts]) == (
        "Deploys",
        [("high", "18:00"), ("medium", "19:10")],
    )
    assert shown.current_task == "Renew the key."  # the last that a segment tells


def test_the_log_has_the_windows_task_and_the_narratives_title_where_no_model_told_them() -> None:
    told = [Segment("They spoke of deploys. And more.", "m1", "m2", (RULE,))]
    session = {"name": "n", "files_read": [], "files_modified": [], "project": None}
    shown = log_window(WINDOW, rows_of(WINDOW, told, "x", LONDON), session, settings_in("Europe/London"))
    assert shown.current_task == "Make the build green."
    assert "They spoke of deploys" in shown.segments[0].title


def test_facts_that_came_without_segments_are_shown_flat() -> None:
    """Nobody wrote a title or narrative, so there is none."""
    flat = [Segment("", "m1", "m2", (RULE, DUE))]
    shown = log_window(
        WINDOW, rows_of(WINDOW, flat, "x", LONDON), {"name": "n", "project": None}, settings_in("Europe/London")
    )
    assert [(s.title, s.narrative) for s in shown.segments] == [("", "")]
    assert "\n\nDate: 2025-03-05\n\n* 🔴 (09:00) Never deploy" in render_observations(shown, DAY)
