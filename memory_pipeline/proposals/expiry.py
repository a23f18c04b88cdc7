"""When a proposal expires: its time runs from when a person could first see it, never from when it was made."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.proposals.states import EXPIRED, PENDING, SUPERSEDED, Book
from memory_pipeline.settings import Settings

EXPIRY_SURFACE, SUPERSESSION_SURFACE = "expiry", "supersession"


def expiring_on(settings: Settings, row: dict[str, Any], now: datetime) -> date | None:
    """The day on which a shown proposal expires, once that is near."""
    shown = row["first_shown"]
    if shown is None or now < shown + timedelta(days=settings.proposal_warning_days):
        return None
    return day_of(shown + timedelta(days=settings.proposal_expiry_days), settings.zone)


def expiries(settings: Settings, book: Book, now: datetime) -> list[dict[str, Any]]:
    """Decisions on the pending proposals whose time is over."""
    over = now - timedelta(days=settings.proposal_expiry_days)
    shown = book.frame.filter(pl.col("first_shown") <= over)
    return [
        {"proposal_id": p, "decision": EXPIRED, "surface": EXPIRY_SURFACE, "text": text}
        for p, text in shown.select("proposal_id", "text").iter_rows()
        if book.status[p] == PENDING
    ]


def supersessions(book: Book) -> list[dict[str, Any]]:
    """Decisions on the pending proposals whose place a newer one takes."""
    newer = book.frame.filter(pl.col("supersedes").list.len() > 0).select("proposal_id", "supersedes", "text")
    over = {old: (p, text) for p, olds, text in newer.iter_rows() for old in olds if book.status.get(old) == PENDING}
    return [
        {
            "proposal_id": old,
            "decision": SUPERSEDED,
            "surface": SUPERSESSION_SURFACE,
            "text": row["text"],
            "reason": f"{over[old][0]} says what holds now: {over[old][1]}",
        }
        for old, row in book.rows(list(over)).items()
    ]
