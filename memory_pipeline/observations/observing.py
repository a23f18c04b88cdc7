"""Observes the windows of a day: those of one session in order, several sessions at once where the observer may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from memory_pipeline.lake.rows import MessageRow, SessionRow, SpanRow, WindowRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.errors import BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError
from memory_pipeline.observations.model import (
    Context,
    Fact,
    ImagePlace,
    Observer,
    Segment,
    WindowMessage,
    observation_id,
)
from memory_pipeline.sessions.quoting_cues import IMAGE

Stopped = BudgetReachedError | ModelMisconfiguredError | ModelUnavailableError
"""Why an observer may leave a window for later."""


@dataclass(frozen=True)
class Job:
    """A row of `windows` that is to be observed, with its messages."""

    window: WindowRow
    messages: list[WindowMessage]
    project: str


@dataclass(frozen=True)
class WindowOutcome:
    """A window's segments, or why there are none yet."""

    job: Job
    segments: list[Segment]
    left: Stopped | None = None


def jobs_of(lake: Lake, day: date) -> list[list[Job]]:
    """The windows to be observed of each session, in the order in which they began."""
    return _jobs(lake, day, pl.col("observed"))


def short_jobs_of(lake: Lake, day: date) -> list[Job]:
    """The windows of sessions that are too short to be observed for more than rules and corrections."""
    return [job for jobs in _jobs(lake, day, pl.col("rules_only").fill_null(False)) for job in jobs]


def _jobs(lake: Lake, day: date, chosen: pl.Expr) -> list[list[Job]]:
    windows = lake.read("windows", [day]).filter(chosen)
    standing = lake.read("messages", [day]).filter(~pl.col("voided").fill_null(False))  # what was retracted is no fact
    messages = standing.partition_by("dedupe_key", as_dict=True)
    folders = {s["session_id"]: Path(s["cwd"] or "").name for s in typed_rows(lake.read("sessions", [day]), SessionRow)}
    sessions: dict[str, list[Job]] = {}
    for window in typed_rows(windows, WindowRow):
        session = window["session_id"]
        job = Job(window, said(messages[(window["dedupe_key"],)]), folders.get(session, ""))
        sessions.setdefault(session, []).append(job)
    return list(sessions.values())


def observe(sessions: Sequence[Sequence[Job]], observer: Observer) -> list[WindowOutcome]:
    """What came of every window. An observer that stops is asked on: what it knows already it may still tell."""
    if observer.at_once == 1 or len(sessions) == 1:
        return [outcome for jobs in sessions for outcome in observe_session(jobs, observer)]
    with ThreadPoolExecutor(observer.at_once, thread_name_prefix="observe") as pool:
        try:
            found = list(pool.map(lambda jobs: observe_session(jobs, observer), sessions))
        except BaseException:  # also an interrupt; the pool waits for its threads
            observer.stop()
            raise
    return [outcome for outcomes in found for outcome in outcomes]


def observe_session(jobs: Iterable[Job], observer: Observer) -> list[WindowOutcome]:
    found: list[WindowOutcome] = []
    earlier: list[tuple[str, Fact]] = []
    for job in jobs:
        key = job.window["dedupe_key"]
        context = Context(job.window["day"], key, job.project, tuple(earlier))
        try:
            segments = observer.observe(job.messages, context)
        except (BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError) as stopped:
            found.append(WindowOutcome(job, [], stopped))
            continue
        found.append(WindowOutcome(job, segments))
        earlier += [(observation_id(key, fact), fact) for segment in segments for fact in segment.facts]
    return found


def said(frame: pl.DataFrame) -> list[WindowMessage]:
    """Rows of `messages` as an observer sees them, in the order in which they were said."""
    ordered = frame.sort("said_at", "source_line", maintain_order=True)
    return [_said(row) for row in typed_rows(ordered, MessageRow)]


def _said(row: MessageRow) -> WindowMessage:
    return WindowMessage(
        message_id=row["message_id"],
        role=row["role"],
        said_at=row["said_at"],
        text=row["text"],
        is_error=row["is_error"],
        quoted=_not_typed(row["text"], row["quoted"] or ()),
        tool_name=row["tool_name"],
        answer_to=row["answer_to"],
        answered=row["answered"],
        images=tuple(
            ImagePlace(row["source_file"], i["line"], i["block"], i["media_type"]) for i in row["images"] or ()
        ),
        untimed=row["untimed"],
    )


def _not_typed(text: str, quoted: Sequence[SpanRow]) -> tuple[tuple[int, int], ...]:
    """What a user pasted, with the marks that stand for images."""
    pasted = [(span["start"], span["end"]) for span in quoted]
    marks = (mark.span() for mark in IMAGE.finditer(text))
    alone = [mark for mark in marks if not any(start < mark[1] and mark[0] < end for start, end in pasted)]
    return tuple(sorted([*pasted, *alone]))
