"""The outcomes that no user decides: a proposal is replaced, withdrawn, expired or, at its approval, invalid.

A proposal expires once runs displayed it (in REVIEW.md, or as a task in Todoist) on `proposal_expiry_days` different
days before today. A clock that jumps ahead and a holiday without runs add one day or none. Waiting and displaced
proposals are not displayed, so they do not expire. The same number of 24-hour periods must have passed since the
proposal appeared, so that a user who looks once a week sees it.

Limit: it is unknown whether a user looked. The days of a machine that runs while its user is away count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of, lookback
from memory_pipeline.friction.active import last_day_looked_at, patterns_on
from memory_pipeline.lake.rows import FixRow, FrictionRow, ProposalState, typed_rows
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import (
    EXPIRED,
    EXPIRY_SURFACE,
    FRICTION_SURFACE,
    PENDING,
    SUPERSEDED,
    SUPERSESSION_SURFACE,
    WITHDRAWN,
    Decision,
    ProposalLog,
    is_fix,
)
from memory_pipeline.proposals.memory_file import MemoryLine, normalised, read_active_lines
from memory_pipeline.settings import Settings
from memory_pipeline.text.relation import EQUAL, is_same
from memory_pipeline.workspace.workspace import Workspace


def supersessions(log: ProposalLog) -> list[Decision]:
    """Decisions on the pending proposals that a newer one replaces."""
    newer = log.frame.filter(pl.col("status") != WITHDRAWN, pl.col("supersedes").list.len() > 0)
    over = {old: (p, text) for p, olds, text in newer["proposal_id", "supersedes", "text"].iter_rows() for old in olds}
    return [
        Decision(
            old, SUPERSEDED, SUPERSESSION_SURFACE, row["text"], reason="{} says what holds now: {}".format(*over[old])
        )
        for old, row in log.rows(over).items()
        if row["status"] == PENDING
    ]


def withdrawals(workspace: Workspace, log: ProposalLog) -> list[Decision]:
    """Decisions on the pending fixes whose patterns had ended on the newest day of the friction search: a problem that
    stopped needs no change."""
    looked_at, status = last_day_looked_at(workspace.lake), log.status
    waiting = {p: fix for p, fix in log.fixes.items() if status.get(p) == PENDING}
    if looked_at is None or not waiting:
        return []
    since = min(fix["first_day"] for fix in waiting.values())
    days = [day for day in workspace.lake.days("friction_clusters") if since <= day <= looked_at]
    rows = workspace.lake.read("friction_clusters", days).filter(pl.col("pattern_id").is_in(list(waiting)))
    made = []
    for pattern in patterns_on(looked_at, typed_rows(rows, FrictionRow), workspace.settings.lookback_days):
        if pattern.ended_on is not None:
            reason = f"its pattern ended on {pattern.ended_on}; it last happened on {pattern.last_day}"
            p = pattern.row["pattern_id"]
            made.append(Decision(p, WITHDRAWN, FRICTION_SURFACE, waiting[p]["text"], reason=reason))
    return made


def expiries(settings: Settings, log: ProposalLog, now: datetime) -> list[Decision]:
    """Decisions on the pending proposals that expire now."""
    appeared, period = pl.col("first_shown"), timedelta(days=settings.proposal_expiry_days)
    is_recent = (appeared <= now) & (appeared + period > now)  # a time in the future comes from a wrong clock
    waiting = log.frame.filter(pl.col("status") == PENDING, "on_display", ~is_recent.fill_null(False))
    made = []
    for row in typed_rows(waiting, ProposalState):
        if (days := days_shown(settings, row, now)) >= settings.proposal_expiry_days:
            reason = f"shown on {days} days without a decision"
            made.append(Decision(row["proposal_id"], EXPIRED, EXPIRY_SURFACE, row["text"], reason=reason))
    return made


def expiring_on(settings: Settings, row: ProposalState, now: datetime) -> date | None:
    """The day on which a displayed proposal expires if a run shows it every day, or None if that is not near."""
    shown, today = days_shown(settings, row, now), day_of(now, settings.zone)
    if not row["on_display"] or shown < settings.proposal_warning_days:
        return None
    return today + timedelta(days=max(0, settings.proposal_expiry_days - shown))


def days_shown(settings: Settings, row: ProposalState, now: datetime) -> int:
    """The number of days other than today on which it was shown; a day in the future counts too."""
    return len(set(row["shown_on"] or ()) - {day_of(now, settings.zone)})


SOURCE_GONE = "its source was withdrawn, made private or deleted"
Known = Sequence[tuple[MemoryLine, str]]
"""Lines of MEMORY.md, each with its normalised text."""


def invalid(workspace: Workspace, log: ProposalLog, approvals: Mapping[str, str]) -> dict[str, str]:
    """The reasons why approved proposals (id to text) must not be promoted, by id; valid ones are left out."""
    if not approvals:
        return {}
    rows = log.rows(approvals)
    gone, fixes = _without_source(workspace, rows), log.fixes
    known = [(line, normalised(line.text)) for line in read_active_lines(workspace.settings.memory_file)]
    found = {}
    for proposal_id, row in rows.items():
        text = approvals[proposal_id]
        if not one_line(text):
            found[proposal_id] = "none of its text is visible"
            continue
        if fix := fixes.get(proposal_id):
            reason = _invalid_fix_reason(workspace, fix, row, text, known)
        else:
            reason = SOURCE_GONE if proposal_id in gone else _known_reason(row, text, known)
        if reason:
            found[proposal_id] = reason
    return found


def _invalid_fix_reason(workspace: Workspace, fix: FixRow, row: ProposalState, text: str, known: Known) -> str | None:
    """The reason why a fix of MEMORY.md is invalid, or None; changes of other files are up to the user."""
    if fix["place"] != workspace.settings.memory_file.name:
        return None
    over = normalised(fix["replaces"] or "")
    if fix["adds"]:
        return _known_reason(row, text, known, over)
    is_there = any(over in said for _, said in known)
    return None if is_there else "MEMORY.md no longer has the line that it would strike out"


def _known_reason(row: ProposalState, text: str, known: Known, over: str = "") -> str | None:
    """The reason if MEMORY.md already has the text, in another line than those that it replaces (``over`` gives one by
    its words), or None."""
    replaced = set(row["supersedes"] or [])
    wanted = normalised(text)
    for line, said in known:
        if said == over:
            continue
        # an edited text is refused only if it is equal: the user has seen it
        same = said == wanted or (text == row["text"] and is_same(text, line.text, EQUAL))
        if same and line.proposal_id not in replaced:
            return f"MEMORY.md already says this, in line {line.line_number}"
    return None


def _without_source(workspace: Workspace, rows: Mapping[str, ProposalState]) -> set[str]:
    """Proposals whose source was withdrawn, made private or deleted. Days without tables show nothing."""
    rows = {p: row for p, row in rows.items() if not is_fix(p)}
    days = {d for row in rows.values() for d in lookback(row["day"], workspace.settings.lookback_days)}
    kept = [d for d in workspace.lake.days("messages") if d in days]
    messages = workspace.lake.read("messages", kept, ["message_id", "voided"])
    alive = set(messages.filter(~pl.col("voided").fill_null(False))["message_id"])
    said = {p: {span["message_id"] for span in row["evidence"] or []} for p, row in rows.items() if row["day"] in kept}
    return {p for p, ids in said.items() if ids and not ids & alive}
