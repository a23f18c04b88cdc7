"""Reconciliation of decisions, expiry, REVIEW.md and MEMORY.md in a single pass.

`reconcile` reads the events once, derives decisions with pure functions, stores them once, and writes REVIEW.md and
MEMORY.md once each.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.rows import ProposalState, typed_rows
from memory_pipeline.llm.config import observer_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, decode, encode, keep_copy, update_file, write_atomically
from memory_pipeline.markdown.temporary_files import remove_temporary_files
from memory_pipeline.proposals.applying import apply_fixes, left_to_the_user, struck_by_fixes
from memory_pipeline.proposals.auto_fix import automatic_fixes
from memory_pipeline.proposals.auto_promotion import HOW_TO_TAKE_BACK, OFF, automatic_promotions, recently_promoted
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    COMMAND_SURFACE,
    DECIDED,
    DISPLACED,
    INVALID,
    PENDING,
    PROMOTED,
    REJECTED,
    REOFFERED,
    REVIEW_SURFACE,
    TODOIST_SURFACE,
    WOULD_APPLY,
    WOULD_PROMOTE,
    Decision,
    OpenLog,
    ProposalLog,
    is_fix,
)
from memory_pipeline.proposals.evidence import evidence_lines
from memory_pipeline.proposals.expiry import expiries, expiring_on
from memory_pipeline.proposals.fixes import MAX_SHOWN, adds_to_memory, change_of, new_fixes
from memory_pipeline.proposals.importing import imported_ids
from memory_pipeline.proposals.memory_copies import MemoryCopies, is_gone
from memory_pipeline.proposals.memory_file import PROPOSAL_ID, Promotion, add_lines, strike_lines, strike_words
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review_file import (
    Proposal,
    ReviewReading,
    last_updated_in,
    lines_by_id,
    offered_in,
    read_decisions,
    update_review,
    with_notices,
    without_notices,
)
from memory_pipeline.proposals.shown_to_agents import refresh_agents
from memory_pipeline.proposals.validity import invalid, supersessions
from memory_pipeline.proposals.withdrawing import WHY_AGAIN, had_given_way, recently_withdrawn, withdrawals
from memory_pipeline.reflections.types import REFLECTED
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

logger = logging.getLogger(__name__)
_OPEN = (PENDING, APPROVED, REJECTED)
"""States in which a late line is not reported: the user decided it themselves."""


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
    invalid: dict[str, str] = field(default_factory=dict)
    """Proposals that the user approved but that were not promoted, with the reason."""
    expired: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    withdrawn: dict[str, str] = field(default_factory=dict)
    """Withdrawn fixes, whose patterns have ended, with the reason."""
    came_back: list[str] = field(default_factory=list)
    """Proposals that such a fix had replaced, and that are pending again."""
    late: dict[str, str] = field(default_factory=dict)
    """Lines in the user's copy that were decided otherwise meanwhile, with that outcome."""
    automatic: list[str] = field(default_factory=list)
    """Proposals that were promoted automatically."""
    too_late: list[str] = field(default_factory=list)
    """Proposals that were promoted automatically before the user decided on them in a copy of REVIEW.md."""
    already: dict[str, str] = field(default_factory=dict)
    """Lines of an older copy of REVIEW.md that the user approved or rejected before."""
    refused: str | None = None
    """The reason for refusing the decisions of the command line."""
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


