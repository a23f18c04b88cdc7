"""The stage that writes a day's rows of `segments` and `observations`, and the daily log.

Windows of one session are observed in order, several sessions at once if the observer allows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self

import polars as pl

from memory_pipeline.lake.rows import MessageRow, ObservationRow, SegmentRow, SessionRow, SpanRow, WindowRow, typed_rows
from memory_pipeline.lake.store import DamagedTableError, Lake, fingerprint_of
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.errors import BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError, SetAsideError
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.rows import (
    AlreadyObserved,
    Rows,
    already_observed,
    better,
    log_window,
    rows_of,
    with_basis,
)
from memory_pipeline.observations.types import (
    EXTRACTIVE,
    Context,
    Fact,
    ImagePlace,
    Observer,
    Segment,
    WindowMessage,
    observation_id,
)
from memory_pipeline.sessions.quoting_cues import IMAGE
from memory_pipeline.stages import Built, fallback_notes, waiting_notes
from memory_pipeline.text.priorities import LOW
from memory_pipeline.workspace.daily_log.render import write_daily_log
from memory_pipeline.workspace.workspace import Workspace

VERSION = "13"
"""Increase it when the same messages would give other observations."""
OBSERVED, SHORT = pl.col("observed"), pl.col("rules_only").fill_null(False)
"""The windows to be observed, and those of sessions so short that only the user's statements are kept."""
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


def jobs_of(lake: Lake, day: date, chosen: pl.Expr = OBSERVED) -> list[list[Job]]:
    """The windows to be observed, one list per session, in the order in which they began."""
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


SHORT_OBSERVER = ExtractiveObserver(budget=1.0)
"""The observer of sessions too short to be observed as a whole, whichever observer is configured: a model would be
asked about every short session, most of which contain nothing that lasts. Its budget has room for everything."""
Places = dict[str, tuple[str | None, str | None]]
"""Folder and project by session."""


