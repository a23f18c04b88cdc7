"""Reconciliation of decisions, expiry, REVIEW.md and MEMORY.md in a single pass.

`reconcile` reads the events once, derives decisions with pure functions, stores them once, and writes REVIEW.md and
MEMORY.md once each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.llm.config import observer_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import (
    LOCK_SECONDS,
    decode,
    encode,
    remove_temporary_files,
    update_file,
    write_atomically,
)
from memory_pipeline.proposals.applying import apply_fixes, left_to_the_user, promote
from memory_pipeline.proposals.automatic import HOW_TO_UNDO, OFF, automatic_approvals, recently_approved
from memory_pipeline.proposals.cards import as_offered, as_proposal
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    COMMAND_SURFACE,
    DISPLACED,
    EXPIRED,
    INVALID,
    PENDING,
    REJECTED,
    REVIEW_SURFACE,
    SHOWN_DAY,
    SUPERSEDED,
    TODOIST_SURFACE,
    WITHDRAWN,
    WOULD_PROMOTE,
    Decision,
    OpenLog,
    ProposalLog,
    is_fix,
)
from memory_pipeline.proposals.fixes import MAX_SHOWN, new_fixes
from memory_pipeline.proposals.memory_file import PROPOSAL_ID
from memory_pipeline.proposals.outcomes import expiries, invalid, supersessions, withdrawals
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.remembering import IMPORTED
from memory_pipeline.proposals.review_file import (
    Proposal,
    ReviewReading,
    last_updated_in,
    offered_in,
    read_decisions,
    touched_in,
    update_review,
)
from memory_pipeline.proposals.shown_to_agents import refresh_agents
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


class UnknownProposalError(MemoryPipelineError):
    """No pending proposal has that id; the message gives its state."""


@dataclass
class Reconciled:
    """The result of a reconciliation, as proposal ids."""

    approved: list[str] = field(default_factory=list)
    """Proposals approved in REVIEW.md; `rejected` likewise."""
    rejected: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    damaged: str | None = None
    """The reason why REVIEW.md was not read."""
    invalid: dict[str, str] = field(default_factory=dict)
    """Proposals that the user approved but that were not promoted, with the reason."""
    expired: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    withdrawn: dict[str, str] = field(default_factory=dict)
    """Withdrawn fixes, whose patterns have ended, with the reason."""
    already: dict[str, str] = field(default_factory=dict)
    """Lines in the user's copy that were decided otherwise before, with that outcome."""
    automatic: list[str] = field(default_factory=list)
    """Proposals that were approved automatically."""
    promoted: list[str] = field(default_factory=list)
    """Proposals that are new in MEMORY.md."""
    offered: list[str] = field(default_factory=list)
    """New friction fixes."""
    applied: list[str] = field(default_factory=list)
    """Fixes that changed a file of the workspace in another way."""
    to_make: dict[str, str] = field(default_factory=dict)
    """Fixes approved now that the user or their agent makes, with the instruction."""
    not_refreshed: list[str] = field(default_factory=list)
    """The reasons why connected agents do not see the current lines."""
    pending: int = 0

    def add(self, decisions: Iterable[Decision]) -> None:
        """Add what was decided to the proposals of each outcome."""
        ids = {APPROVED: self.approved, REJECTED: self.rejected, EXPIRED: self.expired, SUPERSEDED: self.superseded}
        reasons = {INVALID: self.invalid, WITHDRAWN: self.withdrawn}
        for made in decisions:
            if made.decision in reasons:
                reasons[made.decision][made.proposal_id] = made.reason or ""
            else:
                (self.automatic if made.surface == AUTO_SURFACE else ids[made.decision]).append(made.proposal_id)

    @property
    def messages(self) -> list[str]:
        """Sentences about fixes that are left to the user, and about decisions that nobody took now."""
        return [
            *map(visible, self.to_make.values()),
            *(f"{p} is withdrawn: {reason}" for p, reason in self.withdrawn.items()),
            *(f"{p} is {HOW_TO_UNDO}" for p in self.automatic),
        ]

    @property
    def warnings(self) -> list[str]:
        """Sentences about marks without effect, and about agents that do not see the current lines."""
        unclear = f"Nothing was decided, because the mark in REVIEW.md is unclear: {', '.join(self.ignored)}"
        return [
            *(f"{p} is not promoted: {reason}" for p, reason in self.invalid.items()),
            *(f"{p} is already {state}, so its mark in REVIEW.md was not read" for p, state in self.already.items()),
            *([unclear] if self.ignored else []),
            *self.not_refreshed,
        ]

    @property
    def news(self) -> list[str]:
        """Sentences on changes that the user did not just cause on the page or the command line, and on open tasks."""
        found = [self.damaged] if self.damaged else []
        found += [f"{p} was approved in REVIEW.md." for p in self.approved]
        found += [f"{p} was rejected in REVIEW.md." for p in self.rejected]
        found += [f"{p} expired." for p in self.expired]
        found += [f"{p} superseded." for p in self.superseded]
        return [*found, *self.messages, *self.warnings]


