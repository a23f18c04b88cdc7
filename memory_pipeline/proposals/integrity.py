"""The check that every proposal has at most one outcome, and every approved one its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import APPLIED, APPROVED, DECISIONS, PROMOTED, ProposalLog
from memory_pipeline.proposals.memory_copies import is_reviewed_elsewhere, memory_loss
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
