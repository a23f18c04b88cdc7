"""Promoting without asking, where a user's own decisions have earned it: off unless asked for, in shadow first.

What the user made of proposals is counted by section of MEMORY.md. Nothing is kept but rows of decisions: a rate is
counted anew each time, so a section loses what it earned by itself. In shadow mode an event keeps what
would have been promoted, and nothing else happens; what the user then decides is set beside it. Only a section whose
shadow was right so often is promoted to, when the setting is `on`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import sqrt

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import ProposalState, typed_rows
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    COMMAND_SURFACE,
    EXPIRED,
    PAGE_SURFACE,
    PENDING,
    PROMOTED,
    REJECTED,
    REVIEW_SURFACE,
    TODOIST_SURFACE,
    WOULD_PROMOTE,
    Decision,
    ProposalLog,
)
from memory_pipeline.proposals.memory_file import lines_of, normalised
from memory_pipeline.proposals.score import USER
from memory_pipeline.proposals.validity import invalid
from memory_pipeline.reflections.types import REFLECTED
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.workspace.workspace import Workspace

COUNTED = 50
"""The last decisions on a section that its rate is counted from: who changes their mind is followed."""
MIN_DECISIONS = 20
"""With fewer nothing is said of a section."""
TRUSTED_FROM = 0.90
"""What the lower bound of a rate must reach."""
_Z = 1.959964
"""Of the 95 % interval. With it 35 decisions that all took the line as offered reach the bar, and of 50 all must."""
PEOPLE = (REVIEW_SURFACE, COMMAND_SURFACE, PAGE_SURFACE, TODOIST_SURFACE)
TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK = "approved", "edited", "rejected", "let expire", "took back"
BY_PERSON = (TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK)
STANDING = "stands"
"""Promoted automatically and not taken back, which says nothing: nobody may have looked."""
_IS_FIX = pl.col("proposal_id").str.starts_with("f-")
"""What a user makes of friction fixes says nothing of a section's lines; see `auto_fix` for those."""


@dataclass(frozen=True)
class Rate:
    """A share, as two counts."""

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
        return self.counted >= MIN_DECISIONS and self.lower >= TRUSTED_FROM


