"""Letting go of what was said, once it is old: the words of messages, and with them what recall searches of them.

Who said something, when and where stays, and so does all that was made of it: observations, reflections, distillations,
proposals, MEMORY.md, the logs. A day of which the words are gone is made anew by no later run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from memory_pipeline.embeddings.removing import remove_points
from memory_pipeline.lake.store import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.settings import Settings

SEARCHED = "message_embeddings"


@dataclass(frozen=True)
class Retired:
    """What a call of `retire_words` came to."""

    days: list[date]
    """Whose words are gone now."""
    waiting: list[date]
    """Old enough, but not up to date: what is to be made of them has not been."""


def retire_words(settings: Settings, today: date) -> Retired:
    """Take out the words of days older than `keep_words_days`; nothing where that is 0.

    Safe to repeat, also after it was killed. Raises `IndexUnavailableError` while another process uses the index.
    """
    lake = Lake.from_settings(settings)
    due = due_days(settings, lake, today)
    if not due:
        return Retired([], [])
    stages = Stages.from_settings(settings, for_planning=True)
    done = [day for day in due if lake.is_retired("messages", day) or stages.is_current(day)]
    for day in done:
        lake.retire("messages", without_words(lake.read("messages", [day])), day)
    # after the words: a day that has them would have its points made anew
    points = lake.read(SEARCHED, done)["point_id"].to_list()
    if points:
        remove_points(settings, points, lambda payload: False)
    for day in done:
        lake.retire(SEARCHED, lake.read(SEARCHED, [day]).clear(), day)
    return Retired(done, sorted(set(due) - set(done)))


def due_days(settings: Settings, lake: Lake, today: date) -> list[date]:
    """The days that are old enough and of which something is still to go."""
    if not settings.keep_words_days:
        return []
    oldest = today - timedelta(days=settings.keep_words_days)
    kept = (day for day in lake.days("messages") if day <= oldest and not lake.is_retired(SEARCHED, day))
    return [day for day in kept if lake.read("messages", [day], ["day"]).height]


def without_words(messages: pl.DataFrame) -> pl.DataFrame:
    """The rows without what was said in them."""
    return messages.with_columns(
        pl.lit("").alias("text"),
        pl.lit(None, messages.schema["answered"]).alias("answered"),
        pl.lit([], messages.schema["quoted"]).alias("quoted"),
    )