def reconcile(
    workspace: Workspace,
    now: datetime,
    *,
    decisions: Mapping[str, str] | None = None,
    tasks_are_read: bool = False,
    wait: float = LOCK_SECONDS,
) -> Reconciled:
    """Record the user's decisions in REVIEW.md and automatic ones, and update REVIEW.md and MEMORY.md.

    ``decisions`` maps ids to approved or rejected, as given on the command line. They apply after the marks in
    REVIEW.md; if one is refused, all are, `refused` says why, and everything else is done. While Todoist is used, tasks
    expire only once they are read, as they may be completed already. Raises filelock.Timeout if another process
    reconciles for more than ``wait`` seconds.
    """
    settings, result, shown, named = workspace.settings, Reconciled(), dict[str, str](), set[str]()
    remove_temporary_files(settings.workspace, but_in=settings.dagster_home)  # once per run, like this function
    with OpenLog.open(workspace, wait=wait) as log:
        log.add_fixes(fixes := new_fixes(workspace, log, now), now)
        result.offered = [row["proposal_id"] for row in fixes]
        left_before = left_to_the_user(log).keys()

        def edit(current: bytes | None) -> bytes:
            text = decode(current) if current is not None else None
            log.record_decisions(
                _new_decisions(workspace, log, text, decisions or {}, now, result, tasks_are_read), now
            )
            result.came_back += (again := had_given_way(log, list(result.withdrawn)))
            log.add(REOFFERED, [{"proposal_id": p, "reason": WHY_AGAIN} for p in again], now)
            status = log.status
            kept = None if result.damaged or text is None else without_notices(text)
            pending, on_file = log.pending(), offered_in(kept or "")
            waiting = _select_for_display(log, pending, _changed_by_user(log, text or ""), settings, now)
            offered = _proposals_for_file(workspace, log, waiting, on_file, now)
            out = status.keys() - {row["proposal_id"] for row in waiting}  # decided, or displaced by better ones
            new = update_review(kept, offered, out, day=day_of(now, settings.zone), now=now)
            shown.clear()
            shown.update({p: lines for p, lines in lines_by_id(new).items() if status.get(p) == PENDING})
            automatic: list[str] = []
            if AUTO_SURFACE in log.events(DECIDED)["surface"]:
                automatic = list(dict.fromkeys([*recently_promoted(workspace, log, now), *result.automatic]))
            withdrawn = recently_withdrawn(log, now, settings.proposal_expiry_days)
            instead = "" if log.table("proposals").height or fixes else _workspace_summary(workspace)
            new = with_notices(new, automatic, len(pending) - len(waiting), withdrawn, instead)
            # first the copy of what was shown, then the file, so that the file never has an unknown line
            _write_shown(settings, new)
            named.clear()
            named.update(PROPOSAL_ID.findall(new))
            return encode(new)

        if settings.review_file.exists() or log.pending() or workspace.lake.days("observations"):
            update_file(settings.review_file, edit, backups=settings.backups)
            _record_display(log, shown, named, now)
        else:
            log.record_decisions(_command_decisions(workspace, log, decisions or {}, result), now)
        result.promoted = _promote(workspace, log, now)
        result.applied = apply_fixes(workspace, log, now)
        result.to_make = {p: how for p, how in left_to_the_user(log).items() if p not in left_before}
        result.pending = len(log.pending())
    result.not_refreshed = refresh_agents(settings)
    return result


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
        taken = [
            replace(d, section=(sections or {}).get(d.proposal_id))
            for d in _new_user_decisions(log, decisions, surface, texts or {})
        ]
        made = _validated(workspace, log, taken)
        log.record_decisions(made, now)
    return {d.proposal_id: d.reason or "" for d in made if d.decision == INVALID}


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


def as_offered(
    workspace: Workspace, log: ProposalLog, rows: Iterable[ProposalState], *, now: datetime | None = None
) -> list[Proposal]:
    """Rows of `ProposalLog.frame` as items of REVIEW.md."""
    rows, now = list(rows), now or now_utc()
    if not rows:
        return []
    olds = {old for r in rows for old in r["supersedes"] or []}
    texts = log.events(PROMOTED).select("proposal_id", "text") if olds else pl.DataFrame()
    lines = evidence_lines(workspace, rows, {p: t for p, t in texts.iter_rows() if p in olds})
    return [_proposal(workspace.settings, log, r, lines[r["proposal_id"]], now) for r in rows]


def _proposal(settings: Settings, log: ProposalLog, row: ProposalState, evidence: str, now: datetime) -> Proposal:
    fix = log.fixes.get(row["proposal_id"]) if is_fix(row["proposal_id"]) else None
    expires_on = expiring_on(settings, row, now)
    change = change_of(fix) if fix else None
    return Proposal(row["proposal_id"], row["section"], row["text"], evidence, expires_on, change)


def _proposals_for_file(
    workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState], on_file: Collection[str], now: datetime
) -> list[Proposal]:
    """Pending proposals for the file, without evidence for those already in it, which the user may have edited.

    All are displayed from now on, also those that returned, so that another run on the same day writes the same file.
    """
    rows = [{**row, "on_display": True} for row in rows]
    new = as_offered(workspace, log, [r for r in rows if r["proposal_id"] not in on_file], now=now)
    evidence = {proposal.proposal_id: proposal.evidence for proposal in new}
    return [_proposal(workspace.settings, log, r, evidence.get(r["proposal_id"], ""), now) for r in rows]


