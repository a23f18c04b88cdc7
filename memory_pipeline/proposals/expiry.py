"""Expiry of pending proposals, by the days on which a run showed them, never by days that merely passed.

A proposal expires once a run had it on display (in REVIEW.md, or as a task in Todoist) on as many different days before
today as the setting `proposal_expiry_days` says. A clock that jumps ahead and a holiday without runs add one day, or
none. Proposals that wait or were displaced are not shown, so they do not expire. The same number of 24-hour periods
must have passed since it appeared, so that a user who looks once a week sees it.

Limit: it is unknown whether a user looked. A machine that runs while its user is away counts its days.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import ProposalState, typed_rows
from memory_pipeline.proposals.events import EXPIRED, EXPIRY_SURFACE, PENDING, Decision, ProposalLog
from memory_pipeline.settings import Settings


def expiring_on(settings: Settings, row: ProposalState, now: datetime) -> date | None:
    """The day on which a proposal on display expires if a run shows it every day, once that is near."""
    shown, today = days_shown(settings, row, now), day_of(now, settings.zone)
    if not row["on_display"] or shown < settings.proposal_warning_days:
        return None
    return today + timedelta(days=max(0, settings.proposal_expiry_days - shown))


def expiries(settings: Settings, log: ProposalLog, now: datetime) -> list[Decision]:
    """Decisions on the pending proposals whose time is over."""
    waiting = typed_rows(log.frame.filter(pl.col("status") == PENDING, "on_display"), ProposalState)
    counted = [(row, days_shown(settings, row, now)) for row in waiting]
    return [
        Decision(
            row["proposal_id"], EXPIRED, EXPIRY_SURFACE, row["text"], reason=f"shown on {days} days without a decision"
        )
        for row, days in counted
        if days >= settings.proposal_expiry_days and not _has_just_come(settings, row, now)
    ]


def _has_just_come(settings: Settings, row: ProposalState, now: datetime) -> bool:
    """Whether less time has passed than days; a moment in the future comes from a wrong clock."""
    came = row["first_shown"]
    return came is not None and came <= now < came + timedelta(days=settings.proposal_expiry_days)


def days_shown(settings: Settings, row: ProposalState, now: datetime) -> int:
    """The number of days before today on which it was shown; a day in the future counts too."""
    return len(set(row["shown_on"] or ()) - {day_of(now, settings.zone)})
