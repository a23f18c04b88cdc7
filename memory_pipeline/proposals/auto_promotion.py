"""Automatic promotion to sections whose proposals a user nearly always approves: off by default, and in shadow mode
first.

The user's decisions are counted by section of MEMORY.md. Only decisions are stored: rates are computed from them each
time, so a section can lose the trust that it earned. In shadow mode an event records what would have been promoted, and
the user's later decision is compared with it. With the setting `on`, lines are promoted only to a section whose shadow
was right often enough.
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
"""Number of last decisions that count in a section's rate, so that it follows a user who changes their mind."""
MIN_DECISIONS = 20
"""Minimum number of decisions for a rate of a section."""
TRUSTED_FROM = 0.90
"""Minimum lower bound of a rate."""
_Z = 1.959964
"""Quantile of the 95 % interval. With it, 35 decisions that all accept the line as offered are enough; of 50, all
must."""
PEOPLE = (REVIEW_SURFACE, COMMAND_SURFACE, PAGE_SURFACE, TODOIST_SURFACE)
TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK = "approved", "edited", "rejected", "let expire", "took back"
BY_PERSON = (TAKEN, EDITED, REFUSED, IGNORED, TAKEN_BACK)
STANDING = "stands"
"""A line was promoted automatically and not retracted, which is no evidence: maybe no user has seen it."""
_IS_FIX = pl.col("proposal_id").str.starts_with("f-")
"""Decisions on friction fixes do not count for a section's lines; see `auto_fix` for those."""


@dataclass(frozen=True)
class Rate:
    """A share, given as two counts."""

    good: int
    counted: int

    @property
    def share(self) -> float:
        return self.good / self.counted if self.counted else 0.0

    @property
    def lower(self) -> float:
        """The lower bound of the Wilson interval: the minimum rate that this few decisions show."""
        if not self.counted:
            return 0.0
        n, p, zz = self.counted, self.share, _Z * _Z
        return max(0.0, (p + zz / (2 * n) - _Z * sqrt(p * (1 - p) / n + zz / (4 * n * n))) / (1 + zz / n))

    @property
    def is_trusted(self) -> bool:
        return self.counted >= MIN_DECISIONS and self.lower >= TRUSTED_FROM


