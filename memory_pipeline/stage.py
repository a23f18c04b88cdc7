"""What a stage is, and when a day of it is up to date. No Dagster here: the command line plans with it too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Protocol

import polars as pl

from memory_pipeline.lake.store import Lake


class TryAgainLater(Exception):
    """Something else is in the way for now: a lock, a server. The message says what to do if it stays."""


class CannotGoOn(Exception):
    """The same would happen on every other day, now and later: a setting is wrong. The message says which."""


class Unfinished(Exception):
    """Some of a day's rows could be made and some could not, for the reason that is this one's cause."""

    def __init__(self, frames: Mapping[str, pl.DataFrame], cause: Exception) -> None:
        super().__init__(str(cause))
        self.frames, self.cause = frames, cause


class Stage(Protocol):
    """Makes the rows of its tables for one day from the tables before it.

    A day's fingerprint covers what its rows are made of: the input tables' bytes, the settings and the
    version of the code. While it is equal to the one stored with the rows, the day is up to date.
    """

    is_complete: bool
    """Whether the day that was built last has all that it can have."""

    @property
    def tables(self) -> tuple[str, ...]: ...

    def fingerprint(self, day: date) -> str: ...

    def build(self, day: date) -> Mapping[str, pl.DataFrame]:
        """One frame per table. May write what goes with the rows (daily log, index); safe to repeat.

        Raises `Unfinished` with the rows that there are, when the others could not be made.
        """


INCOMPLETE = "incomplete"
"""Stored in place of a fingerprint, and no day's own: what is missing is looked for again by every run."""


def is_incomplete(stage: Stage, lake: Lake, day: date) -> bool:
    """Whether the stored rows are known to lack some."""
    return any(lake.fingerprint(table, day) == INCOMPLETE for table in stage.tables)


def is_current(stage: Stage, lake: Lake, day: date) -> bool:
    """Whether the stored rows of the day were made from just these inputs."""
    return _is_stored(stage, lake, day, stage.fingerprint(day))


def bring_up_to_date(stage: Stage, lake: Lake, day: date) -> bool:
    """Build and store the day unless it is up to date; True when it was built.

    Raises what kept a day from being finished, after what there is of it was stored.
    """
    fingerprint = stage.fingerprint(day)  # before building: what changes meanwhile is found by the next run
    if _is_stored(stage, lake, day, fingerprint):
        return False
    try:
        frames = stage.build(day)
    except Unfinished as unfinished:
        _store(stage, lake, day, unfinished.frames, INCOMPLETE)
        raise unfinished.cause from None
    _store(stage, lake, day, frames, fingerprint if stage.is_complete else INCOMPLETE)
    return True


def _store(stage: Stage, lake: Lake, day: date, frames: Mapping[str, pl.DataFrame], fingerprint: str) -> None:
    for table in stage.tables:
        lake.replace(table, frames[table], [day], {day: fingerprint})


def _is_stored(stage: Stage, lake: Lake, day: date, fingerprint: str) -> bool:
    return all(lake.fingerprint(table, day) == fingerprint for table in stage.tables)
