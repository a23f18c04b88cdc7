"""Observation of the windows of a day: windows of one session in order, several sessions at once if the observer allows
it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from memory_pipeline.lake.rows import MessageRow, ObservationRow, SegmentRow, SpanRow, WindowRow, typed_rows
from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.llm.errors import BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError
from memory_pipeline.observations.rows import AlreadyObserved, Rows, already_observed
from memory_pipeline.observations.types import (
    Context,
    Fact,
    ImagePlace,
    Observer,
    Segment,
    WindowMessage,
    observation_id,
)
from memory_pipeline.sessions.quoting_cues import IMAGE

VERSION = "13"
"""Increase it when the same messages would give other observations."""
Stopped = BudgetReachedError | ModelMisconfiguredError | ModelUnavailableError
"""Errors for which an observer postpones a window."""


@dataclass(frozen=True)
class Job:
    """A row of `windows` to be observed, with its messages."""

    window: WindowRow
    messages: list[WindowMessage]
    project: str
    before: Rows = field(default_factory=Rows)
    """The stored rows of the session's day, of any window."""

    @property
    def own_rows(self) -> Rows:
        """The stored rows of this window only."""
        key, before = self.window["dedupe_key"], self.before
        segments = [row for row in before.segments if row["dedupe_key"] == key]
        return Rows(segments, [row for row in before.observations if row["dedupe_key"] == key])


@dataclass(frozen=True)
class WindowOutcome:
    """A window's segments, or the reason why there are none yet."""

    job: Job
    segments: list[Segment]
    """Segments of the messages that were not observed before."""
    left: Stopped | None = None
    known: AlreadyObserved = field(default_factory=AlreadyObserved)


def jobs_of(lake: Lake, day: date) -> list[list[Job]]:
    """The windows to be observed, one list per session, in the order in which they began."""
    return _jobs(lake, day, pl.col("observed"))


def short_jobs_of(lake: Lake, day: date) -> list[Job]:
    """The windows of sessions so short that only the user's statements are kept."""
    return [job for jobs in _jobs(lake, day, pl.col("rules_only").fill_null(False)) for job in jobs]


def _jobs(lake: Lake, day: date, chosen: pl.Expr) -> list[list[Job]]:
    windows = lake.read("windows", [day]).filter(chosen)
    # withdrawn messages give no facts
    valid = lake.read("messages", [day]).filter(~pl.col("voided").fill_null(False))
    messages = valid.partition_by("dedupe_key", as_dict=True)
    places = lake.read("sessions", [day], ["session_id", "cwd", "project"]).iter_rows()
    projects = {session: project or Path(cwd or "").name for session, cwd, project in places}
    before: dict[str, Rows] = defaultdict(Rows)
    for segment in typed_rows(lake.read("segments", [day]), SegmentRow):
        before[segment["session_id"]].segments.append(segment)
    for observation in typed_rows(lake.read("observations", [day]), ObservationRow):
        before[observation["session_id"]].observations.append(observation)
    sessions: dict[str, list[Job]] = {}
    for window in typed_rows(windows, WindowRow):
        session = window["session_id"]
        found = messages.get((window["dedupe_key"],))
        if found is None:
            raise DamagedTableError(
                f"`messages` of {day} lacks a window that `windows` has. Materialize `sessions`, `messages` and "
                f"`windows` of the day again, or use `memory run --from {day} --to {day}`."
            )
        job = Job(window, window_messages(found), projects.get(session, ""), before[session])
        sessions.setdefault(session, []).append(job)
    return list(sessions.values())


def observe(sessions: Sequence[Sequence[Job]], observer: Observer) -> list[WindowOutcome]:
    """The outcome of every window. After an error the observer is still asked for cached answers."""
    if observer.at_once == 1 or len(sessions) == 1:
        return [outcome for jobs in sessions for outcome in observe_session(jobs, observer)]
    with ThreadPoolExecutor(observer.at_once, thread_name_prefix="observe") as pool:
        try:
            found = list(pool.map(lambda jobs: observe_session(jobs, observer), sessions))
        except BaseException:  # also an interrupt: the pool waits for its threads
            observer.stop()
            raise
    return [outcome for outcomes in found for outcome in outcomes]


def observe_session(jobs: Iterable[Job], observer: Observer) -> list[WindowOutcome]:
    found: list[WindowOutcome] = []
    earlier: list[tuple[str, Fact]] = []
    for job in jobs:
        key, known = job.window["dedupe_key"], observed_part(job, observer)
        context = context_of(job, known, earlier)
        try:
            is_known = bool(known.messages) and known.messages == len(job.messages)
            segments = [] if is_known else observer.observe(job.messages, context)
        except (BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError) as stopped:
            found.append(WindowOutcome(job, [], stopped, known))
            continue
        found.append(WindowOutcome(job, segments, None, known))
        earlier += known.facts
        earlier += [(observation_id(key, fact), fact) for segment in segments for fact in segment.facts]
    return found


def observed_part(job: Job, observer: Observer) -> AlreadyObserved:
    """The part of the window that need not be observed again."""
    if not observer.is_incremental:
        return AlreadyObserved()
    return already_observed(job.before, job.messages, basis_version(observer), job.window["dedupe_key"])


def basis_version(observer: Observer) -> str:
    return f"{VERSION} {observer.version}"


def context_of(job: Job, known: AlreadyObserved, earlier: Iterable[tuple[str, Fact]]) -> Context:
    """The context for the observer; `earlier` are facts of earlier windows of the session's day."""
    window = job.window
    return Context(
        window["day"], window["dedupe_key"], job.project, tuple(earlier), observed=known.messages, known=known.facts
    )


def window_messages(frame: pl.DataFrame) -> list[WindowMessage]:
    """Rows of `messages` as an observer sees them, in order of time."""
    ordered = frame.sort("said_at", "source_line", maintain_order=True)
    return [_window_message(row) for row in typed_rows(ordered, MessageRow)]


def _window_message(row: MessageRow) -> WindowMessage:
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
    """Spans of a user's text that were not typed: pasted text and marks of images."""
    pasted = [(span["start"], span["end"]) for span in quoted]
    marks = (mark.span() for mark in IMAGE.finditer(text))
    alone = [mark for mark in marks if not any(start < mark[1] and mark[0] < end for start, end in pasted)]
    return tuple(sorted([*pasted, *alone]))
