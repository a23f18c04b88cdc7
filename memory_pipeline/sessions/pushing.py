"""Upload of sessions from their machine to a lake in object storage: only the first stage runs.

The redacted rows of `sessions`, `messages` and `windows` are sent day by day, then the catalogue of the files, the
salted hashes of forgotten words, and the marks that all workspaces of a lake share. A sent day is recognised by its
fingerprint, so an interrupted push resumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

import polars as pl

from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.lake.storage import FolderStorage
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings, keep_timezone
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace

DAYS_BEFORE_FILES = 10
"""Number of sent days after which the catalogue is sent: it is one object that grows with the history."""


@dataclass(frozen=True)
class Pushed:
    """The result of pushing a day."""

    day: date
    sessions: int = 0
    messages: int = 0
    is_sent: bool = False
    """False if the lake already had the day, or it failed."""
    is_complete: bool = True
    """False if a session is currently unreadable; the next push sends the rest."""
    failure: str = ""


def prepare(settings: Settings) -> None:
    """Use the time zone and salt of the lake, and send it the forgotten words of this workspace before anything is
    read. Raises `OtherMarksError`."""
    keep_timezone(settings)
    own = Lake(FolderStorage(settings.lake_dir)).read("forgotten")
    if own.is_empty():
        return

    def with_own(rows: pl.DataFrame) -> pl.DataFrame | None:
        new = own.join(rows, on=["kind", "digest"], how="anti")
        return pl.concat([rows, new.select(rows.columns)]) if new.height else None

    Lake.from_settings(settings).update("forgotten", with_own)


def push_days(catalogue: Catalogue) -> Iterator[Pushed]:
    """Send the days whose stored version is not current, oldest first, and the catalogue.

    A day that fails does not stop the others. Raises `TryAgainLaterError` and `CannotGoOnError` for a lake that cannot
    be written, and `OSError`.
    """
    settings, now = catalogue.settings, datetime.now(UTC)
    stage = SessionsStage(Workspace(settings, catalogue.lake), catalogue, now)
    planning = SessionsStage(Workspace.open(settings, for_planning=True), catalogue, now)  # each table is listed once
    left, sent = set[date](), 0
    for day in catalogue.days():
        pushed = Pushed(day) if is_current(planning, planning.lake, day) else _push(stage, day)
        if pushed.failure or not pushed.is_complete:
            left.add(day)
        sent += pushed.is_sent
        if sent == DAYS_BEFORE_FILES:
            catalogue.send(day, left)
            sent = 0
        yield pushed
    catalogue.send(date.max, left)


def _push(stage: SessionsStage, day: date) -> Pushed:
    try:
        built = bring_up_to_date(stage, stage.lake, day)
    except (TryAgainLaterError, CannotGoOnError, OSError):
        raise
    except Exception as error:
        return Pushed(day, failure=f"{type(error).__name__}: {error}")
    if built is None:
        return Pushed(day)
    sessions, messages = built.frames["sessions"]["session_id"].n_unique(), built.frames["messages"].height
    return Pushed(day, sessions, messages, is_sent=True, is_complete=built.is_complete)
