"""Decisions that a run read from REVIEW.md, and automatic outcomes of proposals."""

from datetime import datetime
from typing import Any

import polars as pl

from memory_pipeline.cli.console import say
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    DECIDED,
    EXPIRED,
    INVALID,
    REJECTED,
    REVIEW_SURFACE,
    SUPERSEDED,
    WITHDRAWN,
    ProposalLog,
)
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review import not_understood, now_utc
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def outcomes_since(settings: Settings, began: datetime) -> dict[str, Any]:
    """Ids by outcome, from the decisions since then. Decisions in the future come from a run with a wrong clock."""
    lake = Lake.from_settings(settings)
    log = ProposalLog(lake)
    recent = log.events(DECIDED, pl.col("happened_at").is_between(began, now_utc())).sort("happened_at", "proposal_id")
    is_read = pl.col("surface") == REVIEW_SURFACE
    read, other = recent.filter(is_read), recent.filter(~is_read)
    return {
        **{end: read.filter(decision=end)["proposal_id"].to_list() for end in (APPROVED, REJECTED)},
        "invalid": dict(read.filter(decision=INVALID).select("proposal_id", "reason").iter_rows()),
        "not_understood": not_understood(Workspace(settings, lake)),
        "to_make": {p: how for p, how in left_to_the_user(log).items() if p in set(recent["proposal_id"])},
        **{end: other.filter(decision=end)["proposal_id"].to_list() for end in (EXPIRED, SUPERSEDED, WITHDRAWN)},
        "automatic": other.filter(surface=AUTO_SURFACE)["proposal_id"].to_list(),
    }


def print_outcomes(settled: dict[str, Any]) -> None:
    """Print a line for the marks in REVIEW.md and one for automatic outcomes, if there are any."""
    by_hand = {APPROVED: "approved", REJECTED: "rejected", INVALID: "approved but not promoted"}
    read = [f"{len(settled[key])} {name}" for key, name in by_hand.items() if settled[key]]
    read += [f"{p}: {reason}" for p, reason in settled["invalid"].items()]
    read += [f"not understood: {', '.join(ids)}"] if (ids := settled["not_understood"]) else []
    if read:
        say(f"REVIEW.md: {', '.join(read)}", "yellow" if ids or settled["invalid"] else "")
    for how in settled["to_make"].values():
        say(visible(how), "cyan")
    automatic = {
        EXPIRED: "expired",
        SUPERSEDED: "superseded by newer ones",
        WITHDRAWN: "withdrawn, because their problem has stopped",
        "automatic": "promoted",
    }
    if ended := ", ".join(f"{len(settled[key])} {name}" for key, name in automatic.items() if settled[key]):
        say(f"Automatically: {ended}")
