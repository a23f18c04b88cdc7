"""Decisions that a run read from REVIEW.md, and automatic outcomes of proposals."""

from datetime import datetime
from typing import Any

import polars as pl

from memory_pipeline.cli.console import say
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.events import (
    APPLIED,
    APPROVED,
    AUTO_SURFACE,
    DECIDED,
    EXPIRED,
    INVALID,
    PROMOTED,
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


def settled_since(settings: Settings, began: datetime) -> dict[str, Any]:
    """Ids by outcome, from the decisions since then; `edited` and `in_memory` are approved.

    Decisions in the future come from a run with a wrong clock.
    """
    lake = Lake.from_settings(settings)
    now = now_utc()
    log, lately = ProposalLog(lake), pl.col("happened_at").is_between(began, now)
    recent = log.events(DECIDED, lately).sort("happened_at", "proposal_id")
    offered = dict(log.table("proposals").select("proposal_id", "text").iter_rows())
    promoted = {*log.events(PROMOTED)["proposal_id"], *log.events(APPLIED)["proposal_id"]}
    left = left_to_the_user(log)
    read, other = recent.filter(pl.col("surface") == REVIEW_SURFACE), recent.filter(pl.col("surface") != REVIEW_SURFACE)
    approved = dict(read.filter(pl.col("decision") == APPROVED).select("proposal_id", "text").iter_rows())
    ends = (EXPIRED, SUPERSEDED, WITHDRAWN)
    ended = {end: other.filter(pl.col("decision") == end)["proposal_id"].to_list() for end in ends}
    return {
        "approved": list(approved),
        "edited": [p for p, text in approved.items() if one_line(text) != one_line(offered.get(p, ""))],
        "in_memory": [p for p in approved if p in promoted],
        "to_make": {p: how for p, how in left.items() if p in set(recent["proposal_id"])},
        "rejected": read.filter(pl.col("decision") == REJECTED)["proposal_id"].to_list(),
        "invalid": dict(read.filter(pl.col("decision") == INVALID).select("proposal_id", "reason").iter_rows()),
        "not_understood": not_understood(Workspace(settings, lake)),
        **ended,
        "automatic": other.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"].to_list(),
    }


def print_settled(settled: dict[str, Any]) -> None:
    """Print a line for each kind of outcome that occurred."""
    if read := "; ".join(part for part in (_read(settled), _unclear(settled)) if part):
        say(f"REVIEW.md: {read}", "yellow" if settled["not_understood"] or settled["invalid"] else "")
    for how in settled["to_make"].values():
        say(visible(how), "cyan")
    names = {
        "expired": "expired",
        "superseded": "superseded by newer ones",
        "withdrawn": "withdrawn, because their problem has stopped",
        "automatic": "approved",
    }
    if ended := ", ".join(f"{len(settled[key])} {name}" for key, name in names.items() if settled[key]):
        say(f"Automatically: {ended}")


def _read(settled: dict[str, Any]) -> str:
    count = {name: len(found) for name, found in settled.items()}
    parts = []
    left = [p for p in settled["approved"] if p in settled["to_make"]]
    if lines := count["approved"] - len(left):
        edited = f", {count['edited']} of them edited" if count["edited"] else ""
        missing = lines - count["in_memory"]
        place = f"{missing} not yet in MEMORY.md" if missing else "in MEMORY.md"
        parts.append(f"{lines} approved{edited} ({place})")
    if left:
        parts.append(f"{len(left)} approved (for you to apply)")
    if count["rejected"]:
        parts.append(f"{count['rejected']} rejected")
    if settled["invalid"]:
        reasons = "; ".join(f"{p}: {reason}" for p, reason in settled["invalid"].items())
        parts.append(f"{count['invalid']} approved and not promoted ({reasons})")
    return ", ".join(parts)


def _unclear(settled: dict[str, Any]) -> str:
    return f"not understood: {', '.join(settled['not_understood'])}" if settled["not_understood"] else ""
