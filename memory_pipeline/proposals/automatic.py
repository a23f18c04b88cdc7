"""Approval without the user, off by default: lines of trusted sections, and low-risk friction fixes.

Each waits until it was on display for a day, so that the user can decide first.

A section of MEMORY.md is trusted while the user approves nearly all of its lines as offered. In shadow mode an event
records what would have been promoted, and the user's later decision is compared with it. With the setting `on`, lines
are promoted only to a section whose shadow was right often enough. Only decisions are stored: rates are computed from
them each time, so a section can lose the trust that it earned.

The friction search determines which fixes are low-risk: a rule that the user stated and that no file has, or a stale
line of MEMORY.md. Only changes to files of the workspace are applied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import ProposalState, typed_rows
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    EXPIRED,
    PENDING,
    PROMOTED,
    REJECTED,
    USER_SURFACES,
    WOULD_PROMOTE,
    Decision,
    ProposalLog,
    is_fix,
)
from memory_pipeline.proposals.memory_file import normalised, read_lines
from memory_pipeline.proposals.offering import USER
from memory_pipeline.proposals.outcomes import invalid
from memory_pipeline.reflections.types import REFLECTED
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.workspace.workspace import Workspace

OFF, ON = "off", "on"
SHOWN_FOR = timedelta(days=1)
HOW_TO_UNDO = "approved automatically; undo its change in the file to take it back"
COUNTED = 50
"""Number of last decisions that count in a section's rate, so that it follows a user who changes their mind."""
MIN_DECISIONS = 20
"""Minimum number of decisions for a rate of a section."""
TRUSTED_FROM = 0.90
"""Minimum lower bound of a rate."""
_Z = 1.959964
"""Quantile of the 95 % interval. With it, 35 decisions that all accept the line as offered are enough; of 50, all
must."""


@dataclass(frozen=True)
class Rate:
    """A share, given as two counts."""

    good: int = 0
    counted: int = 0

    @property
    def lower(self) -> float:
        """The lower bound of the Wilson interval: the minimum rate that this few decisions show."""
        if not self.counted:
            return 0.0
        n, p, zz = self.counted, self.good / self.counted, _Z * _Z
        return max(0.0, (p + zz / (2 * n) - _Z * sqrt(p * (1 - p) / n + zz / (4 * n * n))) / (1 + zz / n))

    @property
    def is_trusted(self) -> bool:
        return self.counted >= MIN_DECISIONS and self.lower >= TRUSTED_FROM

    def __str__(self) -> str:
        enough = f"at least {self.lower:.2f}" if self.counted >= MIN_DECISIONS else f"{MIN_DECISIONS} are needed"
        return f"{self.good} of {self.counted} ({enough})"


@dataclass(frozen=True)
class TrackRecord:
    """The user's decisions on the lines of a section: the last ones, and those on lines that would have been promoted.
    Both count the lines that were approved as offered."""

    acceptance: Rate = Rate()
    shadow: Rate = Rate()

    @property
    def is_proven(self) -> bool:
        return self.acceptance.is_trusted and self.shadow.is_trusted

    @property
    def accepted(self) -> str:
        return f"you approved as offered {self.acceptance}"


def automatic_approvals(
    workspace: Workspace, log: ProposalLog, now: datetime, unread: Collection[str]
) -> tuple[list[dict[str, str]], list[Decision]]:
    """Rows of events for the lines that would be promoted, and the approvals for which automatic approval is on.

    ``unread`` may have been decided on a surface that was not read yet.
    """
    settings = workspace.settings
    is_read = ~pl.col("proposal_id").is_in(list(unread))
    low_risk = [p for p, fix in log.fixes.items() if fix["low_risk"] and fix["place"]] if settings.auto_fix else []
    approved = _shown_long_enough(workspace, log, now, is_read, pl.col("proposal_id").is_in(low_risk))
    records = track_records(workspace, log) if settings.auto_promote != OFF else {}
    lines = _promotable(workspace, log, now, is_read, records)
    noted = [
        {"proposal_id": r["proposal_id"], "section": r["section"], "reason": records[r["section"]].accepted}
        for r in lines
    ]
    approved += [r for r in lines if settings.auto_promote == ON and records[r["section"]].is_proven]
    return noted, [Decision(r["proposal_id"], APPROVED, AUTO_SURFACE, r["text"], reason=HOW_TO_UNDO) for r in approved]


