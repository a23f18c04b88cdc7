"""A day's rows of `segments` and `observations`, and the day's log."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date
from typing import Any, Self

import polars as pl

from memory_pipeline.files.daily_log import LogFact, LogSegment, LogWindow, write_daily_log
from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.observations.extractive import ExtractiveObserver
from memory_pipeline.observations.narrative import title
from memory_pipeline.observations.observer import Fact, Observer, Said, Segment
from memory_pipeline.schemas import TABLES
from memory_pipeline.sessions.quoting_cues import IMAGE
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import estimate

VERSION = "3"
"""Raise it when the same messages would give other observations."""


class ObservationsStage:
    """Observes the windows of a day that are to be observed and writes them into the daily log."""

    tables = ("segments", "observations")
    is_complete = True

    def __init__(self, settings: Settings, lake: Lake, observer: Observer) -> None:
        self.settings, self.lake, self.observer = settings, lake, observer
        self.log_blocks_edited: list[str] = []
        """Blocks of the daily log that a person has changed and that were therefore left alone."""

    @classmethod
    def of(cls, settings: Settings, lake: Lake) -> Self:
        """With the observer that the settings ask for. It goes by words alone: vectors find a little more
        (see `weights.json`) and cost a minute per thousand messages."""
        return cls(settings, lake, ExtractiveObserver(settings.observation_budget))

    def fingerprint(self, day: date) -> str:
        inputs = [self.lake.digest(table, [day]) for table in ("messages", "windows")]
        return fingerprint_of(VERSION, self.observer.name, self.settings.observation_budget, *inputs)

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self.tables}
        # what the person took back is no fact
        standing = self.lake.read("messages", [day]).filter(~pl.col("voided").fill_null(False))
        messages = standing.partition_by("dedupe_key", as_dict=True)
        logs = []
        for window in self.lake.read("windows", [day]).filter(pl.col("observed")).iter_rows(named=True):
            segments = self.observer.observe(_said(messages[(window["dedupe_key"],)]))
            for position, segment in enumerate(segments):
                _add_segment(rows, window, position, segment, self.observer.name)
            logs.append((window, segments))
        self._write_log(day, logs)
        return {name: pl.DataFrame(rows[name], schema=TABLES[name].columns) for name in self.tables}

    def _write_log(self, day: date, logs: Sequence[tuple[dict[str, Any], list[Segment]]]) -> None:
        sessions = {s["session_id"]: s for s in self.lake.read("sessions", [day]).iter_rows(named=True)}
        windows = [self._log_window(w, segments, sessions[w["session_id"]]) for w, segments in logs]
        result = write_daily_log(self.settings.daily_log(day), day, windows, backups=self.settings.backups)
        self.log_blocks_edited += result.edited_by_hand

    def _log_window(self, window: dict[str, Any], segments: list[Segment], session: dict[str, Any]) -> LogWindow:
        zone = self.settings.zone
        return LogWindow(
            key=window["dedupe_key"],
            session_name=session["name"],
            time=f"{window['started_at'].astimezone(zone):%H:%M}",
            trigger=window["trigger"],
            files_read=len(session["files_read"]),
            files_modified=len(session["files_modified"]),
            segments=[
                LogSegment(
                    title=clip(title(s.narrative), 70),
                    narrative=s.narrative,
                    facts=[LogFact(f.priority, f"{f.observed_at.astimezone(zone):%H:%M}", f.text) for f in s.facts],
                )
                for s in segments
                if s.facts
            ],
            current_task=window["current_task"],
        )


def _said(frame: pl.DataFrame) -> list[Said]:
    ordered = frame.sort("said_at", "source_line", maintain_order=True)
    columns = ordered.select("message_id", "role", "said_at", "text", "is_error", "quoted")
    return [
        Said(message_id, role, said_at, text, is_error, _not_typed(text, quoted or ()))
        for message_id, role, said_at, text, is_error, quoted in columns.iter_rows()
    ]


def _not_typed(text: str, quoted: Sequence[dict[str, int]]) -> tuple[tuple[int, int], ...]:
    """What a person pasted, with the marks that stand for images."""
    pasted = [(span["start"], span["end"]) for span in quoted]
    marks = (mark.span() for mark in IMAGE.finditer(text))
    alone = [mark for mark in marks if not any(start < mark[1] and mark[0] < end for start, end in pasted)]
    return tuple(sorted([*pasted, *alone]))


def _add_segment(
    rows: dict[str, list[dict[str, Any]]], window: dict[str, Any], position: int, segment: Segment, observer: str
) -> None:
    place = {key: window[key] for key in ("day", "dedupe_key", "session_id")}
    segment_id = _id("s", window["dedupe_key"], segment.first_message_id)
    rows["segments"].append(
        place
        | {
            "segment_id": segment_id,
            "position": position,
            "narrative": segment.narrative,
            "first_message_id": segment.first_message_id,
            "last_message_id": segment.last_message_id,
        }
    )
    for fact in segment.facts:
        rows["observations"].append(place | {"segment_id": segment_id, "observer": observer} | _fact_row(fact, window))


def _fact_row(fact: Fact, window: dict[str, Any]) -> dict[str, Any]:
    spans = [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence]
    return {
        "observation_id": _id("o", window["dedupe_key"], spans, fact.text),
        "priority": fact.priority,
        "kind": fact.kind,
        "observed_at": fact.observed_at,
        "referenced_at": None,
        "text": fact.text,
        "evidence": spans,
        "trust": fact.trust,
        "flags": list(fact.flags),
        "tokens": estimate(fact.text),
    }


def _id(prefix: str, *parts: object) -> str:
    return f"{prefix}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"