def reconcile(
    workspace: Workspace, now: datetime, *, tasks_are_read: bool = False, wait: float = LOCK_SECONDS
) -> Reconciled:
    """Record the user's decisions in REVIEW.md and automatic ones, and update REVIEW.md and MEMORY.md.

    While Todoist is used, tasks expire only once they are read, as they may be completed already. Raises
    filelock.Timeout if another process reconciles for more than ``wait`` seconds.
    """
    settings, result, new = workspace.settings, Reconciled(), ""
    remove_temporary_files(settings.workspace, but_in=settings.dagster_home)  # once per run, like this function
    with OpenLog.open(workspace, wait=wait) as log:
        log.add_fixes(fixes := new_fixes(workspace, log, now), now)
        result.offered = [row["proposal_id"] for row in fixes]

        def edit(current: bytes | None) -> bytes:
            nonlocal new
            text = decode(current) if current is not None else None
            log.record_decisions(_new_decisions(workspace, log, text, now, result, tasks_are_read), now)
            new = _updated_review(workspace, log, None if result.damaged else text, now)
            # first the copy of what was shown, then the file, so that the file never has an unknown line
            _write_shown(settings, new)
            return encode(new)

        if settings.review_file.exists() or log.pending() or workspace.lake.days("observations"):
            update_file(settings.review_file, edit, backups=settings.backups)
            _record_display(log, new, now)
        result.promoted = promote(workspace, log, now)
        result.applied = apply_fixes(workspace, log, now)
        result.to_make = {p: how for p, how in left_to_the_user(log).items() if p in result.approved}
        result.pending = len(log.pending())
    result.not_refreshed = refresh_agents(settings)
    return result


def _updated_review(workspace: Workspace, log: ProposalLog, text: str | None, now: datetime) -> str:
    """The next text of REVIEW.md; without a text a new one.

    Proposals that are in it already are given without evidence, as the user may have edited it. All are displayed from
    now on, also those that returned, so that another run on the same day writes the same file.
    """
    settings, pending, current = workspace.settings, log.pending(), text or ""
    there = _proposals(settings, log, offered_in(current), now)
    waiting = _select_for_display(log, pending, touched_in(current, there), settings, now)
    rows: list[ProposalState] = [{**row, "on_display": True} for row in waiting]
    new = as_offered(workspace, log, [r for r in rows if r["proposal_id"] not in there], now=now)
    offered = {r["proposal_id"]: as_proposal(settings, log, r, now) for r in rows} | {p.proposal_id: p for p in new}
    return update_review(
        text,
        list(offered.values()),
        log.status.keys() - offered.keys(),  # decided, or displaced by better ones
        day=day_of(now, settings.zone),
        now=now,
        waiting=len(pending) - len(waiting),
        notices=list(_notices(workspace, log, now)),
    )


def _notices(workspace: Workspace, log: ProposalLog, now: datetime) -> Iterator[str]:
    """The proposals that were approved automatically, and what a workspace without any proposal has."""
    if AUTO_SURFACE in log.frame["surface"] and (automatic := recently_approved(workspace, log, now)):
        ids = ", ".join(f"`{p}`" for p in automatic)
        yield f"Approved automatically: {ids}. To take one back, undo its change in the file; `memory why ID` shows it."
    if not log.table("proposals").height:
        yield f"Nothing is sure enough to be offered: {_workspace_summary(workspace)}"


def _proposals(settings: Settings, log: ProposalLog, ids: Iterable[str], now: datetime) -> dict[str, Proposal]:
    """These proposals by id, without evidence; unknown ids are left out."""
    return {p: as_proposal(settings, log, row, now) for p, row in log.rows(ids).items()}


