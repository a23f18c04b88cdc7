"""Whether anybody decides on pending proposals: without reviews the memory silently stays as it is."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from memory_pipeline.proposals.events import DECIDED, SHOWN, USER_SURFACES, ProposalLog
from memory_pipeline.verdict import Verdict

MAX_WAIT = timedelta(days=14)
"""Twice the time after which a proposal that runs have shown expires by default."""


def judge_attention(log: ProposalLog, now: datetime) -> Verdict:
    """While proposals are pending, a user decides on one of those shown at least every two weeks."""
    pending, since = len(log.pending()), left_since(log, now)
    days = (now - since).days if since else 0
    offenders = []
    if pending and since and now - since >= MAX_WAIT:
        offenders.append(
            f"nobody has decided on any for {days} days, since {since:%Y-%m-%d}: `memory review` takes a minute"
        )
    judged = f"{pending} pending proposals" if pending != 1 else "1 pending proposal"
    return Verdict(not offenders, {"pending": pending, "days_without_a_decision": days}, offenders, judged)


def left_since(log: ProposalLog, now: datetime) -> datetime | None:
    """The time since which proposals were shown without a decision of a user; None if there were none. Proposals that
    expired meanwhile count, as they could have been decided on."""
    taken = log.events(DECIDED, pl.col("surface").is_in(USER_SURFACES), pl.col("happened_at") <= now)
    last = taken["happened_at"].max()
    open_ = ~pl.col("proposal_id").is_in(taken["proposal_id"].to_list())
    left = log.events(SHOWN, pl.col("happened_at") <= now, open_)["happened_at"].min()
    if not isinstance(left, datetime):
        return None
    return max(left, last) if isinstance(last, datetime) else left