@dataclass
class Standing:
    """The trust that a section has earned: the rate of its last decisions, and how its shadow fared."""

    acceptance: Rate = Rate(0, 0)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of the proposals that would have been promoted: what came of each."""

    @property
    def would_promote(self) -> int:
        return self.outcomes.total()

    @property
    def precision(self) -> Rate:
        return Rate(self.outcomes[TAKEN], sum(self.outcomes[end] for end in BY_PERSON))


def standings(workspace: Workspace, log: ProposalLog) -> dict[str, Standing]:
    """Each section with decisions; what fits none has nothing in common that could earn trust.

    Only a line that was approved as it was offered, words and section, is accepted: another would have been promoted
    wrongly. One that expired is not: it was shown on seven days, and who approves what is good and leaves the rest
    would else be taken for somebody who approves all. Superseded and invalid ones say nothing of the user.
    """
    back = retracted(workspace, log)
    ended = log.frame.filter(pl.col("status") != PENDING, ~_IS_FIX).sort("decided_at", "proposal_id")
    said: dict[str, list[bool]] = {}
    ends: dict[str, str] = {}
    for row in typed_rows(ended, ProposalState):
        ends[row["proposal_id"]] = end = _end(row, back)
        if end not in (STANDING, "") and row["section"] != REFLECTED:
            said.setdefault(row["section"], []).append(end == TAKEN)
    result = {s: Standing(Rate(sum(goods[-COUNTED:]), len(goods[-COUNTED:]))) for s, goods in said.items()}
    noted = log.events(WOULD_PROMOTE, pl.col("section") != REFLECTED)
    for proposal_id, section in noted.select("proposal_id", "section").iter_rows():
        result.setdefault(section, Standing()).outcomes[ends.get(proposal_id, PENDING)] += 1
    return result


def retracted(workspace: Workspace, log: ProposalLog) -> set[str]:
    """Lines that were promoted automatically and are deleted, struck through or edited in MEMORY.md, by id.

    A line whose place another one took with the user's approval was not taken back.
    """
    approved = log.frame.filter(pl.col("status") == APPROVED)
    automatic = set(approved.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    if not automatic or not workspace.settings.memory_file.exists():  # that the file is gone says nothing about a line
        return set()
    promoted = log.events(PROMOTED).select("proposal_id", "text").iter_rows()
    replaced = set(approved["supersedes"].explode(empty_as_null=True).drop_nulls())
    lines = lines_of(workspace.settings.memory_file.read_bytes())
    there = {normalised(line.text) for line in lines}  # what is struck through has ~~ around it
    return {p for p, text in promoted if p in automatic - replaced and normalised(text) not in there}


def _end(row: ProposalState, back: set[str]) -> str:
    """The end that a decided proposal came to; nothing where it was not the user who ended it."""
    if row["status"] == EXPIRED:
        return IGNORED
    if row["surface"] == AUTO_SURFACE:
        return TAKEN_BACK if row["proposal_id"] in back else STANDING
    if row["surface"] not in PEOPLE or row["status"] not in (APPROVED, REJECTED):
        return ""
    if row["status"] == REJECTED:
        return REFUSED
    return TAKEN if _is_as_offered(row) else EDITED


def _is_as_offered(row: ProposalState) -> bool:
    moved = row["decided_section"] and _same(row["decided_section"]) != _same(row["section"])
    return not moved and one_line(row["decided_text"] or "") == one_line(row["text"])


def _same(section: str) -> Sequence[str]:
    return section.casefold().split()


OFF, ON = "off", "on"
SHOWN_FOR = timedelta(days=1)
"""Time in which the user can decide first."""
HOW_TO_TAKE_BACK = "promoted automatically; delete or strike out its line in MEMORY.md to take it back"


@dataclass(frozen=True)
class AutoPromotions:
    """`rows`: events of what would be promoted without asking. `decisions`: what is, being `on`."""

    rows: list[dict[str, str]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def automatic_promotions(
    workspace: Workspace, log: ProposalLog, now: datetime, *, unread: Collection[str] = ()
) -> AutoPromotions:
    """Proposals that would be promoted without asking, and the decisions to take now, where the section is `on`.

    ``unread`` may have been decided on a surface that nobody has looked at yet.
    """
    if workspace.settings.auto_promote == OFF:
        return AutoPromotions()
    earned = standings(workspace, log)
    found = _candidates(workspace, log, earned, now, unread)
    rows = [
        {
            "proposal_id": row["proposal_id"],
            "section": row["section"],
            "reason": _took(earned[row["section"]].acceptance),
        }
        for row in found
    ]
    decisions = [
        Decision(row["proposal_id"], APPROVED, AUTO_SURFACE, one_line(row["text"]), reason=HOW_TO_TAKE_BACK)
        for row in found
        if workspace.settings.auto_promote == ON and earned[row["section"]].precision.is_trusted
    ]
    return AutoPromotions(rows, decisions)


def _candidates(
    workspace: Workspace,
    log: ProposalLog,
    earned: Mapping[str, Standing],
    now: datetime,
    unread: Collection[str],
) -> list[ProposalState]:
    """Pending high lines of trusted sections, in the user's own words, that were shown a day ago and still hold.

    One that takes another line's place is none: striking out is the user's.
    """
    trusted = [section for section, standing in earned.items() if standing.acceptance.is_trusted]
    waiting = log.frame.filter(
        pl.col("status") == PENDING,
        ~_IS_FIX,
        pl.col("section").is_in(trusted),
        pl.col("priority") == HIGH,
        pl.col("supersedes").list.len().fill_null(0) == 0,
        "on_display",
        pl.col("first_shown") <= now - SHOWN_FOR,
    )
    rows = _in_own_words(workspace, [r for r in typed_rows(waiting, ProposalState) if r["proposal_id"] not in unread])
    unfit = invalid(workspace, log, {r["proposal_id"]: one_line(r["text"]) for r in rows})
    return [r for r in rows if r["proposal_id"] not in unfit]


def _in_own_words(workspace: Workspace, rows: Sequence[ProposalState]) -> list[ProposalState]:
    """Those that rest on unflagged words of the user alone; what is no longer in the tables cannot be told."""
    days = {day for row in rows for day in lookback(row["day"], workspace.settings.lookback_days)}
    columns = ["observation_id", "trust", "flags"]
    observed = {o: (trust, flags) for o, trust, flags in workspace.lake.read("observations", days, columns).iter_rows()}

    def is_own(source: str) -> bool:
        trust, flags = observed.get(source, (None, None))
        return trust == USER and not flags

    return [row for row in rows if row["sources"][1:] and all(map(is_own, row["sources"][1:]))]


def report(workspace: Workspace, log: ProposalLog) -> list[str]:
    """A sentence for each section: what it has earned, and how its shadow fared. None while the setting is off."""
    if workspace.settings.auto_promote == OFF:
        return []
    earned = standings(workspace, log)
    order = [s for s in workspace.settings.sections if s in earned] + sorted(
        set(earned) - set(workspace.settings.sections)
    )
    return [_sentence(section, earned[section], is_on=workspace.settings.auto_promote == ON) for section in order]


def in_shadow(workspace: Workspace, log: ProposalLog) -> list[str]:
    """Sections that `on` is asked for and that have not earned it yet, each with the reason."""
    if workspace.settings.auto_promote != ON:
        return []
    earned = standings(workspace, log)
    return [f"{section} stays in shadow: {why}" for section, s in sorted(earned.items()) if (why := _why_in_shadow(s))]


def _sentence(section: str, standing: Standing, *, is_on: bool) -> str:
    rate = standing.acceptance
    parts = [_took(rate)]
    if standing.would_promote:
        parts.append(_outcomes(standing))
    if is_on:
        parts.append(_why_in_shadow(standing) or "on")
        if parts[-1] != "on":
            parts[-1] = f"stays in shadow: {parts[-1]}"
    word = "trusted" if rate.is_trusted else "not trusted"
    return f"{section}: {word}, " + "; ".join(parts)


def _took(rate: Rate) -> str:
    enough = f"at least {rate.lower:.2f}" if rate.counted >= MIN_DECISIONS else f"{MIN_DECISIONS} decisions are needed"
    return f"{rate.good} of your last {rate.counted} decisions took the line as offered ({enough})"


def _outcomes(standing: Standing) -> str:
    """`would have promoted 12; you approved 11, rejected 1 (precision 0.92)`"""
    ends, precision = standing.outcomes, standing.precision
    person = [f"{end} {ends[end]}" for end in BY_PERSON if ends[end] or end == TAKEN]
    rate = f"precision {precision.share:.2f}, at least {precision.lower:.2f}" if precision.counted else "none decided"
    other = f"; promoted {ends[STANDING]}, standing" if ends[STANDING] else ""
    return f"would have promoted {standing.would_promote}; you {', '.join(person)} ({rate}){other}"


def _why_in_shadow(standing: Standing) -> str | None:
    """Why nothing is promoted to a section even where it is asked for."""
    precision = standing.precision
    if not standing.acceptance.is_trusted:
        return "its decisions do not carry it yet"
    if precision.counted < MIN_DECISIONS:
        return f"you decided {precision.counted} lines that it would have promoted, {MIN_DECISIONS} are needed"
    if not precision.is_trusted:
        return f"its precision is at least {precision.lower:.2f}, {TRUSTED_FROM:.2f} is needed"
    return None


def recently_promoted(workspace: Workspace, log: ProposalLog, now: datetime) -> list[str]:
    """Lines that were promoted automatically within the time that a proposal is shown for, and still stand."""
    since = now - timedelta(days=workspace.settings.proposal_expiry_days)
    in_time = (pl.col("decided_at") > since) & (pl.col("decided_at") <= now)  # a clock may have been wrong
    recent = log.frame.filter(pl.col("surface") == AUTO_SURFACE, in_time)
    back = retracted(workspace, log) if recent.height else set()
    return [p for p in recent.sort("decided_at", "proposal_id")["proposal_id"] if p not in back]
