"""Adding rows to the tables of what happens to proposals. Nothing in them is ever changed or taken out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import polars as pl
from filelock import FileLock

from memory_pipeline.daily_log.render import LogDecision, write_decisions
from memory_pipeline.days import day_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings

REVIEW_SURFACE, COMMAND_SURFACE, TODOIST_SURFACE = "REVIEW.md", "command", "todoist"
AUTO_SURFACE = "auto"
"""Nobody's: see `auto_promotion`."""
KEYS = {
    "decisions": ["proposal_id"],
    "promotions": ["proposal_id"],
    "auto_promotions": ["proposal_id"],
    "showings": ["proposal_id", "surface", "external_id"],
}
"""Of what each table keeps one row for ever, the first."""


def record_decisions(settings: Settings, lake: Lake, rows: Sequence[dict[str, Any]], now: datetime) -> None:
    """Rows with proposal_id, decision, surface and text; section and reason where there are any.

    The log of the day tells what is on record. Where a process died in between, the next call mends the log.
    """
    behind = settings.backups / "decisions.unlogged"
    if not rows and not behind.exists():
        return
    settings.backups.mkdir(parents=True, exist_ok=True)
    with FileLock(settings.backups / "decisions.log.lock"):
        if behind.exists():
            with contextlib.suppress(PermissionError):  # whoever made a log read-only does not want it mended
                _log(settings, lake, date.fromisoformat(behind.read_text("utf-8")))
            behind.unlink()
        if rows:
            day = day_of(now, settings.zone)
            made = [{"section": None, "reason": None, "decided_at": now} | row for row in rows]
            write_atomically(behind, f"{day}".encode(), expected=None, backups=None)
            append(settings, lake, "decisions", made, now)
            _log(settings, lake, day)
            behind.unlink()


def record_showings(
    settings: Settings, lake: Lake, shown: dict[str, str | None], now: datetime, *, surface: str
) -> None:
    """Proposals that a person can see on the surface from now on, with what the surface calls each, if anything.

    A proposal that was shown there before keeps its first time.
    """
    known = lake.read("showings", columns=["proposal_id", "surface"])
    before = set(known.filter(pl.col("surface") == surface)["proposal_id"])
    rows = [
        {"proposal_id": p, "surface": surface, "shown_at": now, "external_id": external}
        for p, external in shown.items()
        if p not in before
    ]
    append(settings, lake, "showings", rows, now)


def shown_on(lake: Lake, surface: str) -> set[str]:
    """The proposals that were ever shown on a surface."""
    return set(lake.read("showings").filter(pl.col("surface") == surface)["proposal_id"])


def append(settings: Settings, lake: Lake, table: str, rows: Sequence[dict[str, Any]], now: datetime) -> None:
    """Add rows to the day of `now`; what has a row already, on any day, keeps it."""
    if not rows:
        return
    day, key = day_of(now, settings.zone), KEYS[table]
    settings.backups.mkdir(parents=True, exist_ok=True)
    new = pl.DataFrame([{"day": day} | row for row in rows], schema=TABLES[table].columns)
    with FileLock(settings.backups / f"{table}.lock"):  # a command and a sensor's run may decide at once
        fresh = new.unique(key, keep="first", maintain_order=True).join(
            lake.read(table, columns=key), on=key, how="anti", nulls_equal=True
        )
        lake.replace(table, pl.concat([lake.read(table, [day]), fresh]), [day])


def _log(settings: Settings, lake: Lake, day: date) -> None:
    rows = lake.read("decisions", [day]).sort("decided_at", "proposal_id").to_dicts()
    lines = [
        LogDecision(_clock(settings, r["decided_at"]), r["decision"], r["proposal_id"], r["text"], r["reason"])
        for r in rows
    ]
    write_decisions(settings.daily_log(day), day, lines, backups=settings.backups)


def _clock(settings: Settings, moment: datetime) -> str:
    return f"{moment.astimezone(settings.zone):%H:%M}"