def _select_for_display(
    log: ProposalLog, waiting: list[ProposalState], kept: Collection[str], settings: Settings, now: datetime
) -> list[ProposalState]:
    """The kept proposals and the best of the others up to the limit, best first; fixes have their own limit.

    Half of the places are reserved for recent lines, so that a backfill does not displace them. Imported lines count as
    old, and take at most half of the places.
    """
    lately = now - timedelta(days=settings.lookback_days)
    chosen: set[str] = set()
    imported = imported_ids(log)
    of_imports = [row["proposal_id"] for row in waiting if row["proposal_id"] in imported]
    stay, come = ([p for p in of_imports if (p in kept) == stays] for stays in (True, False))
    behind = set(come[max(0, settings.pending_limit // 2 - len(stay)) :])
    for limit, fixes in ((settings.pending_limit, False), (min(MAX_SHOWN, settings.pending_limit), True)):
        of_kind = [row for row in waiting if is_fix(row["proposal_id"]) == fixes]
        stays = [row["proposal_id"] for row in of_kind if row["proposal_id"] in kept]
        others = [row for row in of_kind if row["proposal_id"] not in kept and row["proposal_id"] not in behind]
        said = [row for row in others if row["proposal_id"] not in imported]
        places = max(0, limit - len(stays))
        new = [row["proposal_id"] for row in said if row["last_seen"] and row["last_seen"] >= lately][: places // 2]
        best = [row["proposal_id"] for row in others if row["proposal_id"] not in new][: places - len(new)]
        chosen.update(stays, new, best)
    return [row for row in waiting if row["proposal_id"] in chosen]


def _changed_by_user(log: ProposalLog, text: str) -> set[str]:
    """The proposals in REVIEW.md that differ from what was shown, because a user marked, edited, moved or commented on
    them, or whose shown text was not recorded."""
    shown, standing = log.standing_on(REVIEW_SURFACE), lines_by_id(text)
    return {p for p in offered_in(text) if p not in standing or standing[p] != shown.get(p)}


def _record_display(log: OpenLog, shown: Mapping[str, str], named: Collection[str], now: datetime) -> None:
    """Record proposals that entered REVIEW.md, with their lines there, and undecided ones that left it. Both are
    derived from the current file, so the next run completes an interrupted one."""
    status = log.status
    gone = [p for p in log.standing_on(REVIEW_SURFACE) if p not in named and status.get(p) == PENDING]
    log.record_displaced(gone, now, surface=REVIEW_SURFACE)
    log.record_shown(dict.fromkeys(shown), now, surface=REVIEW_SURFACE, lines=shown)
    log.record_day(now, surface=REVIEW_SURFACE, there=shown)
    tasks = [p for p in log.standing_on(TODOIST_SURFACE) if status.get(p) == PENDING]
    log.record_day(now, surface=TODOIST_SURFACE, there=tasks)


def _read_review(
    settings: Settings, log: ProposalLog, text: str | None
) -> tuple[ReviewReading, dict[str, ProposalState]]:
    """The decisions in REVIEW.md, and the proposals that were in it when it was last written."""
    base = settings.review_shown
    base_text = decode(base.read_bytes()) if base.exists() else None
    if text is None and base_text is None:
        return ReviewReading({}, [], None, []), {}  # first run: nothing was shown before
    known = log.rows(offered_in(base_text if base_text is not None else text or ""))
    stamp = last_updated_in(base_text) if base_text is not None else None
    displaced = log.events(DISPLACED, pl.col("surface") == REVIEW_SURFACE)["proposal_id"]
    earlier = log.rows(set(displaced) & set(offered_in(text or "")) - known.keys())
    now = now_utc()  # irrelevant here
    shown, before = ({p: _proposal(settings, log, r, "", now) for p, r in rows.items()} for rows in (known, earlier))
    return read_decisions(text, shown, earlier=before, last_updated=stamp), known | earlier


def _undecided(status: Mapping[str, str], ids: Iterable[str]) -> list[str]:
    return [p for p in ids if status.get(p, PENDING) == PENDING]


def _new_decisions(
    workspace: Workspace,
    log: OpenLog,
    text: str | None,
    commanded: Mapping[str, str],
    now: datetime,
    result: Reconciled,
    tasks_are_read: bool,
) -> list[Decision]:
    """The user's decisions, then the automatic ones, each step based on the decisions before it."""
    made = _read_back(workspace, log, text, result)
    made += _command_decisions(workspace, log.after(made, now), commanded, result)
    made += _automatic_decisions(workspace, log.after(made, now), now, result, tasks_are_read=tasks_are_read)
    if result.damaged:
        return made
    unread = _possibly_decided(workspace, log, tasks_are_read)
    if workspace.settings.auto_fix:
        fixes = automatic_fixes(workspace, log.after(made, now), now, unread=unread)
        log.add(WOULD_APPLY, [{"proposal_id": p} for p in fixes.qualified], now)
        result.automatic += [d.proposal_id for d in fixes.decisions]
        made += fixes.decisions
    if workspace.settings.auto_promote != OFF:
        found = automatic_promotions(workspace, log.after(made, now), now, unread=unread)
        log.add(WOULD_PROMOTE, found.rows, now)  # before the decisions: decided proposals are not considered again
        result.automatic += [d.proposal_id for d in found.decisions]
        made += found.decisions
    return made


def _read_back(workspace: Workspace, log: ProposalLog, text: str | None, result: Reconciled) -> list[Decision]:
    """The user's decisions in REVIEW.md; unclear and late lines are noted in the result."""
    reading, known = _read_review(workspace.settings, log, text)
    status = log.status
    result.damaged = reading.damaged
    waiting = {p for p in known if status[p] == PENDING}
    over = {p: s for p in [*reading.approved, *reading.ignored] if (s := status.get(p, PENDING)) not in _OPEN}
    result.late |= over
    automatic = set(log.frame.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    result.too_late = [p for p in [*reading.rejected, *reading.ignored] if p in automatic]
    result.ignored = _undecided(status, reading.ignored)
    sections = offered_in(text or "")  # a line that a user moved to another group belongs to its section
    decided = {p: status[p] for p in reading.ignored if p in sections and p in status}
    result.already = {p: s for p, s in decided.items() if s in (APPROVED, REJECTED) and p not in automatic}
    approvals = reading.approved.items()
    made = [Decision(p, APPROVED, REVIEW_SURFACE, t, sections[p]) for p, t in approvals if p in waiting]
    made += [Decision(p, REJECTED, REVIEW_SURFACE, known[p]["text"]) for p in reading.rejected if p in waiting]
    made = _validated(workspace, log, made)
    result.invalid |= {d.proposal_id: d.reason or "" for d in made if d.decision == INVALID}
    result.approved += [d.proposal_id for d in made if d.decision == APPROVED]
    result.rejected += [d.proposal_id for d in made if d.decision == REJECTED]
    return made


def _command_decisions(
    workspace: Workspace,
    log: ProposalLog,
    decisions: Mapping[str, str],
    result: Reconciled,
) -> list[Decision]:
    """The decisions of the command line: all of them, or none if one is refused."""
    try:
        taken = _new_user_decisions(log, decisions, COMMAND_SURFACE, {})
    except UnknownProposalError as error:
        result.refused = str(error)
        return []
    made = _validated(workspace, log, taken)
    result.invalid |= {d.proposal_id: d.reason or "" for d in made if d.decision == INVALID}
    return made


def _new_user_decisions(
    log: ProposalLog, decisions: Mapping[str, str], surface: str, texts: Mapping[str, str]
) -> list[Decision]:
    """These decisions, except those already recorded. Raises `UnknownProposalError`."""
    rows, status = log.rows(decisions), log.status
    for proposal_id, decision in decisions.items():
        state = status.get(proposal_id)
        if state is None:
            raise UnknownProposalError(f"There is no proposal {proposal_id}; `memory review` lists the pending ones.")
        if state == APPROVED != decision and rows[proposal_id]["surface"] == AUTO_SURFACE:
            raise UnknownProposalError(f"{proposal_id} was {rows[proposal_id]['reason'] or HOW_TO_TAKE_BACK}.")
        if state not in (PENDING, decision):
            raise UnknownProposalError(
                f"{proposal_id} is already {state}, and a decision is final. {_remaining_options(state)}"
            )
    return [
        Decision(p, decision, surface, _visible_text(texts.get(p) or rows[p]["text"], p))
        for p, decision in decisions.items()
        if status[p] == PENDING
    ]


def _visible_text(text: str, proposal_id: str) -> str:
    """The text on one line; the change of a fix may have several lines."""
    return visible(text) if is_fix(proposal_id) else one_line(text)


def _validated(workspace: Workspace, log: ProposalLog, decisions: Sequence[Decision]) -> list[Decision]:
    """The user's decisions; approved lines are validated again, and some become invalid."""
    reasons = invalid(workspace, log, {d.proposal_id: d.text for d in decisions if d.decision == APPROVED})
    return [
        replace(d, decision=INVALID, reason=reasons[d.proposal_id]) if d.proposal_id in reasons else d
        for d in decisions
    ]


def _automatic_decisions(
    workspace: Workspace, log: ProposalLog, now: datetime, result: Reconciled, *, tasks_are_read: bool
) -> list[Decision]:
    """Decisions on pending proposals that a newer one replaces, whose pattern has ended, or that expire. If REVIEW.md
    is unreadable, only replacements, as the file may hold the decision."""
    superseded = supersessions(log)
    result.superseded += [d.proposal_id for d in superseded]
    if result.damaged:
        return superseded
    unread = _possibly_decided(workspace, log, tasks_are_read)
    log = log.after(superseded, now)
    withdrawn = [d for d in withdrawals(workspace, log) if d.proposal_id not in unread]
    result.withdrawn |= {d.proposal_id: d.reason or "" for d in withdrawn}
    expired = expiries(workspace.settings, log.after(withdrawn, now), now)
    expired = [d for d in expired if d.proposal_id not in unread]
    result.expired += [d.proposal_id for d in expired]
    return [*superseded, *withdrawn, *expired]


def _possibly_decided(workspace: Workspace, log: ProposalLog, tasks_are_read: bool) -> set[str]:
    """Proposals that may have been decided in Todoist since it was last read."""
    return set() if tasks_are_read or not workspace.settings.todoist.enabled else log.shown_on(TODOIST_SURFACE)


def _promote(workspace: Workspace, log: OpenLog, now: datetime) -> list[str]:
    """Add approved proposals that were not promoted yet to MEMORY.md; returns their ids.

    Lines that they replace are struck through. A line that a user removed does not return, as each proposal is promoted
    once. If the file is gone, it is restored from its newest copy, together with the lines that are in no copy.
    """
    settings = workspace.settings
    done = dict(log.events(PROMOTED).select("proposal_id", "already_there").iter_rows())
    approved = typed_rows(log.frame.filter(pl.col("status") == APPROVED), ProposalState)
    fixes = log.fixes
    lines_of_memory = {p for p, fix in fixes.items() if adds_to_memory(fix)}
    approved = [r for r in approved if (p := r["proposal_id"]) not in fixes or p in lines_of_memory]
    rows = [r for r in approved if r["proposal_id"] not in done]
    if not rows:
        keep_copy(settings.memory_file, settings.backups)
        return []
    promotions = [_promotion(r) for r in rows]
    today = day_of(now, settings.zone)
    replaced = {old: (r["proposal_id"], today) for r in rows for old in r["supersedes"] or []}
    by_hand = struck_by_fixes(log, rows, today)
    present: list[str] = []
    put_back: list[str] = []

    def edit(current: bytes | None) -> bytes:
        put_back.clear()
        lines, struck = promotions, replaced
        if done and is_gone(current):
            copies = MemoryCopies.from_backups(settings.memory_file, [p for p, is_own in done.items() if not is_own])
            current, lost = copies.data, copies.in_none
            lines = [*(_promotion(r) for r in approved if r["proposal_id"] in lost), *promotions]
            over = {old: (r["proposal_id"], today) for r in approved for old in r["supersedes"] or [] if old in lost}
            struck = over | replaced
            put_back.append(f"{copies.newest}" if copies.newest else "what is on record")
        result = add_lines(current, lines, settings.sections)
        present[:] = result.present
        return strike_words(strike_lines(result.data, struck), by_hand)

    update_file(settings.memory_file, edit, backups=settings.backups)
    keep_copy(settings.memory_file, settings.backups)  # before recording: without a copy the lines would be added again
    for source in put_back:
        logger.warning(f"{settings.memory_file} was missing; it was restored from {source}, and new lines were added.")
    made = [
        {
            "proposal_id": p.proposal_id,
            "section": p.section,
            "text": p.text,
            "already_there": p.proposal_id in present,
        }
        for p in promotions
    ]
    log.add(PROMOTED, made, now)
    return [p.proposal_id for p in promotions]


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


def _promotion(row: ProposalState) -> Promotion:
    """The line for MEMORY.md. A line without a section goes under a heading with its day."""
    section = row["decided_section"] or row["section"]
    section = f"{REFLECTED} ({row['day'].isoformat()})" if section == REFLECTED else section
    text = row["decided_text"] or row["text"]
    return Promotion(row["proposal_id"], section, text, row["day"], tuple(row["projects"] or ()))


def _remaining_options(state: str) -> str:
    """The ways to reverse a decision of this state, as a sentence for the user."""
    if state == APPROVED:
        return "To take it back, delete or strike out its line in MEMORY.md."
    return "To keep it anyway, write the line into MEMORY.md yourself."


def _write_shown(settings: Settings, text: str) -> None:
    path = settings.review_shown
    write_atomically(path, encode(text), expected=path.read_bytes() if path.exists() else None, backups=None)


def now_utc() -> datetime:
    return datetime.now(UTC)
