"""Reading sessions on the machine where they are, into a lake in a bucket: the first stage, and nothing after it.

Only the redacted rows of `sessions`, `messages` and `windows` are sent, the catalogue of files, and what the lake's
workspaces share. A day that was sent is known by its fingerprint, so a push that was stopped goes on where it was.
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
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline.workspace import Workspace


@dataclass(frozen=True)
class Pushed:
    """A day, and what became of it."""

    day: date
    sessions: int = 0
    messages: int = 0
    is_sent: bool = False
    """False where the lake had it already, or something was in the way."""
    is_complete: bool = True
    """False where a session cannot be read for now; the next push sends the rest."""
    failure: str = ""


def prepare(settings: Settings) -> None:
    """Agree with the lake on zone and salt, and send it what this workspace was told to forget before anything is read
    for it. Raises `OtherMarksError`."""
    keep_timezone(settings)
    own = Lake(FolderStorage(settings.lake_dir)).read("forgotten")
    if own.is_empty():
        return

    def with_own(rows: pl.DataFrame) -> pl.DataFrame | None:
        new = own.join(rows, on=["kind", "digest"], how="anti", nulls_equal=True)
        return pl.concat([rows, new.select(rows.columns)]) if new.height else None

    Lake.from_settings(settings).update("forgotten", with_own)


def push_days(catalogue: Catalogue) -> Iterator[Pushed]:
    """Send the days that the lake does not have as the files are now, the oldest first.

    A day that something is wrong with does not stop the others. Raises `TryAgainLaterError` and `CannotGoOnError` of a
    lake that cannot be written, and `OSError`.
    """
    stage = SessionsStage(Workspace(catalogue.settings, catalogue.lake), catalogue, datetime.now(UTC))
    for day in catalogue.days():
        try:
            built = bring_up_to_date(stage, catalogue.lake, day)
        except (TryAgainLaterError, CannotGoOnError, OSError):
            raise
        except Exception as error:
            yield Pushed(day, failure=f"{type(error).__name__}: {error}")
        else:
            if built is None:
                yield Pushed(day)
            else:
                sessions, messages = built.frames["sessions"]["session_id"].n_unique(), built.frames["messages"].height
                yield Pushed(day, sessions, messages, is_sent=True, is_complete=built.is_complete)
