"""Retention: data older than a configured age is removed, with its points in the index.

The text of messages is removed, while speaker, time and place are kept, and so are all rows derived from it. No later
run rebuilds a day whose text is gone. Rows of tables that nothing else is derived from are removed too, except those
behind proposals, whose vectors are compared with new lines.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from memory_pipeline.embeddings.opening import remove_points
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.planning import Stages
from memory_pipeline.settings import Settings

SEARCHED = "message_embeddings"
WORDS = "messages"
PASSING = tuple(name for name, table in TABLES.items() if table.passes)


@dataclass(frozen=True)
class Retired:
    """The days of a table to which an age applies."""

    days: list[date]
    """Days whose old rows or texts are removed now."""
    waiting: list[date]
    """Days that are old enough but have stages that are not up to date."""


def retire(settings: Settings, today: date) -> dict[str, Retired]:
    """Remove everything older than configured, by table; nothing without a setting.

    Safe to repeat, also after an interruption. Raises `IndexUnavailableError` while another process uses the index.
    """
    found = {WORDS: retire_words(settings, today), **retire_rows(settings, today)}
    return {table: retired for table, retired in found.items() if retired.days or retired.waiting}


def retire_words(settings: Settings, today: date) -> Retired:
    """Remove the texts of days older than `retention.messages`; nothing if that is 0. See `retire`."""
    lake = Lake.from_settings(settings)
    due = due_days(settings, lake, today)
    if not due:
        return Retired([], [])
    stages = Stages.from_settings(settings, for_planning=True)
    done = [day for day in due if lake.is_retired(WORDS, day) or stages.is_current(day)]
    for day in done:
        lake.retire(WORDS, due[day], day)
    # after the texts: a day with texts would get its points again
    points = lake.read(SEARCHED, done)["point_id"].to_list()
    if points:
        remove_points(settings, points, lambda payload: False)
    lake.replace(SEARCHED, lake.read(SEARCHED, done).clear(), done)
    return Retired(done, [day for day in due if day not in done])


def due_days(settings: Settings, lake: Lake, today: date) -> dict[date, pl.DataFrame]:
    """The days that are old enough and still have texts to remove, each with its rows without them."""
    if not settings.retention.messages:
        return {}
    oldest, ended, found = today - timedelta(days=settings.retention.messages), _sessions_by_last_day(lake), {}
    for day in (day for day in lake.days(WORDS) if day <= oldest):
        messages = lake.read(WORDS, [day])
        left = without_words(messages, settings.retention.keep_last, ended[day])
        if not messages.equals(left) or (messages.height > 0 and lake.read(SEARCHED, [day]).height > 0):
            found[day] = left
    return found


def _sessions_by_last_day(lake: Lake) -> dict[date, list[str]]:
    """The sessions by their last known day."""
    last = lake.read("sessions", columns=["day", "session_id"]).group_by("session_id").agg(pl.col("day").max())
    found: dict[date, list[str]] = defaultdict(list)
    for session, day in last.iter_rows():
        found[day].append(session)
    return found


def without_words(messages: pl.DataFrame, last: int, ended: list[str]) -> pl.DataFrame:
    """The rows without their texts, except for the last messages of each session in `ended`."""
    said = messages.filter(
        pl.col("role").is_in(["user", "assistant"]),
        pl.col("text") != "",
        pl.col("session_id").is_in(ended),
        ~pl.col("voided").fill_null(False),
    )
    kept = said.sort("said_at", "source_line").group_by("session_id").tail(last)["message_id"]
    is_kept = pl.col("message_id").is_in(kept.implode())
    return messages.with_columns(
        pl.when(is_kept).then("text").otherwise(pl.lit("")).alias("text"),
        pl.when(is_kept).then("answered").alias("answered"),
        pl.when(is_kept).then("quoted").otherwise(pl.lit([], messages.schema["quoted"])).alias("quoted"),
    )


def retire_rows(settings: Settings, today: date) -> dict[str, Retired]:
    """Remove the rows of days older than `retention` allows for their table, with their points. See `retire`."""
    lake, ages = Lake.from_settings(settings), settings.retention.ages
    due = {
        table: [d for d in lake.days(table) if d <= today - timedelta(days=age) and not lake.is_retired(table, d)]
        for table, age in ages.items()
        if age
    }
    if not any(due.values()):
        return {}
    stages, offered = Stages.from_settings(settings, for_planning=True), _proposed_ids(lake)
    is_done = {day: stages.is_current(day) for day in set().union(*due.values())}
    left = {(t, d): _kept_rows(lake.read(t, [d]), offered) for t, days in due.items() for d in days if is_done[d]}
    # before the rows, without which the points would be unknown
    points = [
        point
        for (table, day), rows in left.items()
        if "point_id" in rows.columns
        for point in lake.read(table, [day]).join(rows, on="point_id", how="anti")["point_id"]
    ]
    if points:
        remove_points(settings, points, lambda payload: False)
    for (table, day), rows in left.items():
        lake.retire(table, rows, day)
    return {
        table: Retired([d for d in days if is_done[d]], [d for d in days if not is_done[d]])
        for table, days in due.items()
    }


def _proposed_ids(lake: Lake) -> list[str]:
    """The ids of proposals, and of the lines from which they were made."""
    sources = lake.read("proposals", columns=["sources"])["sources"].explode(empty_as_null=True).drop_nulls()
    return [*sources, *lake.read("friction_fixes", columns=["proposal_id"])["proposal_id"]]


def _kept_rows(rows: pl.DataFrame, offered: list[str]) -> pl.DataFrame:
    return rows.filter(pl.col("source_id" if "source_id" in rows.columns else "pattern_id").is_in(offered))
