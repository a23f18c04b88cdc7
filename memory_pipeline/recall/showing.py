"""What `memory show` prints: the messages around a message, or the log of a day with the reasons why some sessions have
no observations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.embeddings.messages import spoken
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.silence import silences
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

NAME = 60
"""Maximum characters of a session's name."""
_FENCE = re.compile(r"^<!-- /?memory:[^\n]*-->\r?\n?", re.MULTILINE)
"""A fence of a block in the file, which is not displayed."""


def messages_around(lake: Lake, identifier: str, around: int) -> list[dict[str, Any]]:
    """The messages around the message with this id, or all messages of the session with this id. Empty for an unknown
    id."""
    days = lake.days("messages")
    for day in sorted(days, reverse=True):
        said = spoken(lake.read("messages", [day])).filter(pl.col("text").str.strip_chars() != "")
        inside = said.filter(pl.col("session_id") == identifier)
        if inside.height:
            whole = [lake.read("messages", [d]).filter(pl.col("session_id") == identifier) for d in sorted(days)]
            return spoken(pl.concat(whole)).sort("said_at", "source_line").to_dicts()
        hit = said.filter(pl.col("message_id") == identifier)
        if hit.height:
            session = said.filter(pl.col("session_id") == hit["session_id"][0]).sort("said_at", "source_line")
            at = session["message_id"].to_list().index(identifier)
            return session.slice(max(0, at - around), around + 1 + min(at, around)).to_dicts()
    return []


def day_not_kept(lake: Lake, identifier: str) -> date | None:
    """The last day of a message or session whose text was deleted by retention; None if there is none."""
    for day in sorted(lake.days("messages"), reverse=True):
        ids = lake.read("messages", [day], ["message_id", "session_id"]) if lake.is_retired("messages", day) else None
        if ids is not None and (identifier in ids["message_id"] or identifier in ids["session_id"]):
            return day
    return None


@dataclass(frozen=True)
class DayLog:
    """The log of a day: `text` is that of the file, or None; `silences` are a summary line and a line for each window
    without observations."""

    day: date
    text: str | None
    silences: Sequence[str]


def day_log(settings: Settings, day: date | None = None) -> DayLog | None:
    """The log of the day, by default the latest. None if there is neither a log nor a reason for its absence."""
    wanted = f"{day}" if day else "????-??-??"
    found = sorted(settings.log_dir.glob(f"{wanted}.md")) or sorted(settings.log_dir.glob(f"archive/{wanted}.md"))
    shown = date.fromisoformat(found[-1].stem) if found else day
    if shown is None:
        return None
    reasons = list(_silences(settings, shown))
    if not found and not reasons:
        return None
    return DayLog(shown, found[-1].read_text("utf-8", "replace") if found else None, reasons)


def days_with_logs(settings: Settings) -> list[date]:
    """The days that have a log, newest first."""
    names = {path.stem for folder in (".", "archive") for path in (settings.log_dir / folder).glob("????-??-??.md")}
    return sorted(map(date.fromisoformat, names), reverse=True)


def without_fences(text: str) -> str:
    return _FENCE.sub("", text)


def _silences(settings: Settings, day: date) -> Iterator[str]:
    """A line with the number of windows without observations, and a line for each."""
    lake = Lake.from_settings(settings)
    found = silences(lake, Catalogue(lake, settings), [day])
    if not found:
        return
    windows = lake.read("windows", [day], ["day"]).height + sum(not silence.is_window for silence in found)
    yield f"No observations came from {len(found)} of the {windows} windows of {day}:"
    for silence in found:
        at = f"{silence.started_at.astimezone(settings.zone):%H:%M} " if silence.started_at else ""
        detail = f" ({silence.detail})" if silence.detail else ""
        yield f"  {one_line(f'{at}{clip(silence.session, NAME)}: {silence.reason}{detail}')}"
