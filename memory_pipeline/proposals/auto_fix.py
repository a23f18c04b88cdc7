"""Automatic application of low-risk friction fixes: off by default, and preceded by a dry run.

The friction search determines which fixes qualify (`low_risk`): a rule that the user stated and that no file has, or a
stale line of MEMORY.md. Only changes to files of the workspace are applied. While the setting is off, and for a day
after the first qualifying fix, nothing is applied, and `memory status` says what would be.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.proposals.events import APPROVED, AUTO_SURFACE, WOULD_APPLY, Decision, ProposalLog, is_fix
from memory_pipeline.proposals.fixes import where
from memory_pipeline.proposals.validity import invalid
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

DRY_RUN = timedelta(days=1)
"""Duration of the dry run after the first qualifying fix: time to read what would happen, and to switch it off."""
HOW_TO_UNDO = "applied automatically; undo its change in the file to revert it"
SHOWN = 60
"""Maximum characters of a line in a report."""


@dataclass(frozen=True)
class AutoFixes:
    """The ids of the fixes that would be applied automatically (`qualified`), and the decisions to apply some."""

    qualified: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


def automatic_fixes(
    workspace: Workspace, log: ProposalLog, now: datetime, *, unread: Collection[str] = ()
) -> AutoFixes:
    """Fixes that would be applied automatically, and the decisions to take now.

    ``unread`` are proposals that may have been decided on a surface that was not read yet.
    """
    if not workspace.settings.auto_fix:
        return AutoFixes()
    found = [row for row in candidates(workspace, log) if row["proposal_id"] not in unread]
    made = AutoFixes([row["proposal_id"] for row in found])
    if _end_of_dry_run(log, now) is None:
        made.decisions.extend(
            Decision(r["proposal_id"], APPROVED, AUTO_SURFACE, r["text"], reason=HOW_TO_UNDO) for r in found
        )
    return made


def candidates(workspace: Workspace, log: ProposalLog) -> list[ProposalState]:
    """Pending low-risk fixes for a file of the workspace that are still valid."""
    fixes = {p: fix for p, fix in log.fixes.items() if fix["low_risk"] and fix["place"]}
    rows = [row for row in log.pending() if row["proposal_id"] in fixes] if fixes else []
    unfit = invalid(workspace, log, {row["proposal_id"]: row["text"] for row in rows})
    return [row for row in rows if row["proposal_id"] not in unfit]


def report(workspace: Workspace, log: ProposalLog, now: datetime) -> list[str]:
    """Sentences about the fixes that were applied recently, and about those that would be; empty if there are none."""
    is_on, dry = workspace.settings.auto_fix, _end_of_dry_run(log, now)
    since = now - timedelta(days=workspace.settings.proposal_expiry_days)
    recent = log.frame.filter(pl.col("surface") == AUTO_SURFACE, pl.col("decided_at").is_between(since, now))
    done = [p for p in recent.sort("decided_at", "proposal_id")["proposal_id"] if is_fix(p)]
    messages = (
        [f"applied {', '.join(done)}; `memory why ID` shows what, undo it in the file to revert it"] if done else []
    )
    rows, fixes = candidates(workspace, log), log.fixes
    if rows:
        named = "; ".join(
            f"{p} in {where(fixes[p])}: “{clip(row['text'], SHOWN)}”" for row in rows if (p := row["proposal_id"])
        )
        when = "off (MEMORY_AUTO_FIX=true switches it on)"
        if is_on:
            when = f"dry run until {dry:%Y-%m-%d %H:%M}" if dry else "on, with the next run"
        messages.append(f"{when}: would apply {named}")
    return messages


def _end_of_dry_run(log: ProposalLog, now: datetime) -> datetime | None:
    """The end of the dry run; None once it is over. A time in the future comes from a wrong clock."""
    first = log.events(WOULD_APPLY, pl.col("happened_at") <= now)["happened_at"].min()
    end = (first if isinstance(first, datetime) else now) + DRY_RUN
    return end if end > now else None
