"""Withdrawal of undecided fixes whose pattern has ended: a problem that stopped needs no change. Proposals that such a
fix had replaced are offered again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from memory_pipeline.friction.active import last_day_looked_at, the_pattern
from memory_pipeline.lake.rows import FrictionRow, typed_rows
from memory_pipeline.proposals.events import (
    FRICTION_SURFACE,
    PENDING,
    REOFFERED,
    SUPERSEDED,
    WITHDRAWN,
    Decision,
    ProposalLog,
)
from memory_pipeline.workspace.workspace import Workspace

WHY_AGAIN = "the fix that replaced it was withdrawn"
_ENDED = re.compile(r"ended on (\d{4}-\d{2}-\d{2})")


def withdrawals(workspace: Workspace, log: ProposalLog) -> list[Decision]:
    """Decisions on the pending fixes whose patterns had ended on the newest day of the friction search."""
    looked_at, status = last_day_looked_at(workspace.lake), log.status
    waiting = {p: fix for p, fix in log.fixes.items() if status.get(p) == PENDING}
    if looked_at is None or not waiting:
        return []
    since = min(fix["first_day"] for fix in waiting.values())
    days = [day for day in workspace.lake.days("friction_clusters") if since <= day <= looked_at]
    rows = workspace.lake.read("friction_clusters", days).filter(pl.col("pattern_id").is_in(list(waiting)))
    of_pattern: dict[str, list[FrictionRow]] = {}
    for row in typed_rows(rows, FrictionRow):
        of_pattern.setdefault(row["pattern_id"], []).append(row)
    made = []
    for pattern_id, own in of_pattern.items():
        pattern = the_pattern(own, looked_at, workspace.settings.lookback_days)
        if pattern.ended_on is not None:
            reason = f"its pattern ended on {pattern.ended_on}; it last happened on {pattern.last_day}"
            made.append(Decision(pattern_id, WITHDRAWN, FRICTION_SURFACE, waiting[pattern_id]["text"], reason=reason))
    return made


def had_given_way(log: ProposalLog, withdrawn: Sequence[str]) -> list[str]:
    """The proposals that these fixes had replaced, to be offered again once."""
    olds = {old for p in withdrawn for old in log.fixes[p]["supersedes"] or []}
    olds -= set(log.events(REOFFERED)["proposal_id"])
    return [p for p, row in log.rows(olds).items() if row["status"] == SUPERSEDED]


def recently_withdrawn(log: ProposalLog, now: datetime, days: int) -> dict[str, str]:
    """Fixes withdrawn within this number of days, by id, with the day on which the pattern ended."""
    in_time = (pl.col("decided_at") > now - timedelta(days=days)) & (pl.col("decided_at") <= now)
    recent = log.frame.filter(pl.col("status") == WITHDRAWN, in_time).sort("decided_at", "proposal_id")
    reasons = recent.select("proposal_id", "reason").iter_rows()
    return {p: found[1] for p, reason in reasons if (found := _ENDED.search(reason or ""))}
