"""What a person made of proposals, by section of MEMORY.md: how far a section's lines may be trusted unseen.

Nothing is kept but rows of decisions: a rate is counted anew each time, so a section loses what it earned by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import polars as pl

from memory_pipeline.files.blocks import one_line
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.memory_file import lines_of, normalised
from memory_pipeline.proposals.records import AUTO_SURFACE, COMMAND_SURFACE, REVIEW_SURFACE, TODOIST_SURFACE
from memory_pipeline.proposals.states import APPROVED, EXPIRED, PENDING, REJECTED
from memory_pipeline.settings import Settings

COUNTED = 50
"""The last decisions on a section that its rate is counted from: who changes their mind is followed."""
FEWEST = 20
"""With fewer nothing is said of a section."""
TRUSTED_FROM = 0.90
"""What the lower bound of a rate must reach."""
_Z = 1.959964
"""Of the 95 % interval. With it 35 decisions that all took the line as offered reach the bar, and of 50 all must."""
PEOPLE = (REVIEW_SURFACE, COMMAND_SURFACE, TODOIST_SURFACE)
TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK = "approved", "edited", "rejected", "let expire", "took back"
BY_PERSON = (TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK)
STANDING = "stands"
"""Promoted automatically and not taken back, which says nothing: nobody may have looked."""


@dataclass(frozen=True)
class Rate:
    """So many of so many."""

    good: int
    counted: int

    @property
    def share(self) -> float:
        return self.good / self.counted if self.counted else 0.0

    @property
    def lower(self) -> float:
        """Lower bound of the Wilson interval: what the rate is at least, after so few."""
        if not self.counted:
            return 0.0
        n, p, zz = self.counted, self.share, _Z * _Z
        return max(0.0, (p + zz / (2 * n) - _Z * sqrt(p * (1 - p) / n + zz / (4 * n * n))) / (1 + zz / n))

    @property
    def is_trusted(self) -> bool:
        return self.counted >= FEWEST and self.lower >= TRUSTED_FROM


@dataclass
class Standing:
    """What a section has earned: the rate of its last decisions, and how its shadow fared."""

    acceptance: Rate = Rate(0, 0)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of the proposals that would have been promoted: what came of each."""

    @property
    def would_promote(self) -> int:
        return self.outcomes.total()

    @property
    def precision(self) -> Rate:
        return Rate(self.outcomes[TAKEN], sum(self.outcomes[end] for end in BY_PERSON))


def standings(settings: Settings, lake: Lake, frame: pl.DataFrame) -> dict[str, Standing]:
    """Each section with decisions; `frame` is of `with_status`.

    Only a line that was approved as it was offered, words and section, is accepted: another would have been promoted
    wrongly. One that expired is not: it was shown for a week, and who approves what is good and leaves the rest would
    else be taken for somebody who approves all. Superseded and invalid ones say nothing of the person.
    """
    back = taken_back(settings, lake, frame)
    ended = frame.filter(pl.col("status") != PENDING).sort("decided_at", "proposal_id")
    said: dict[str, list[bool]] = {}
    ends: dict[str, str] = {}
    for row in ended.iter_rows(named=True):
        ends[row["proposal_id"]] = end = _end(row, back)
        if end not in (STANDING, ""):
            said.setdefault(row["section"], []).append(end == TAKEN)
    result = {s: Standing(Rate(sum(goods[-COUNTED:]), len(goods[-COUNTED:]))) for s, goods in said.items()}
    for proposal_id, section in lake.read("auto_promotions", columns=["proposal_id", "section"]).iter_rows():
        result.setdefault(section, Standing()).outcomes[ends.get(proposal_id, PENDING)] += 1
    return result


def taken_back(settings: Settings, lake: Lake, frame: pl.DataFrame) -> set[str]:
    """What was promoted automatically and stands no more in MEMORY.md in its words: deleted, struck through, edited.

    A line whose place another one took with the person's approval was not taken back.
    """
    approved = frame.filter(pl.col("status") == APPROVED)
    automatic = set(approved.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    if not automatic:
        return set()
    promoted = lake.read("promotions", columns=["proposal_id", "text"]).iter_rows()
    replaced = set(approved["supersedes"].explode(empty_as_null=True).drop_nulls())
    data = settings.memory_file.read_bytes() if settings.memory_file.exists() else None
    there = {normalised(line.text) for line in lines_of(data)}  # what is struck through has ~~ around it
    return {p for p, text in promoted if p in automatic - replaced and normalised(text) not in there}


def _end(row: dict[str, Any], back: set[str]) -> str:
    """What the person made of a decided proposal; nothing where it was not they who ended it."""
    if row["status"] == EXPIRED:
        return IGNORED
    if row["surface"] == AUTO_SURFACE:
        return TAKEN_BACK if row["proposal_id"] in back else STANDING
    if row["surface"] not in PEOPLE or row["status"] not in (APPROVED, REJECTED):
        return ""
    if row["status"] == REJECTED:
        return REFUSED
    return TAKEN if _is_as_offered(row) else EDITED


def _is_as_offered(row: dict[str, Any]) -> bool:
    moved = row["decided_section"] and _same(row["decided_section"]) != _same(row["section"])
    return not moved and one_line(row["decided_text"] or "") == one_line(row["text"])


def _same(section: str) -> Sequence[str]:
    return section.casefold().split()
