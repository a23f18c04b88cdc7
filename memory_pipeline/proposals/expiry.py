"""The end of pending proposals without a decision of a user: replaced, withdrawn or expired.

A proposal expires once runs displayed it (in REVIEW.md, or as a task in Todoist) on `proposal_expiry_days` different
days before today. A clock that jumps ahead and a holiday without runs add one day or none. Waiting and displaced
proposals are not displayed, so they do not expire. The same number of 24-hour periods must have passed since the
proposal appeared, so that a user who looks once a week sees it.

Limit: it is unknown whether a user looked. The days of a machine that runs while its user is away count.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.friction.active import last_day_looked_at, the_pattern
from memory_pipeline.lake.rows import FrictionRow, ProposalState, typed_rows
from memory_pipeline.proposals.events import (
    EXPIRED,
    EXPIRY_SURFACE,
    FRICTION_SURFACE,
    PENDING,
    SUPERSEDED,
    SUPERSESSION_SURFACE,
    WITHDRAWN,
    Decision,
    ProposalLog,
)
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def supersessions(log: ProposalLog) -> list[Decision]:
    """Decisions on the pending proposals that a newer one replaces."""
    newer = log.frame.filter(pl.col("status") != WITHDRAWN, pl.col("supersedes").list.len() > 0)
    over = {old: (p, text) for p, olds, text in newer["proposal_id", "supersedes", "text"].iter_rows() for old in olds}
    return [
        Decision(
            old, SUPERSEDED, SUPERSESSION_SURFACE, row["text"], reason="{} says what holds now: {}".format(*over[old])
        )
        for old, row in log.rows(over).items()
        if row["status"] == PENDING
    ]


def withdrawals(workspace: Workspace, log: ProposalLog) -> list[Decision]:
    """Decisions on the pending fixes whose patterns had ended on the newest day of the friction search: a problem that
    stopped needs no change."""
    looked_at, status = last_day_looked_at(workspace.lake), log.status
    waiting = {p: fix for p, fix in log.fixes.items() if status.get(p) == PENDING}
    if looked_at is None or not waiting:
        return []
    since = min(fix["first_day"] for fix in waiting.values())
    days = [day for day in workspace.lake.days("friction_clusters") if since <= day <= looked_at]
    rows = workspace.lake.read("friction_clusters", days).filter(pl.col("pattern_id").is_in(list(waiting)))
    made = []
    for own in rows.partition_by("pattern_id", maintain_order=True):
        pattern = the_pattern(typed_rows(own, FrictionRow), looked_at, workspace.settings.lookback_days)
        if pattern.ended_on is not None:
            reason = f"its pattern ended on {pattern.ended_on}; it last happened on {pattern.last_day}"
            p = pattern.row["pattern_id"]
            made.append(Decision(p, WITHDRAWN, FRICTION_SURFACE, waiting[p]["text"], reason=reason))
    return made


def expiries(settings: Settings, log: ProposalLog, now: datetime) -> list[Decision]:
    """Decisions on the pending proposals that expire now."""
    waiting = typed_rows(log.frame.filter(pl.col("status") == PENDING, "on_display"), ProposalState)
    counted = [(row, days_shown(settings, row, now)) for row in waiting]
    return [
        Decision(
            row["proposal_id"], EXPIRED, EXPIRY_SURFACE, row["text"], reason=f"shown on {days} days without a decision"
        )
        for row, days in counted
        if days >= settings.proposal_expiry_days and not _is_recent(settings, row, now)
    ]


def expiring_on(settings: Settings, row: ProposalState, now: datetime) -> date | None:
    """The day on which a displayed proposal expires if a run shows it every day, or None if that is not near."""
    shown, today = days_shown(settings, row, now), day_of(now, settings.zone)
    if not row["on_display"] or shown < settings.proposal_warning_days:
        return None
    return today + timedelta(days=max(0, settings.proposal_expiry_days - shown))


def days_shown(settings: Settings, row: ProposalState, now: datetime) -> int:
    """The number of days other than today on which it was shown; a day in the future counts too."""
    return len(set(row["shown_on"] or ()) - {day_of(now, settings.zone)})


def _is_recent(settings: Settings, row: ProposalState, now: datetime) -> bool:
    """Whether fewer 24-hour periods than days have passed since it appeared; a time in the future comes from a wrong
    clock."""
    came = row["first_shown"]
    return came is not None and came <= now < came + timedelta(days=settings.proposal_expiry_days)