class ObservationsStage:
    """The stage that observes the windows of a day and writes them into the daily log."""

    tables = ("segments", "observations")

    def __init__(self, workspace: Workspace, observer: Observer) -> None:
        self.settings, self.lake, self.observer = workspace.settings, workspace.lake, observer

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        """A stage with the observer of the settings."""
        return cls(workspace, observer_of(workspace))

    def days_read(self, day: date) -> list[date]:
        return [day]

    def fingerprint(self, day: date) -> str:
        inputs = [self.lake.digest(table, [day]) for table in ("messages", "windows")]
        return fingerprint_of(
            VERSION, self.observer.version, SHORT_OBSERVER.version, *inputs, sorted(self._places(day).items())
        )

    def build(self, day: date) -> Built:
        outcomes = observe(jobs_of(self.lake, day), self.observer)
        stopped = [outcome.left for outcome in outcomes if outcome.left]
        places = self._places(day)
        rows = [
            (job, found.located(*places[job.window["session_id"]], self.settings.owner))
            for job, found in (*((o.job, self._window_rows(o)) for o in outcomes), *self._short_sessions(day))
        ]
        edited = self._write_log(day, rows)
        total = Rows([s for _, found in rows for s in found.segments], [o for _, f in rows for o in f.observations])
        warnings = [f"A block of the daily log was edited by hand and left as it is: {key}" for key in edited]
        notes = fallback_notes([segment.instead for outcome in outcomes for segment in outcome.segments], "segments")
        warnings += [f"{day}: {note}" for note in notes.values()]
        if not stopped:
            return Built(total.frames(), notes=notes, warnings=tuple(warnings))
        # report why all requests stopped rather than why a single one failed
        ended = next((error for error in stopped if not isinstance(error, SetAsideError)), stopped[0])
        left = f"{len(stopped)} of {len(outcomes)} windows were not observed: {ended}"
        is_partial = isinstance(ended, SetAsideError) and len(stopped) < len(outcomes)
        is_expected = isinstance(ended, BudgetReachedError) or is_partial or self.settings.observer.fallback
        return Built(
            total.frames(),
            is_complete=False,
            notes=waiting_notes(left, ended) | notes,
            warnings=(f"{day} is not finished: {left}", *warnings),
            failure=None if is_expected else ended,
        )

    def _places(self, day: date) -> Places:
        """Folder and project of each session of the day."""
        return self._places_by_day.get(day, {}) if self.lake.is_for_planning else self._read_places([day]).get(day, {})

    @cached_property
    def _places_by_day(self) -> dict[date, Places]:
        """Folders and projects of all days, read at once: reading each day took a third of the time of a plan over a
        year."""
        return self._read_places(None)

    def _read_places(self, days: list[date] | None) -> dict[date, Places]:
        found: dict[date, Places] = defaultdict(dict)
        sessions = self.lake.read("sessions", days, ["day", "session_id", "cwd", "project"])
        for day, session, cwd, project in sessions.rows():
            found[day][session] = cwd, project
        return found

    def _short_sessions(self, day: date) -> Iterator[tuple[Job, Rows]]:
        """Observations of sessions that are too short to be observed as a whole."""
        for job in chain.from_iterable(jobs_of(self.lake, day, SHORT)):
            if segments := user_statements(job.messages):
                yield job, rows_of(job.window, segments, SHORT_OBSERVER.name, self.settings.zone)

    def _window_rows(self, outcome: WindowOutcome) -> Rows:
        """The rows of a window: known and new ones, with better earlier ones in place of invalid answers; else earlier
        rows or those of the fallback."""
        job, known = outcome.job, outcome.known
        window, zone, before = job.window, self.settings.zone, job.own_rows
        if not outcome.left:
            found = rows_of(window, outcome.segments, self.observer.name, zone)
            ids = [message.message_id for message in job.messages]
            ended = {observation for segment in outcome.segments for observation in segment.ended}
            rows = known.continued(better(found, before, ids, known.messages), ended)
            return (
                with_basis(rows, job.messages, basis_version(self.observer)) if self.observer.is_incremental else rows
            )
        if known.rows.segments and not before.segments:
            return known.rows  # a compaction moved the boundaries of the window
        has_model_rows = any(not segment["observer"].startswith(EXTRACTIVE) for segment in before.segments)
        if not self.settings.observer.fallback or has_model_rows:
            return before
        fallback = ExtractiveObserver(self.settings.observation_budget)
        (fallback_outcome,) = observe_session([job], fallback)
        return rows_of(window, fallback_outcome.segments, fallback.name, zone)

    def _write_log(self, day: date, rows: list[tuple[Job, Rows]]) -> list[str]:
        """Write the daily log. Returns the keys of blocks that a user has edited and that were left unchanged."""
        sessions = {s["session_id"]: s for s in typed_rows(self.lake.read("sessions", [day]), SessionRow)}
        windows = [
            log_window(job.window, found, sessions[job.window["session_id"]], self.settings) for job, found in rows
        ]
        result = write_daily_log(self.settings.daily_log(day), day, windows, backups=self.settings.backups)
        return list(result.edited_by_hand)


def user_statements(messages: Sequence[WindowMessage]) -> list[Segment]:
    """The segments of a short session with only the user's statements, without questions; none if the user only asked
    or agreed."""
    found = []
    for segment in SHORT_OBSERVER.observe(messages):
        facts = tuple(fact for fact in segment.facts if fact.trust == "user" and fact.priority != LOW)
        if facts:
            found.append(replace(segment, facts=facts))
    return found


def observer_of(workspace: Workspace) -> Observer:
    """The observer that asks the model of `OBSERVER_MODEL`; the extractive one if no model is set, or if it failed its
    examination."""
    config = observer_model(workspace.settings)
    if config:
        # imported here, because every command that plans would load them, usually without a model
        from memory_pipeline.observations.examination import result_of
        from memory_pipeline.observations.model.observer import LanguageModelObserver

        result = result_of(workspace.settings)
        if not (result and result.reason):
            return LanguageModelObserver.from_config(config, workspace)
    return ExtractiveObserver(workspace.settings.observation_budget)
