"""Observed windows as rows of `segments` and `observations`, which earlier rows are kept, and entries of the daily log.

`better` keeps a model's earlier rows from being replaced by a worse answer. When a session continues, only the messages
added since are sent to the model: each segment of a model has a `basis`, a hash of the messages that it covers, of
everything that decides how they are observed, and of its observations. The leading segments of a window whose basis is
unchanged are kept with their ids; the messages after them are new. So everything from a withdrawn message on is
observed again, and a change of model, prompt or setting observes the whole window again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.lake.rows import ObservationRow, SegmentRow, SessionRow, WindowRow
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.quotes.segmentation import title
from memory_pipeline.observations.types import (
    DOUBTED,
    ENDED,
    UNGROUNDED,
    UNGROUNDED_SPECIFICS,
    EvidenceSpan,
    Fact,
    Segment,
    WindowMessage,
    observation_id,
    row_id,
)
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_of, day_spoken_of
from memory_pipeline.text.priorities import LOW
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.daily_log.render import LogFact, LogSegment, LogWindow

IS_CERTAIN = pl.col("flags").list.set_intersection(list(DOUBTED)).list.len().fill_null(0) == 0
"""Whether nothing excludes an observation from being said again."""


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


@dataclass(frozen=True)
class AlreadyObserved:
    """The leading part of a window that was observed before."""

    rows: Rows = field(default_factory=Rows)
    messages: int = 0
    """The number of the window's messages that were observed before."""

    @property
    def facts(self) -> tuple[tuple[str, Fact], ...]:
        return tuple((row["observation_id"], _fact_of(row)) for row in self.rows.observations)

    def continued(self, found: Rows, ended: Collection[str]) -> Rows:
        """These rows and those of the new messages; rows in `ended` get the flag `ended` and low priority."""
        known = {row["observation_id"] for row in self.rows.observations}
        offset = len(self.rows.segments)
        return Rows(
            [*self.rows.segments, *(s | {"position": offset + s["position"]} for s in found.segments)],
            [
                *(_mark_ended(row) if row["observation_id"] in ended else row for row in self.rows.observations),
                *(row for row in found.observations if row["observation_id"] not in known),
            ],
        )


def already_observed(before: Rows, messages: Sequence[WindowMessage], version: str, window: str) -> AlreadyObserved:
    """The part of a window that was observed before, from the stored rows of its session and day.

    The rows may belong to another window, as a compaction cuts a session differently. Ids stay the same.
    """
    place = {message.message_id: i for i, message in enumerate(messages)}
    facts_of = _by_segment(before)
    kept: list[SegmentRow] = []
    end = 0
    for segment in sorted(before.segments, key=lambda s: place.get(s["first_message_id"], len(messages))):
        if place.get(segment["first_message_id"]) != end:
            continue
        last = place.get(segment["last_message_id"], -1)
        if segment["basis"] is None or segment["basis"] != _basis(segment, facts_of, messages[end : last + 1], version):
            break
        kept.append(segment)
        end = last + 1
    if end < len(messages):  # unparsed answers are requested again, together with the new messages
        good = next((i for i, segment in enumerate(kept) if not segment["parsed"]), len(kept))
        kept = kept[:good]
    while kept:
        end = place[kept[-1]["last_message_id"]] + 1
        facts = [fact for segment in kept for fact in facts_of[segment["segment_id"]]]
        if all(place.get(span["message_id"], end) < end for fact in facts for span in fact["evidence"]):
            segments = [s | {"dedupe_key": window, "position": i} for i, s in enumerate(kept)]
            return AlreadyObserved(Rows(segments, [o | {"dedupe_key": window} for o in facts]), end)
        kept.pop()
    return AlreadyObserved()


def with_basis(rows: Rows, messages: Sequence[WindowMessage], version: str) -> Rows:
    """The rows of a window with these messages, where each new segment has its basis."""
    place, facts_of = {message.message_id: i for i, message in enumerate(messages)}, _by_segment(rows)

    def of(segment: SegmentRow) -> str:
        ends = place[segment["first_message_id"]], place[segment["last_message_id"]] + 1
        return _basis(segment, facts_of, messages[slice(*ends)], version)

    return Rows([s if s["basis"] else s | {"basis": of(s)} for s in rows.segments], rows.observations)


def _by_segment(rows: Rows) -> Mapping[str, list[ObservationRow]]:
    found: dict[str, list[ObservationRow]] = defaultdict(list)
    for row in rows.observations:
        found[row["segment_id"]].append(row)
    return found


def _basis(
    segment: SegmentRow,
    facts_of: Mapping[str, list[ObservationRow]],
    messages: Sequence[WindowMessage],
    version: str,
) -> str:
    """A hash of the segment's messages and of its observations, as the table of observations may be lost alone."""
    total = hashlib.sha256(version.encode())
    for m in messages:
        shown = (m.message_id, m.role, m.said_at.isoformat(), m.untimed, m.text, m.is_error, m.quoted, m.tool_name)
        total.update(repr((*shown, len(m.images))).encode())
    total.update(repr(sorted(o["observation_id"] for o in facts_of[segment["segment_id"]])).encode())
    return total.hexdigest()


def _fact_of(row: ObservationRow) -> Fact:
    return Fact(
        text=row["text"],
        priority=row["priority"],
        kind=row["kind"],
        observed_at=row["observed_at"],
        trust=row["trust"],
        evidence=tuple(EvidenceSpan(s["message_id"], s["start"], s["end"]) for s in row["evidence"]),
        flags=tuple(row["flags"]),
        untimed=row["untimed"],
    )


def _mark_ended(row: ObservationRow) -> ObservationRow:
    return row if ENDED in row["flags"] else row | {"priority": LOW, "flags": [*row["flags"], ENDED]}
