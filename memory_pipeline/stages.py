"""Stages, and whether a day of one is up to date. This module does not import Dagster, as the command line uses it for
planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

import polars as pl

from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.lake.storage import Expected, ReplacedMeanwhileError
from memory_pipeline.lake.store import Lake, fingerprint_of
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.text import tokens

INCOMPLETE = "incomplete"
"""Stored instead of a fingerprint for an incomplete day, so that every run looks for the missing part."""

MAX_TRIES = 20
"""Maximum number of builds of a day while other machines write it too; one of them succeeds each time."""

OUT_OF_BUDGET = "out_of_budget"
"""The name of the note on a day that waits because the budget of the models is used up."""


@dataclass(frozen=True)
class Built:
    """The result of building a day."""

    frames: Mapping[str, pl.DataFrame]
    """The rows by table."""
    is_complete: bool = True
    """Whether the day is complete; if not, every run looks for the rest."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Metadata for the UI, by name."""
    warnings: tuple[str, ...] = ()
    """Warnings for the log of the run."""
    replaces: Mapping[str, Expected] = field(default_factory=dict)
    """By table, the version of the day from which the stored rows were read. Only that version may be replaced, as
    another machine may have added rows."""
    failure: Exception | None = None
    """The error that prevented the day from being finished, unless it only has to wait; raised after the rows are
    stored."""


def waiting_notes(left: str, stopped: Exception) -> dict[str, str]:
    """Notes on the postponed parts, and whether the budget is the reason; ``stopped`` is the cause."""
    return {"left_for_later": left} | ({OUT_OF_BUDGET: f"{stopped}"} if isinstance(stopped, BudgetReachedError) else {})


def fallback_notes(reasons: Sequence[str], parts: str) -> dict[str, str]:
    """Notes on parts that the fallback model answered, and why; `reasons` has an entry for each part, or ""."""
    given = [reason for reason in reasons if reason]
    if not given:
        return {}
    return {"fallback_model": f"the fallback model gave {len(given)} of {len(reasons)} {parts}: {given[0]}"}


class Stage(Protocol):
    """A step that builds the rows of its tables for one day from earlier tables.

    A day's fingerprint covers all inputs of its rows: the bytes of the input tables, the settings and the version of
    the code. While it equals the one stored with the rows, the day is up to date.

    A stage that reads the text of messages, which a user may delete after some time, also has ``days_read(day)``: the
    days whose messages are inputs of the day. One that reads files of this machine has ``is_owned_elsewhere(day)``:
    whether the day's rows can only be built on another machine.
    """

    @property
    def tables(self) -> tuple[str, ...]: ...

    def fingerprint(self, day: date) -> str: ...

    def build(self, day: date) -> Built:
        """Build the day's rows. It may write a daily log or points of the index; repeating it is safe."""


def is_settled(stage: Stage, lake: Lake, day: date) -> bool:
    """Whether the stored rows of the day are final: their sources are deleted or not on this machine."""
    if hasattr(stage, "is_owned_elsewhere") and stage.is_owned_elsewhere(day):
        return True
    return (
        hasattr(stage, "days_read")
        and any(lake.is_retired("messages", read) for read in stage.days_read(day))
        and all(lake.fingerprint(table, day) is not None for table in stage.tables)
    )


def fingerprint_of_day(stage: Stage, day: date) -> str:
    """The stage's own fingerprint, with the token estimate if it is not the default: every stage counts tokens."""
    own = stage.fingerprint(day)
    return own if tokens.method() == tokens.BY_SCRIPT else fingerprint_of(own, tokens.method())


def is_incomplete(stage: Stage, lake: Lake, day: date) -> bool:
    """Whether the stored rows are known to be incomplete."""
    return any(lake.fingerprint(table, day) == INCOMPLETE for table in stage.tables)


def is_current(stage: Stage, lake: Lake, day: date) -> bool:
    """Whether the stored rows of the day were built from exactly these inputs."""
    return is_settled(stage, lake, day) or _is_stored(stage, lake, day, fingerprint_of_day(stage, day))


def bring_up_to_date(stage: Stage, lake: Lake, day: date) -> Built | None:
    """Build and store the day unless it is up to date. Returns the result, or None if nothing was built.

    Raises the error that prevented the day from being finished after storing its completed part, and
    `TryAgainLaterError` if other machines keep writing the day.
    """
    if is_settled(stage, lake, day):
        return None
    fingerprint = fingerprint_of_day(stage, day)  # before building, so that the next run finds later changes
    if _is_stored(stage, lake, day, fingerprint):
        return None
    for _ in range(MAX_TRIES):
        built = stage.build(day)
        try:
            _store(stage, lake, day, built, fingerprint)
        except ReplacedMeanwhileError:
            continue
        if built.failure:
            raise built.failure
        return built
    raise TryAgainLaterError(
        f"{lake.place(stage.tables[0], day)} was rewritten by another machine during each of {MAX_TRIES} attempts: "
        f"run it again, with fewer machines at once."
    )


def _store(stage: Stage, lake: Lake, day: date, built: Built, fingerprint: str) -> None:
    is_complete = built.is_complete and built.failure is None
    for table in stage.tables:
        replaced = built.replaces.get(table, "any")
        lake.replace(
            table, built.frames[table], [day], {day: fingerprint if is_complete else INCOMPLETE}, expected=replaced
        )


def _is_stored(stage: Stage, lake: Lake, day: date, fingerprint: str) -> bool:
    return all(lake.fingerprint(table, day) == fingerprint for table in stage.tables)
