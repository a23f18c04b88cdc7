"""Observed windows as rows of `segments` and `observations`, and the same rows as entries of the daily log.

`better` keeps a model's earlier rows from being replaced by a worse answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.lake.rows import ObservationRow, SegmentRow, SessionRow, WindowRow
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.flags import UNGROUNDED, UNGROUNDED_SPECIFICS
from memory_pipeline.observations.narrative import title
from memory_pipeline.observations.types import Fact, Segment, observation_id, row_id
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_of, day_spoken_of
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.daily_log.render import LogFact, LogSegment, LogWindow

_TASKS = re.compile(r"primary:\s*(.+?)(?:[\s;,.]*\bsecondary:\s*(.*))?", re.I | re.S)
_NONE = re.compile(r"\W*(?:none|n/?a|nothing|no other\b.*)?\W*", re.I)


class Origin(NamedTuple):
    """The origin and the speaker of an observation."""

    cwd: str | None = None
    project: str | None = None
    owner: str | None = None

    def of_older(self, row: ObservationRow) -> ObservationRow:
        """An earlier row, completed with this origin where it has none."""
        return row | {"cwd": self.cwd, "project": self.project, "owner": row["owner"] or self.owner}


UNKNOWN = Origin()


@dataclass
class Rows:
    """The rows of one or more windows."""

    segments: list[SegmentRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)

    def add(self, other: Rows) -> None:
        self.segments += other.segments
        self.observations += other.observations

    def frames(self) -> dict[str, pl.DataFrame]:
        return {
            "segments": pl.DataFrame(self.segments, schema=TABLES["segments"].columns),
            "observations": pl.DataFrame(self.observations, schema=TABLES["observations"].columns),
        }


def rows_of(
    window: WindowRow, segments: Sequence[Segment], observer: str, zone: ZoneInfo, origin: Origin = UNKNOWN
) -> Rows:
    """The rows of one window, which is a row of `windows`."""
    found = Rows()
    for position, segment in enumerate(segments):
        row = _segment_row(window, position, segment, segment.observer or observer)
        found.segments.append(row)
        found.observations += [_observation_row(row, fact, zone, origin) for fact in segment.facts]
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


def _observation_row(segment: SegmentRow, fact: Fact, zone: ZoneInfo, origin: Origin) -> ObservationRow:
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
        "cwd": origin.cwd,
        "project": origin.project,
        "owner": origin.owner,
    }


def log_window(window: WindowRow, rows: Rows, session: SessionRow, settings: Settings) -> LogWindow:
    """The window for the day's log; segments without facts are left out."""
    zone = settings.zone
    facts: dict[str, list[LogFact]] = {}
    for o in rows.observations:
        clock = clock_of(o["observed_at"], zone, o["untimed"])
        doubt = " (nothing that was said carries it)" if {UNGROUNDED, UNGROUNDED_SPECIFICS} & set(o["flags"]) else ""
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
        current_task=_task(reported[-1]) if reported else window["current_task"],
        marks=settings.marks,
        project=session["project"],
    )


def _task(reported: str) -> str:
    """The task of a model's "Primary: … Secondary: …" for the log, without the label and without an empty second
    part."""
    found = _TASKS.fullmatch(reported.strip())
    if not found:
        return reported
    return f"{found[1]}; also: {found[2]}" if found[2] and not _NONE.fullmatch(found[2]) else found[1]


def better(found: Rows, before: Rows, message_ids: Sequence[str], start: int = 0) -> Rows:
    """The new rows; for messages whose answer has an invalid format, earlier rows from a valid answer.

    If the session continued since, only the new rows count. `message_ids` are those of the window, in order; the
    request covered those from `start` on, and its facts may also have evidence in earlier ones.
    """
    if all(s["parsed"] for s in found.segments):
        return found
    place = {message: i for i, message in enumerate(message_ids)}
    topics = [_Topic.from_row(s, rows, place) for rows in (before, found) for s in rows.segments]
    good, new = topics[: len(before.segments)], topics[len(before.segments) :]
    by_message = {i: topic for topic in new for i in topic.at}
    kept_of = {i: topic for topic in good if topic.is_good for i in topic.at}
    chosen = [kept_of.get(i, topic) if not topic.row["parsed"] else topic for i, topic in sorted(by_message.items())]
    kept, known = Rows(), set[str]()
    for topic, run in _runs(chosen, start):
        facts = [o for o in topic.facts_of(run, place) if o["observation_id"] not in known]
        known.update(o["observation_id"] for o in facts)
        segment_id = topic.row["segment_id"]
        first, last = message_ids[run.start], message_ids[run.stop - 1]
        if run.start != topic.at.start:
            segment_id = row_id("s", topic.row["dedupe_key"], first)
        kept.segments.append(
            topic.row
            | {
                "first_message_id": first,
                "last_message_id": last,
                "segment_id": segment_id,
                "position": len(kept.segments),
            }
        )
        kept.observations += [o | {"segment_id": segment_id} for o in facts]
    return kept


@dataclass(frozen=True)
class _Topic:
    """A stored segment with its observations, and the positions of its messages."""

    row: SegmentRow
    facts: Sequence[ObservationRow]
    at: range
    is_good: bool
    """Whether the model's answer had the format, and all messages that the segment refers to still exist."""

    @classmethod
    def from_row(cls, row: SegmentRow, rows: Rows, place: Mapping[str, int]) -> _Topic:
        facts = [o for o in rows.observations if o["segment_id"] == row["segment_id"]]
        ends = (row["first_message_id"], row["last_message_id"])
        exists = all(m in place for m in (*ends, *(e["message_id"] for o in facts for e in o["evidence"])))
        at = range(place[ends[0]], place[ends[1]] + 1) if exists else range(0)
        return cls(row, facts, at, bool(row["parsed"] and row["answer"] and at))

    def facts_of(self, run: range, place: Mapping[str, int]) -> Iterator[ObservationRow]:
        """All facts, or those with evidence in this part of the segment."""
        for fact in self.facts:
            if run == self.at or any(place[e["message_id"]] in run for e in fact["evidence"]):
                yield fact


def _runs(chosen: Sequence[_Topic], start: int) -> Iterator[tuple[_Topic, range]]:
    """Runs of consecutive positions with the same segment; the first position is `start`."""
    for _, same in groupby(chosen, key=id):
        topics = list(same)
        yield topics[0], range(start, start + len(topics))
        start += len(topics)
