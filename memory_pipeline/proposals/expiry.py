"""How long a pending proposal lives: days on which a run showed it to a user, never days that merely passed.

A proposal expires once a run had it on display (in REVIEW.md, or as a task in Todoist) on as many different days as the
setting `proposal_expiry_days` says, today not counted, and that many days have passed by the clock since it came, less
those on which it was displaced. The first keeps a clock that jumps ahead and a holiday without runs from ending
anything: they add one day, or none. The second gives whoever looks once a week a whole week. Where the clock says that
it came in the future, the clock was wrong, and the days alone count. What waits behind the first page was not shown, so
it never expires.

Limit: nobody can tell whether a user looked. A machine that goes on running while its user is away counts its days.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import NewReoffer, ProposalState, typed_rows
from memory_pipeline.proposals.events import (
    EXPIRED,
    EXPIRY_SURFACE,
    KEYS,
    PENDING,
    TODOIST_SURFACE,
    Decision,
    ProposalLog,
)
from memory_pipeline.proposals.validity import invalid
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def expiring_on(settings: Settings, row: ProposalState, now: datetime) -> date | None:
    """The day on which a proposal on display expires if a run shows it every day, once that is near."""
    shown, by_clock = _shown(settings, row, now), _elapsed(row, now)
    warned = settings.proposal_warning_days
    if row["shown_since"] is None or shown < warned or (by_clock and by_clock < timedelta(days=warned)):
        return None
    over = day_of(now, settings.zone) + timedelta(days=max(0, settings.proposal_expiry_days - shown))
    if by_clock is None:
        return over
    return max(over, day_of(row["shown_since"] + timedelta(days=settings.proposal_expiry_days), settings.zone))


def expiries(settings: Settings, log: ProposalLog, now: datetime) -> list[Decision]:
    """Decisions on the pending proposals whose time is over."""
    waiting = log.frame.filter(pl.col("status") == PENDING, pl.col("shown_since").is_not_null())
    return [
        Decision(
            row["proposal_id"],
            EXPIRED,
            EXPIRY_SURFACE,
            row["text"],
            reason=f"shown on {_shown(settings, row, now)} days without a decision",
        )
        for row in typed_rows(waiting, ProposalState)
        if _is_over(settings, row, now)
    ]


def expired_unseen(workspace: Workspace, log: ProposalLog, now: datetime) -> list[NewReoffer]:
    """What expired by the clock alone, before days were counted, though runs showed it on few: to be offered again.

    Such an expiry has no reason on record. On which days there were runs then is known by the events of those days
    only, so fewer than half of the days to expiry counts as few. A task in Todoist was on a list that is looked at
    elsewhere. What MEMORY.md says by now, what was taken back and what a newer line replaced is not asked again.
    """
    if not log.table("shown_days").is_empty():
        return []  # looked at once: what a user takes out of MEMORY.md later does not come back by this
    over = log.frame.filter(
        pl.col("status") == EXPIRED, pl.col("surface") == EXPIRY_SURFACE, pl.col("reason").is_null()
    )
    asked = log.shown_on(TODOIST_SURFACE).union(*log.frame["supersedes"].drop_nulls().to_list())
    asked |= set(log.table("reoffers")["proposal_id"])
    rows = [r for r in typed_rows(over, ProposalState) if r["proposal_id"] not in asked]
    if not rows:
        return []
    ran = sorted({day for table in KEYS for day in log.table(table)["day"]})
    shown = {r["proposal_id"]: _known_days(workspace.settings, r, ran, now) for r in rows}
    few = {p for p, days in shown.items() if 2 * days < workspace.settings.proposal_expiry_days}
    unseen = {p: r["text"] for r in rows if (p := r["proposal_id"]) in few}
    settled = invalid(workspace, log, unseen)
    return [{"proposal_id": p, "reoffered_at": now, "days_shown": shown[p]} for p in unseen if p not in settled]


def _known_days(settings: Settings, row: ProposalState, ran: list[date], now: datetime) -> int:
    """On how many days a run is known to have had it on display before it expired; none where the clock was wrong then:
    in the future, or with runs after its time and before its end, which would have ended it."""
    since, ended = row["shown_since"], row["decided_at"]
    if since is None or ended is None or ended > now:
        return 0
    first, last = day_of(since, settings.zone), day_of(ended, settings.zone)
    due = first + timedelta(days=settings.proposal_expiry_days)
    return 0 if any(due < day < last for day in ran) else sum(first <= day < last for day in ran)


def _is_over(settings: Settings, row: ProposalState, now: datetime) -> bool:
    by_clock = _elapsed(row, now)
    is_late = by_clock is None or by_clock >= timedelta(days=settings.proposal_expiry_days)
    return is_late and _shown(settings, row, now) >= settings.proposal_expiry_days


def _shown(settings: Settings, row: ProposalState, now: datetime) -> int:
    """On how many days before today; a day that is in the future is one on which a run showed it too."""
    return len(set(row["shown_on"] or ()) - {day_of(now, settings.zone)})


def _elapsed(row: ProposalState, now: datetime) -> timedelta | None:
    """The time on display by the clock; None where it cannot be."""
    since = row["shown_since"]
    return None if since is None or since > now else now - since
