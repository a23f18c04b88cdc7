"""The check that every proposal has at most one outcome, and every approved one its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import APPLIED, APPROVED, DECISIONS, PROMOTED, ProposalLog
from memory_pipeline.proposals.memory_copies import is_reviewed_elsewhere, memory_loss
from memory_pipeline.proposals.memory_file import read_lines
from memory_pipeline.verdict import Verdict

MANY = 5
"""Number of promoted lines from which the absence of all means that the file was lost: a user hardly removes that
many."""


@dataclass(frozen=True)
class ProposalIntegrity:
    """Decisions and promotions of all proposals by id, read once, and the ids in MEMORY.md."""

    lake: Lake
    decided: Mapping[str, list[str]]
    promoted: Mapping[str, int]
    there: frozenset[str]
    applied: frozenset[str]
    """Friction fixes that are not a new line of MEMORY.md: written into another file, or left to the user."""
    loss: str | None
    """A message if MEMORY.md is missing, blank or without many of its lines."""

    @classmethod
    def from_lake(cls, lake: Lake, memory_file: Path) -> Self:
        log = ProposalLog(lake)
        elsewhere = {p for p, fix in log.fixes.items() if fix["place"] != memory_file.name}
        applied = frozenset(elsewhere.union(log.events(APPLIED)["proposal_id"]))
        decided = log.decisions.sort("happened_at").group_by("proposal_id").agg("decision").iter_rows()
        promotions = log.events(PROMOTED)
        promoted = dict(promotions.group_by("proposal_id").len().iter_rows())
        ours = {line.proposal_id for line in read_lines(memory_file) if line.proposal_id}
        if is_reviewed_elsewhere(lake, memory_file):
            ours.update(promoted)  # as far as is known here
        without_comment = set(promotions.filter("already_there")["proposal_id"])
        loss = memory_loss(lake, memory_file)
        if not loss and len(promoted) >= MANY and not ours:
            loss = f"MEMORY.md has none of the {len(promoted)} lines that were promoted"
        return cls(lake, dict(decided), promoted, frozenset(ours | without_comment), applied, loss)

    def judge(self) -> Verdict:
        """The verdict on all proposals, with each violation and its day."""
        proposals = ProposalLog(self.lake).table("proposals").select("day", "proposal_id")
        ids = proposals["proposal_id"].to_list()
        offenders: list[str] = []
        for (day,), of_day in proposals.partition_by("day", as_dict=True).items():
            twice = of_day.filter(pl.col("proposal_id").is_duplicated())["proposal_id"].unique().sort()
            found = [f"{p} was created twice" for p in twice]
            found += [violation for p in of_day["proposal_id"].unique().sort() for violation in self._violations(p)]
            offenders += [f"{day}: {violation}" for violation in found]
        promoted = [p for p in dict.fromkeys(ids) if p in self.promoted]
        if promoted and self.loss:
            offenders.append(self.loss)
        numbers: dict[str, float | int | str] = {
            "proposals": len(ids),
            "pending": sum(p not in self.decided for p in ids),
            "promoted": len(promoted),
            "removed_by_hand": sum(p not in self.there for p in promoted),
        }
        ended = {end: sum(self.decided.get(p) == [end] for p in ids) for end in DECISIONS}
        judged = f"{len(ids)} proposals, {len(promoted)} of them promoted"
        return Verdict(not offenders, numbers | {end: n for end, n in ended.items() if n}, offenders, judged)

    def _violations(self, proposal_id: str) -> list[str]:
        ends, promotions = self.decided.get(proposal_id, []), self.promoted.get(proposal_id, 0)
        found = [f"{proposal_id} has the unknown decision {end!r}" for end in ends if end not in DECISIONS]
        if len(ends) > 1:
            found.append(f"{proposal_id} has {len(ends)} decisions")
        if promotions > 1:
            found.append(f"{proposal_id} was promoted {promotions} times")
        if promotions and APPROVED not in ends:
            found.append(f"{proposal_id} was promoted but never approved")
        if ends == [APPROVED] and not promotions and proposal_id not in self.applied:
            found.append(f"{proposal_id} was approved but not promoted")
        return found