@dataclass
class Standing:
    """The track record of a section: the rate of its last decisions, and the outcomes of its shadow promotions."""

    acceptance: Rate = Rate(0, 0)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Outcomes of the proposals that would have been promoted."""

    @property
    def would_promote(self) -> int:
        return self.outcomes.total()

    @property
    def precision(self) -> Rate:
        return Rate(self.outcomes[TAKEN], sum(self.outcomes[end] for end in BY_PERSON))


def standings(workspace: Workspace, log: ProposalLog) -> dict[str, Standing]:
    """The track record of each section with decisions; lines without a section have too little in common.

    Only a line that was approved unchanged, in text and section, counts as accepted: any other would have been promoted
    wrongly. An expired line is not accepted: it was shown on seven days, and a user who approves good lines and ignores
    the rest must not count as one who approves all. Superseded and invalid lines show nothing about the user.
    """
    back = retracted(workspace, log)
    ended = log.frame.filter(pl.col("status") != PENDING, ~_IS_FIX).sort("decided_at", "proposal_id")
    said: dict[str, list[bool]] = {}
    ends: dict[str, str] = {}
    for row in typed_rows(ended, ProposalState):
        ends[row["proposal_id"]] = end = _outcome(row, back)
        if end not in (STANDING, "") and row["section"] != REFLECTED:
            said.setdefault(row["section"], []).append(end == TAKEN)
    result = {s: Standing(Rate(sum(goods[-COUNTED:]), len(goods[-COUNTED:]))) for s, goods in said.items()}
    noted = log.events(WOULD_PROMOTE, pl.col("section") != REFLECTED)
    for proposal_id, section in noted.select("proposal_id", "section").iter_rows():
        result.setdefault(section, Standing()).outcomes[ends.get(proposal_id, PENDING)] += 1
    return result


def retracted(workspace: Workspace, log: ProposalLog) -> set[str]:
    """Ids of lines that were promoted automatically and are now deleted, struck through or edited in MEMORY.md.

    A line that was replaced with the user's approval does not count.
    """
    approved = log.frame.filter(pl.col("status") == APPROVED)
    automatic = set(approved.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    if not automatic or not workspace.settings.memory_file.exists():  # a missing file says nothing about a line
        return set()
    promoted = log.events(PROMOTED).select("proposal_id", "text").iter_rows()
    replaced = set(approved["supersedes"].explode(empty_as_null=True).drop_nulls())
    lines = lines_of(workspace.settings.memory_file.read_bytes())
    there = {normalised(line.text) for line in lines}  # a line that is struck through has ~~ around it
    return {p for p, text in promoted if p in automatic - replaced and normalised(text) not in there}


def _outcome(row: ProposalState, back: set[str]) -> str:
    """The outcome of a decided proposal; empty if the user did not decide it."""
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
    moved = row["decided_section"] and _section_words(row["decided_section"]) != _section_words(row["section"])
    return not moved and one_line(row["decided_text"] or "") == one_line(row["text"])


def _section_words(section: str) -> Sequence[str]:
    return section.casefold().split()


OFF, ON = "off", "on"
SHOWN_FOR = timedelta(days=1)
"""Time for which a line is shown first, so that the user can decide."""
HOW_TO_TAKE_BACK = "promoted automatically; delete or strike out its line in MEMORY.md to take it back"


@dataclass(frozen=True)
class AutoPromotions:
    """Events of the proposals that would be promoted automatically (`rows`), and, with the setting `on`, the decisions
    to promote them."""

    rows: list[dict[str, str]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def automatic_promotions(
    workspace: Workspace, log: ProposalLog, now: datetime, *, unread: Collection[str] = ()
) -> AutoPromotions:
    """Proposals that would be promoted automatically, and the decisions to take now for sections that are `on`.

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
            "reason": _format_acceptance(earned[row["section"]].acceptance),
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
    """Pending high lines for trusted sections, in the user's own words, that were shown a day ago and are still valid.

    A line that replaces another is excluded: only the user strikes lines out.
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
    rows = _with_user_evidence(
        workspace, [r for r in typed_rows(waiting, ProposalState) if r["proposal_id"] not in unread]
    )
    unfit = invalid(workspace, log, {r["proposal_id"]: one_line(r["text"]) for r in rows})
    return [r for r in rows if r["proposal_id"] not in unfit]


def _with_user_evidence(workspace: Workspace, rows: Sequence[ProposalState]) -> list[ProposalState]:
    """The rows whose evidence is only unflagged words of the user; none if their observations are no longer stored."""
    days = {day for row in rows for day in lookback(row["day"], workspace.settings.lookback_days)}
    columns = ["observation_id", "trust", "flags"]
    observed = {o: (trust, flags) for o, trust, flags in workspace.lake.read("observations", days, columns).iter_rows()}

    def is_own(source: str) -> bool:
        trust, flags = observed.get(source, (None, None))
        return trust == USER and not flags

    return [row for row in rows if row["sources"][1:] and all(map(is_own, row["sources"][1:]))]


def report(workspace: Workspace, log: ProposalLog) -> list[str]:
    """A sentence for each section about its track record and its shadow promotions; empty while the setting is off."""
    if workspace.settings.auto_promote == OFF:
        return []
    earned = standings(workspace, log)
    order = [s for s in workspace.settings.sections if s in earned] + sorted(
        set(earned) - set(workspace.settings.sections)
    )
    return [_sentence(section, earned[section], is_on=workspace.settings.auto_promote == ON) for section in order]


def in_shadow(workspace: Workspace, log: ProposalLog) -> list[str]:
    """Sections that are set to `on` but are not trusted yet, each with the reason."""
    if workspace.settings.auto_promote != ON:
        return []
    earned = standings(workspace, log)
    return [f"{section} stays in shadow: {why}" for section, s in sorted(earned.items()) if (why := _shadow_reason(s))]


def _sentence(section: str, standing: Standing, *, is_on: bool) -> str:
    rate = standing.acceptance
    parts = [_format_acceptance(rate)]
    if standing.would_promote:
        parts.append(_outcomes(standing))
    if is_on:
        parts.append(_shadow_reason(standing) or "on")
        if parts[-1] != "on":
            parts[-1] = f"stays in shadow: {parts[-1]}"
    word = "trusted" if rate.is_trusted else "not trusted"
    return f"{section}: {word}, " + "; ".join(parts)


def _format_acceptance(rate: Rate) -> str:
    enough = f"at least {rate.lower:.2f}" if rate.counted >= MIN_DECISIONS else f"{MIN_DECISIONS} decisions are needed"
    return f"{rate.good} of your last {rate.counted} decisions took the line as offered ({enough})"


def _outcomes(standing: Standing) -> str:
    """The outcomes as text: `would have promoted 12; you approved 11, rejected 1 (precision 0.92)`."""
    ends, precision = standing.outcomes, standing.precision
    person = [f"{end} {ends[end]}" for end in BY_PERSON if ends[end] or end == TAKEN]
    rate = f"precision {precision.share:.2f}, at least {precision.lower:.2f}" if precision.counted else "none decided"
    other = f"; promoted {ends[STANDING]}, standing" if ends[STANDING] else ""
    return f"would have promoted {standing.would_promote}; you {', '.join(person)} ({rate}){other}"


def _shadow_reason(standing: Standing) -> str | None:
    """The reason why nothing is promoted to a section that is `on`, or None."""
    precision = standing.precision
    if not standing.acceptance.is_trusted:
        return "its decisions are not sufficient yet"
    if precision.counted < MIN_DECISIONS:
        return f"you decided {precision.counted} lines that it would have promoted, {MIN_DECISIONS} are needed"
    if not precision.is_trusted:
        return f"its precision is at least {precision.lower:.2f}, {TRUSTED_FROM:.2f} is needed"
    return None


def recently_promoted(workspace: Workspace, log: ProposalLog, now: datetime) -> list[str]:
    """Lines that were promoted automatically within the time for which a proposal is shown, and are still in
    MEMORY.md."""
    since = now - timedelta(days=workspace.settings.proposal_expiry_days)
    in_time = (pl.col("decided_at") > since) & (pl.col("decided_at") <= now)  # no future times, from a wrong clock
    recent = log.frame.filter(pl.col("surface") == AUTO_SURFACE, in_time)
    back = retracted(workspace, log) if recent.height else set()
    return [p for p in recent.sort("decided_at", "proposal_id")["proposal_id"] if p not in back]
