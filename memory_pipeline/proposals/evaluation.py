"""The checks of `memory_file`: every proposal has at most one decision and every approved one its line, and somebody
decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.applying import is_reviewed_elsewhere, memory_loss
from memory_pipeline.proposals.events import (
    APPLIED,
    APPROVED,
    DECIDED,
    DECISIONS,
    PROMOTED,
    SHOWN,
    USER_SURFACES,
    ProposalLog,
)
from memory_pipeline.proposals.memory_file import read_lines
from memory_pipeline.verdict import Verdict

MANY = 5
"""Number of promoted lines from which the absence of all means that the file was lost: a user hardly removes that
many."""


def judge_integrity(lake: Lake, memory_file: Path) -> Verdict:
    """The verdict on all proposals, with each violation and its day."""
    log = ProposalLog(lake)
    promotions = log.events(PROMOTED)
    promoted = Counter(promotions["proposal_id"])
    there = {line.proposal_id for line in read_lines(memory_file)}
    loss = memory_loss(lake, memory_file)
    if not loss and len(promoted) >= MANY and not there - {None} and not is_reviewed_elsewhere(lake, memory_file):
        loss = f"MEMORY.md has none of the {len(promoted)} lines that were promoted"
    # fixes that are no new line of MEMORY.md are written into another file, or left to the user
    applied = {p for p, fix in log.fixes.items() if fix["place"] != memory_file.name}
    applied.update(log.events(APPLIED)["proposal_id"])
    decided: dict[str, list[str]] = dict(log.decisions.group_by("proposal_id").agg("decision").iter_rows())
    counted = Counter(log.table("proposals").select("day", "proposal_id").iter_rows())
    offenders = []
    for (day, p), times in sorted(counted.items()):
        found = [f"{p} was created twice"] if times > 1 else []
        found += _violations(p, decided.get(p, []), promoted[p], is_applied=p in applied)
        offenders += [f"{day}: {violation}" for violation in found]
    ids = [p for _, p in counted]
    in_file = [p for p in ids if p in promoted]
    if in_file and loss:
        offenders.append(loss)
    without_comment = set(promotions.filter("already_there")["proposal_id"])
    kept = set(in_file) if is_reviewed_elsewhere(lake, memory_file) else there | without_comment
    numbers: dict[str, float | int | str] = {
        "proposals": len(ids),
        "pending": sum(p not in decided for p in ids),
        "promoted": len(in_file),
        "removed_by_hand": sum(p not in kept for p in in_file),
    }
    ended = Counter(ends[0] for p in ids if len(ends := decided.get(p, [])) == 1)
    numbers |= {end: ended[end] for end in DECISIONS if ended[end]}
    return Verdict(not offenders, numbers, offenders, f"{len(ids)} proposals, {len(in_file)} of them promoted")


def _violations(proposal_id: str, ends: Sequence[str], promotions: int, *, is_applied: bool) -> Iterator[str]:
    for end in ends:
        if end not in DECISIONS:
            yield f"{proposal_id} has the unknown decision {end!r}"
    if len(ends) > 1:
        yield f"{proposal_id} has {len(ends)} decisions"
    if promotions > 1:
        yield f"{proposal_id} was promoted {promotions} times"
    if promotions and APPROVED not in ends:
        yield f"{proposal_id} was promoted but never approved"
    if list(ends) == [APPROVED] and not promotions and not is_applied:
        yield f"{proposal_id} was approved but not promoted"


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
