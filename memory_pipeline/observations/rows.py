"""Observed windows as rows of `segments` and `observations`, and the same rows as entries of the daily log.

`better` keeps a model's earlier rows from being replaced by a worse answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.lake.rows import ObservationRow, SegmentRow, SessionRow, WindowRow
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.flags import UNGROUNDED, UNGROUNDED_SPECIFICS
from memory_pipeline.observations.quotes.segmentation import title
from memory_pipeline.observations.types import Fact, Segment, observation_id, row_id
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_of, day_spoken_of
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.daily_log.render import LogFact, LogSegment, LogWindow


@dataclass
class Rows:
    """The rows of one or more windows."""

    segments: list[SegmentRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)

    def located(self, cwd: str | None, project: str | None, owner: str | None) -> Rows:
        """The rows with the folder and project of their session, and with this owner unless they have one."""
        rows = [o | {"cwd": cwd, "project": project, "owner": o["owner"] or owner} for o in self.observations]
        return Rows(self.segments, rows)

    def frames(self) -> dict[str, pl.DataFrame]:
        return {
            "segments": pl.DataFrame(self.segments, schema=TABLES["segments"].columns),
            "observations": pl.DataFrame(self.observations, schema=TABLES["observations"].columns),
        }


def rows_of(window: WindowRow, segments: Sequence[Segment], observer: str, zone: ZoneInfo) -> Rows:
    """The rows of one window, without folder and project."""
    found = Rows()
    for position, segment in enumerate(segments):
        row = _segment_row(window, position, segment, segment.observer or observer)
        found.segments.append(row)
        found.observations += [_observation_row(row, fact, zone) for fact in segment.facts]
    return found


def _segment_row(window: WindowRow, position: int, segment: Segment, observer: str) -> SegmentRow:
    return {
        "day": window["day"],
        "segment_id": row_id("s", window["dedupe_key"], segment.first_message_id),
        "dedupe_key": window["dedupe_key"],
        "session_id": window["session_id"],
        "position": position,
        "narrative": segment.narrative,
        "first_message_id": segment.first_message_id,
        "last_message_id": segment.last_message_id,
        "title": segment.title,
        "observer": observer,
        "parsed": segment.parsed,
        "problem": segment.problem,
        "answer": segment.answer,
        "current_task": segment.current_task,
        "suggested_response": segment.suggested_response,
        "used": list(segment.used),
        "basis": None,
        "times_written": segment.times_written,
        "times_invented": segment.times_invented,
    }


def _observation_row(segment: SegmentRow, fact: Fact, zone: ZoneInfo) -> ObservationRow:
    day = day_spoken_of(fact.text, fact.observed_at.astimezone(zone).date())
    return {
        "day": segment["day"],
        "observation_id": observation_id(segment["dedupe_key"], fact),
        "segment_id": segment["segment_id"],
        "dedupe_key": segment["dedupe_key"],
        "session_id": segment["session_id"],
        "observer": segment["observer"],
        "priority": fact.priority,
        "kind": fact.kind,
        "observed_at": fact.observed_at,
        "referenced_at": datetime.combine(day, time.min, zone).astimezone(UTC) if day else None,
        "text": fact.text,
        "evidence": [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence],
        "trust": fact.trust,
        "flags": list(fact.flags),
        "tokens": estimate(fact.text),
        "untimed": fact.untimed,
        "trace": fact.trace,
        "cwd": None,
        "project": None,
        "owner": None,
    }


def log_window(window: WindowRow, rows: Rows, session: SessionRow, settings: Settings) -> LogWindow:
    """The window for the day's log; segments without facts are left out."""
    zone = settings.zone
    facts: dict[str, list[LogFact]] = {}
    for o in rows.observations:
        clock = clock_of(o["observed_at"], zone, o["untimed"])
        doubt = " (not supported by the session)" if {UNGROUNDED, UNGROUNDED_SPECIFICS} & set(o["flags"]) else ""
        facts.setdefault(o["segment_id"], []).append(LogFact(o["priority"], clock, o["text"] + doubt))
    reported = [s["current_task"] for s in rows.segments if s["current_task"]]
    return LogWindow(
        key=window["dedupe_key"],
        session_name=session["name"],
        time=clock_of(window["started_at"], zone, window["untimed"]),
        trigger=window["trigger"],
        files_read=len(window["files_read"] or ()),
        files_modified=len(window["files_modified"] or ()),
        segments=[
            LogSegment(clip(s["title"] or title(s["narrative"]), 70), s["narrative"], facts[s["segment_id"]])
            for s in rows.segments
            if s["segment_id"] in facts
        ],
        current_task=reported[-1] if reported else window["current_task"],
        marks=settings.marks,
        project=session["project"],
    )


def better(found: Rows, before: Rows, message_ids: Sequence[str], start: int = 0) -> Rows:
    """The new rows, or a model's earlier ones if only its earlier answer has the requested format.

    `message_ids` are those of the window, in order; the request covered those from `start` on. The earlier rows must
    cover the same messages, and all messages that they refer to must still exist.
    """
    if all(segment["parsed"] for segment in found.segments):
        return found
    places = {message: place for place, message in enumerate(message_ids)}
    ordered = sorted(before.segments, key=lambda segment: segment["position"])
    earlier = [segment for segment in ordered if places.get(segment["first_message_id"], -1) >= start]
    if not earlier or not all(segment["parsed"] and segment["answer"] for segment in earlier):
        return found
    ids = {segment["segment_id"] for segment in earlier}
    observations = [o for o in before.observations if o["segment_id"] in ids]
    ends = [message for s in earlier for message in (s["first_message_id"], s["last_message_id"])]
    evidence = (span["message_id"] for o in observations for span in o["evidence"])
    is_whole = (ends[0], ends[-1]) == (message_ids[start], message_ids[-1])
    if not is_whole or not places.keys() >= {*ends, *evidence}:
        return found
    return Rows([s | {"position": i} for i, s in enumerate(earlier)], observations)
