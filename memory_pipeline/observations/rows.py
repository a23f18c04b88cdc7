"""Observed windows as rows of `segments` and `observations`, and such rows as the day's log shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.files.daily_log import LogFact, LogSegment, LogWindow
from memory_pipeline.observations.grounding import UNGROUNDED, UNGROUNDED_SPECIFICS
from memory_pipeline.observations.narrative import title
from memory_pipeline.observations.observer import Fact, Segment, observation_id, row_id
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import day_spoken_of
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate

Row = dict[str, Any]
OF_SEGMENT = (
    *("narrative", "title", "first_message_id", "last_message_id", "parsed", "problem", "answer"),
    *("current_task", "suggested_response"),
)
"""Columns that are a segment's own."""


@dataclass
class Rows:
    """Rows of one or more windows."""

    segments: list[Row] = field(default_factory=list)
    observations: list[Row] = field(default_factory=list)

    def add(self, other: Rows) -> None:
        self.segments += other.segments
        self.observations += other.observations

    def frames(self) -> dict[str, pl.DataFrame]:
        rows = {"segments": self.segments, "observations": self.observations}
        return {name: pl.DataFrame(rows[name], schema=TABLES[name].columns) for name in rows}


def rows_of(window: Mapping[str, Any], segments: Sequence[Segment], observer: str, zone: ZoneInfo) -> Rows:
    """The rows of one window, a row of `windows`."""
    place = {key: window[key] for key in ("day", "dedupe_key", "session_id")} | {"observer": observer}
    found = Rows()
    for position, segment in enumerate(segments):
        segment_id = row_id("s", window["dedupe_key"], segment.first_message_id)
        row = {name: getattr(segment, name) for name in OF_SEGMENT} | {"used": list(segment.used)}
        found.segments.append(place | {"segment_id": segment_id, "position": position} | row)
        for fact in segment.facts:
            row = {"segment_id": segment_id, "observation_id": observation_id(window["dedupe_key"], fact)}
            found.observations.append(place | row | _of_fact(fact, zone))
    return found


def _of_fact(fact: Fact, zone: ZoneInfo) -> Row:
    day = day_spoken_of(fact.text, fact.observed_at.astimezone(zone).date())
    return {
        "priority": fact.priority,
        "kind": fact.kind,
        "observed_at": fact.observed_at,
        "referenced_at": datetime.combine(day, time.min, zone).astimezone(UTC) if day else None,
        "text": fact.text,
        "evidence": [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence],
        "trust": fact.trust,
        "flags": list(fact.flags),
        "tokens": estimate(fact.text),
    }


def log_window(window: Mapping[str, Any], rows: Rows, session: Mapping[str, Any], settings: Settings) -> LogWindow:
    """How the day's log shows a window; segments without facts are left out."""
    zone = settings.zone
    facts: dict[str, list[LogFact]] = {}
    for o in rows.observations:
        clock = f"{o['observed_at'].astimezone(zone):%H:%M}"
        doubt = " (nothing that was said carries it)" if {UNGROUNDED, UNGROUNDED_SPECIFICS} & set(o["flags"]) else ""
        facts.setdefault(o["segment_id"], []).append(LogFact(o["priority"], clock, o["text"] + doubt))
    told = [s["current_task"] for s in rows.segments if s["current_task"]]
    return LogWindow(
        key=window["dedupe_key"],
        session_name=session["name"],
        time=f"{window['started_at'].astimezone(zone):%H:%M}",
        trigger=window["trigger"],
        files_read=len(session["files_read"]),
        files_modified=len(session["files_modified"]),
        segments=[
            LogSegment(clip(s["title"] or title(s["narrative"]), 70), s["narrative"], facts[s["segment_id"]])
            for s in rows.segments
            if s["segment_id"] in facts
        ],
        current_task=told[-1] if told else window["current_task"],
        marks=settings.marks,
    )