def decide(
    workspace: Workspace,
    decisions: Mapping[str, str],
    now: datetime,
    *,
    surface: str = COMMAND_SURFACE,
    texts: Mapping[str, str] | None = None,
    sections: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Record decisions from other surfaces than REVIEW.md; an approved line may have another text in ``texts``, and
    another section of MEMORY.md in ``sections``.

    Returns why approved proposals are invalid, by id. A decision is not recorded twice. Raises `UnknownProposalError`
    before anything is recorded. The next `reconcile` updates MEMORY.md.
    """
    with OpenLog.open(workspace) as log:
        rows = log.rows(decisions)
        for proposal_id, decision in decisions.items():
            _check_open(proposal_id, decision, rows.get(proposal_id))
        taken = []
        for p, decision in decisions.items():
            if rows[p]["status"] == PENDING:
                text = (texts or {}).get(p) or rows[p]["text"]
                text = visible(text) if is_fix(p) else one_line(text)  # the change of a fix may have several lines
                taken.append(Decision(p, decision, surface, text, (sections or {}).get(p)))
        made = _validated(workspace, log, taken)
        log.record_decisions(made, now)
    return {d.proposal_id: d.reason or "" for d in made if d.decision == INVALID}


def _check_open(proposal_id: str, decision: str, row: ProposalState | None) -> None:
    """Raise `UnknownProposalError` if the proposal cannot get this decision any more."""
    if row is None:
        raise UnknownProposalError(f"There is no proposal {proposal_id}; `memory review` lists the pending ones.")
    if (state := row["status"]) not in (PENDING, decision):
        how = "To keep it anyway, write the line into MEMORY.md yourself."
        if state == APPROVED:
            how = "To take it back, delete or strike out its line in the file."
        raise UnknownProposalError(f"{proposal_id} is already {state}, and a decision is final. {how}")


def not_understood(workspace: Workspace) -> list[str]:
    """The ids, pending and unknown ones, for which REVIEW.md is unclear."""
    path, log = workspace.settings.review_file, ProposalLog(workspace.lake)
    reading, _ = _read_review(workspace.settings, log, decode(path.read_bytes()) if path.exists() else None)
    return _undecided(log.status, reading.ignored)


def on_display(workspace: Workspace, log: ProposalLog) -> list[ProposalState]:
    """The pending proposals that are shown to the user now, best first: those in REVIEW.md, then others up to the
    limit."""
    path = workspace.settings.review_file
    on_file = offered_in(decode(path.read_bytes())) if path.exists() else {}
    return _select_for_display(log, log.pending(), on_file, workspace.settings, now_utc())


def _select_for_display(
    log: ProposalLog, waiting: list[ProposalState], kept: Collection[str], settings: Settings, now: datetime
) -> list[ProposalState]:
    """The kept proposals and the best of the others up to the limit, best first; fixes have their own limit.

    Half of the places are reserved for recent lines, so that a backfill does not displace them. Imported lines count as
    old, and take at most half of the places.
    """
    ids = [row["proposal_id"] for row in waiting]
    stays, others = [p for p in ids if p in kept], [p for p in ids if p not in kept]
    imported = set(log.table("remembered").filter(pl.col("trust") == IMPORTED)["proposal_id"])
    lately = now - timedelta(days=settings.lookback_days)
    recent = {row["proposal_id"] for row in waiting if row["last_seen"] and row["last_seen"] >= lately} - imported
    places = max(0, settings.pending_limit // 2 - len(imported.intersection(stays)))
    behind = set([p for p in others if p in imported][places:])
    chosen = set(stays)
    for limit, fixes in ((settings.pending_limit, False), (min(MAX_SHOWN, settings.pending_limit), True)):
        places = max(0, limit - sum(is_fix(p) == fixes for p in stays))
        own = [p for p in others if is_fix(p) == fixes and p not in behind]
        new = [p for p in own if p in recent][: places // 2]
        best = [p for p in own if p not in new][: places - len(new)]
        chosen.update(new, best)
    return [row for row in waiting if row["proposal_id"] in chosen]


def _record_display(log: OpenLog, text: str, now: datetime) -> None:
    """Record proposals that entered REVIEW.md, and undecided ones that left it.

    Both are derived from the current text, so the next run completes an interrupted one.
    """
    status, named = log.status, PROPOSAL_ID.findall(text)
    shown = [p for p in offered_in(text) if status.get(p) == PENDING]
    gone = [p for p in sorted(log.standing_on(REVIEW_SURFACE)) if p not in named and status.get(p) == PENDING]
    log.record(DISPLACED, gone, now, surface=REVIEW_SURFACE)
    log.record_shown(shown, now, surface=REVIEW_SURFACE)
    log.record(SHOWN_DAY, shown, now, surface=REVIEW_SURFACE)
    tasks = [p for p in sorted(log.standing_on(TODOIST_SURFACE)) if status.get(p) == PENDING]
    log.record(SHOWN_DAY, tasks, now, surface=TODOIST_SURFACE)


def _read_review(settings: Settings, log: ProposalLog, text: str | None) -> tuple[ReviewReading, dict[str, Proposal]]:
    """The decisions in REVIEW.md, and the proposals that were in it when it was last written, or displaced before."""
    path, now = settings.review_shown, now_utc()  # the time is irrelevant here
    base = decode(path.read_bytes()) if path.exists() else None
    if text is None and base is None:
        return ReviewReading({}, [], None, []), {}  # first run: nothing was shown before
    shown = _proposals(settings, log, offered_in(base if base is not None else text or ""), now)
    displaced = log.events(DISPLACED, pl.col("surface") == REVIEW_SURFACE)["proposal_id"]
    earlier = _proposals(settings, log, set(displaced) & set(offered_in(text or "")) - shown.keys(), now)
    stamp = last_updated_in(base) if base is not None else None
    return read_decisions(text, shown, earlier=earlier, last_updated=stamp), shown | earlier


def _undecided(status: Mapping[str, str], ids: Iterable[str]) -> list[str]:
    return [p for p in ids if status.get(p, PENDING) == PENDING]


def _new_decisions(
    workspace: Workspace, log: OpenLog, text: str | None, now: datetime, result: Reconciled, tasks_are_read: bool
) -> list[Decision]:
    """The user's decisions, then the automatic ones, each step based on the decisions before it.

    If REVIEW.md is unreadable, the only automatic ones are replacements, as the file may hold the user's decision.
    """
    made = _read_back(workspace, log, text, result)
    made += supersessions(log.after(made, now))
    if not result.damaged:
        settings = workspace.settings
        unread = set[str]() if tasks_are_read or not settings.todoist.enabled else log.shown_on(TODOIST_SURFACE)
        made += [d for d in withdrawals(workspace, log.after(made, now)) if d.proposal_id not in unread]
        made += [d for d in expiries(settings, log.after(made, now), now) if d.proposal_id not in unread]
        if settings.auto_fix or settings.auto_promote != OFF:
            noted, automatic = automatic_approvals(workspace, log.after(made, now), now, unread)
            log.add(WOULD_PROMOTE, noted, now)  # before the decisions: decided proposals are not considered again
            made += automatic
    result.add(made)
    return made


def _read_back(workspace: Workspace, log: ProposalLog, text: str | None, result: Reconciled) -> list[Decision]:
    """The user's decisions in REVIEW.md; unclear and late lines are noted in the result."""
    reading, known = _read_review(workspace.settings, log, text)
    status = log.status
    sections = offered_in(text or "")  # a line that a user moved to another group belongs to its section
    if reading.damaged:
        result.damaged = f"{reading.damaged} A new one was written; the old one is in backups/."
    result.ignored = _undecided(status, reading.ignored)
    automatic = set(log.frame.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    marked = dict.fromkeys(reading.approved, APPROVED) | dict.fromkeys(reading.rejected, REJECTED)
    marked |= {p: "" for p in reading.ignored if p in sections}
    result.already |= {
        p: f"{state} automatically" if p in automatic else state
        for p, mark in marked.items()
        if (state := status.get(p, PENDING)) not in (PENDING, mark) and (mark != REJECTED or state == APPROVED)
    }
    waiting = {p for p in known if status[p] == PENDING}
    approvals = reading.approved.items()
    made = [Decision(p, APPROVED, REVIEW_SURFACE, t, sections[p]) for p, t in approvals if p in waiting]
    made += [Decision(p, REJECTED, REVIEW_SURFACE, known[p].text) for p in reading.rejected if p in waiting]
    return _validated(workspace, log, made)


def _validated(workspace: Workspace, log: ProposalLog, decisions: Sequence[Decision]) -> list[Decision]:
    """The user's decisions; approved lines are validated again, and some become invalid."""
    reasons = invalid(workspace, log, {d.proposal_id: d.text for d in decisions if d.decision == APPROVED})
    return [
        replace(d, decision=INVALID, reason=reasons[d.proposal_id]) if d.proposal_id in reasons else d
        for d in decisions
    ]


def _workspace_summary(workspace: Workspace) -> str:
    """A sentence for an empty REVIEW.md about what the workspace has."""
    observed = workspace.lake.read("observations", columns=["session_id"])
    sessions = workspace.lake.read("sessions", columns=["session_id"])["session_id"].n_unique()
    there = (
        f"no rule, preference or decision was stated explicitly. {sessions} sessions can be searched "
        f"(`memory search`), and the daily logs have {observed.height} observations of them."
    )
    if observer_model(workspace.settings):
        return there
    return f"{there} A model would also find implicit ones: `memory setup` lists the models that can be used."


def _write_shown(settings: Settings, text: str) -> None:
    path = settings.review_shown
    write_atomically(path, encode(text), expected=path.read_bytes() if path.exists() else None, backups=None)


def now_utc() -> datetime:
    return datetime.now(UTC)