def _promotable(
    workspace: Workspace, log: ProposalLog, now: datetime, is_read: pl.Expr, records: Mapping[str, TrackRecord]
) -> list[ProposalState]:
    """High lines of trusted sections, whose evidence is only unflagged words of the user; none if their observations
    are no longer stored. A line that replaces another is excluded, as only the user strikes lines out."""
    trusted = [section for section, record in records.items() if record.acceptance.is_trusted]
    conditions = (
        pl.col("proposal_id").str.starts_with("p-"),
        pl.col("section").is_in(trusted),
        pl.col("priority") == HIGH,
        pl.col("supersedes").list.len().fill_null(0) == 0,
    )
    rows = _shown_long_enough(workspace, log, now, is_read, *conditions)
    days = {day for row in rows for day in lookback(row["day"], workspace.settings.lookback_days)}
    observed = workspace.lake.read("observations", days, ["observation_id", "trust", "flags"])
    is_own = (pl.col("trust") == USER) & (pl.col("flags").list.len().fill_null(0) == 0)
    own = set(observed.filter(is_own)["observation_id"])
    return [row for row in rows if row["sources"][1:] and own.issuperset(row["sources"][1:])]


def _shown_long_enough(
    workspace: Workspace, log: ProposalLog, now: datetime, *conditions: pl.Expr
) -> list[ProposalState]:
    """The pending proposals with these conditions that were shown a day ago and are still valid."""
    is_old = pl.col("first_shown") <= now - SHOWN_FOR
    rows = typed_rows(log.frame.filter(pl.col("status") == PENDING, "on_display", is_old, *conditions), ProposalState)
    unfit = invalid(workspace, log, {r["proposal_id"]: r["text"] for r in rows})
    return [r for r in rows if r["proposal_id"] not in unfit]


def track_records(workspace: Workspace, log: ProposalLog) -> dict[str, TrackRecord]:
    """The track record of each section with decisions; lines without a section have too little in common.

    Only a line that was approved unchanged, in text and section, counts as accepted: any other would have been promoted
    wrongly. An expired line is not accepted: it was shown on seven days, and a user who approves good lines and ignores
    the rest must not count as one who approves all. Superseded and invalid lines show nothing about the user.
    """
    back = retracted(workspace, log)
    noted = set(log.events(WOULD_PROMOTE)["proposal_id"])
    decided: dict[str, list[tuple[bool, bool]]] = {}
    for row in typed_rows(log.frame.sort("decided_at", "proposal_id"), ProposalState):
        accepted = _is_accepted(row, back)
        if accepted is not None and row["section"] != REFLECTED and not is_fix(row["proposal_id"]):
            decided.setdefault(row["section"], []).append((accepted, row["proposal_id"] in noted))
    records = {}
    for section, made in decided.items():
        last = [accepted for accepted, _ in made[-COUNTED:]]
        shadow = [accepted for accepted, was_noted in made if was_noted]
        records[section] = TrackRecord(Rate(sum(last), len(last)), Rate(sum(shadow), len(shadow)))
    return records


def _is_accepted(row: ProposalState, back: Collection[str]) -> bool | None:
    """Whether the user approved the proposal as offered; None if the user did not decide on it.

    A line that was promoted automatically and stands is no evidence: maybe no user has seen it.
    """
    if row["status"] == EXPIRED:
        return False
    if row["surface"] == AUTO_SURFACE:
        return False if row["proposal_id"] in back else None
    if row["surface"] not in USER_SURFACES or row["status"] not in (APPROVED, REJECTED):
        return None
    is_moved = (row["decided_section"] or row["section"]).casefold().split() != row["section"].casefold().split()
    is_edited = one_line(row["decided_text"] or "") != one_line(row["text"])
    return row["status"] == APPROVED and not is_moved and not is_edited


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
    lines = read_lines(workspace.settings.memory_file)
    there = {normalised(line.text) for line in lines}  # a line that is struck through has ~~ around it
    return {p for p, text in promoted if p in automatic - replaced and normalised(text) not in there}


def recently_approved(workspace: Workspace, log: ProposalLog, now: datetime) -> list[str]:
    """Proposals that were approved automatically within the time for which one is shown, without retracted lines."""
    since = now - timedelta(days=workspace.settings.proposal_expiry_days)
    in_time = (pl.col("decided_at") > since) & (pl.col("decided_at") <= now)  # no future times, from a wrong clock
    recent = log.frame.filter(pl.col("surface") == AUTO_SURFACE, in_time)
    back = retracted(workspace, log) if recent.height else set()
    return [p for p in recent.sort("decided_at", "proposal_id")["proposal_id"] if p not in back]


def report(workspace: Workspace, log: ProposalLog) -> list[str]:
    """A sentence for each section about its track record; empty while the setting is off."""
    setting, found = workspace.settings.auto_promote, []
    for section, record in sorted(track_records(workspace, log).items()) if setting != OFF else ():
        mode = "trusted, in shadow" if record.acceptance.is_trusted else "not trusted"
        mode = "on" if setting == ON and record.is_proven else mode
        found.append(
            f"{section}: {record.accepted}; of the lines that it would have promoted, you approved {record.shadow}; "
            f"{mode}"
        )
    return found
