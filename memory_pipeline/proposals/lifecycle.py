"""The life of a proposal: pending until exactly one decision, then, when approved, a line of MEMORY.md.

Nothing is updated in place. A decision is a row of its own on the day it was taken, a promotion another;
status is a join. Every step can be repeated: a crash between two of them costs nothing but the next run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.files.blocks import one_line
from memory_pipeline.files.safe_write import decode, encode, update_file, write_atomically
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.auto_notice import with_notice, without_notice
from memory_pipeline.proposals.auto_promotion import HOW_TO_TAKE_BACK, automatic_decisions, recently_promoted
from memory_pipeline.proposals.evidence import evidence_lines
from memory_pipeline.proposals.expiry import expiries, expiring_on, supersessions
from memory_pipeline.proposals.promoting import promote
from memory_pipeline.proposals.records import (
    AUTO_SURFACE,
    COMMAND_SURFACE,
    REVIEW_SURFACE,
    TODOIST_SURFACE,
    record_decisions,
    record_showings,
    shown_on,
)
from memory_pipeline.proposals.review_file import (
    Proposal,
    ReviewReading,
    last_updated_in,
    offered_in,
    read_decisions,
    update_review,
)
from memory_pipeline.proposals.states import (
    APPROVED,
    INVALID,
    PENDING,
    REJECTED,
    Book,
    pending,
    with_status,
)
from memory_pipeline.proposals.validity import invalid
from memory_pipeline.settings import Settings

__all__ = [
    "APPROVED",
    "COMMAND_SURFACE",
    "MORE_TO_COME",
    "PENDING",
    "REJECTED",
    "REVIEW_SURFACE",
    "Settled",
    "UnknownProposal",
    "as_offered",
    "decide",
    "not_understood",
    "now_utc",
    "on_display",
    "pending",
    "promote",
    "record_showings",
    "settle_review",
    "with_status",
]
_OPEN = (PENDING, APPROVED, REJECTED)
"""States in which a line that comes too late tells a person nothing that they did not decide themselves."""


MORE_TO_COME = "memory/more_to_come"
"""Tag of a run that is followed by others, and at last by one that fills REVIEW.md."""
_Decision = tuple[str, str, str, str | None]
"""(proposal id, decision, text, section if a person chose another)"""


class UnknownProposal(Exception):
    """No pending proposal has that id; the message says which state it is in."""


@dataclass
class Settled:
    """What a reading of REVIEW.md led to."""

    approved: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    damaged: str | None = None
    invalid: dict[str, str] = field(default_factory=dict)
    """Approved by the person and not promoted, with the reason."""
    expired: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    late: dict[str, str] = field(default_factory=dict)
    """What stands in the person's copy and has another end by now, which is told."""
    automatic: list[str] = field(default_factory=list)
    """Approved by nobody: the section has earned it."""
    too_late: list[str] = field(default_factory=list)
    """Promoted automatically before the person decided on it in a copy of REVIEW.md, which is told."""
    already: dict[str, str] = field(default_factory=dict)
    """Lines of an older copy of REVIEW.md that the person approved or rejected before, which is told."""


def decide(
    settings: Settings,
    lake: Lake,
    decisions: Mapping[str, str],
    now: datetime,
    *,
    surface: str = COMMAND_SURFACE,
    texts: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Record decisions taken elsewhere than in REVIEW.md; an approved line may have another text in ``texts``.

    Returns why approved proposals were found invalid, by id. A decision that was taken before is not taken twice.
    Raises `UnknownProposal` before anything is recorded.
    """
    book = Book.of(lake)
    for proposal_id, decision in decisions.items():
        state = book.status.get(proposal_id)
        if state is None:
            raise UnknownProposal(f"There is no proposal {proposal_id}; `memory review` lists the pending ones.")
        if state == APPROVED != decision and book.surface(proposal_id) == AUTO_SURFACE:
            raise UnknownProposal(f"{proposal_id} was {HOW_TO_TAKE_BACK}.")
        if state not in (PENDING, decision):
            raise UnknownProposal(f"{proposal_id} is {state} already; a decision is taken once. {_way_out(state)}")
    new = {p: d for p, d in decisions.items() if book.status[p] == PENDING}
    words = {p: one_line((texts or {}).get(p) or row["text"]) for p, row in book.rows(list(new)).items()}
    taken: list[_Decision] = [(p, d, words[p], None) for p, d in new.items()]
    return _take(settings, lake, book, taken, surface, now)


def settle_review(
    settings: Settings, lake: Lake, now: datetime, *, tasks_are_read: bool = False, offers: bool = True
) -> Settled:
    """Record what a person decided in REVIEW.md and what expired; bring the file up to date with what is pending.

    Without ``offers`` nothing is added to the file: days are still to come whose lines may be better. While Todoist is
    on, what is a task there expires only once the tasks are read: it may be completed already.
    """
    result, shown = Settled(), list[str]()

    def edit(current: bytes | None) -> bytes:
        text = decode(current) if current is not None else None
        book = Book.of(lake)
        _read_back(settings, lake, book, text, now, result)
        _end(settings, lake, book, now, result, tasks_are_read=tasks_are_read)
        limit = settings.pending_limit if offers else 0
        waiting = _first(book.pending(), offered_in(text or ""), limit)
        decided = {p for p, state in book.status.items() if state != PENDING}
        day = day_of(now, settings.zone)
        offered = as_offered(settings, lake, waiting, now=now)
        kept = None if result.damaged or text is None else without_notice(text)
        new = update_review(kept, offered, decided, day=day, now=now)
        recent = recently_promoted(settings, lake, book.frame, now)
        new = with_notice(new, list(dict.fromkeys([*recent, *result.automatic])))
        # first the copy that tells what was shown, then the file: never a line in the file that we do not know of
        _write_shown(settings, new)
        shown[:] = [p for p in offered_in(new) if book.status.get(p) == PENDING]
        return encode(new)

    if settings.review_file.exists() or pending(lake):
        update_file(settings.review_file, edit, backups=settings.backups)
        record_showings(settings, lake, dict.fromkeys(shown), now, surface=REVIEW_SURFACE)
    return result


def not_understood(settings: Settings, lake: Lake) -> list[str]:
    """The ids on which REVIEW.md, as it stands, says nothing clear: pending ones, and those that nobody knows."""
    path, book = settings.review_file, Book.of(lake)
    reading, _ = _reading(settings, book, decode(path.read_bytes()) if path.exists() else None)
    return _undecided(book, reading.ignored)


def on_display(settings: Settings, lake: Lake) -> list[dict[str, Any]]:
    """The pending proposals that a person is shown now, best first: those in REVIEW.md, then up to the limit."""
    path = settings.review_file
    on_file = offered_in(decode(path.read_bytes())) if path.exists() else {}
    waiting = pending(lake)
    shown = {r["proposal_id"] for r in _first(waiting, on_file, settings.pending_limit)}
    return [r for r in waiting if r["proposal_id"] in shown]


def as_offered(
    settings: Settings, lake: Lake, rows: Iterable[dict[str, Any]], *, now: datetime | None = None
) -> list[Proposal]:
    """Rows of `with_status` as they stand in REVIEW.md."""
    rows, now = list(rows), now or now_utc()
    olds = {old for r in rows for old in r["supersedes"] or []}
    texts = lake.read("promotions", columns=["proposal_id", "text"]) if olds else pl.DataFrame()
    lines = evidence_lines(settings, lake, rows, {p: t for p, t in texts.iter_rows() if p in olds})
    return [
        Proposal(r["proposal_id"], r["section"], r["text"], lines[r["proposal_id"]], expiring_on(settings, r, now))
        for r in rows
    ]


def _first(waiting: list[dict[str, Any]], on_file: Collection[str], limit: int) -> list[dict[str, Any]]:
    """What is in the file stays; the best of the others fill it up to the limit."""
    shown = [p for p in waiting if p["proposal_id"] in on_file]
    return shown + [p for p in waiting if p["proposal_id"] not in on_file][: max(0, limit - len(shown))]


def _reading(settings: Settings, book: Book, text: str | None) -> tuple[ReviewReading, dict[str, dict[str, Any]]]:
    """What the text of REVIEW.md says, and the proposals that were in it when we last wrote it."""
    base = settings.review_shown
    base_text = decode(base.read_bytes()) if base.exists() else None
    if text is None and base_text is None:
        return ReviewReading({}, [], None, []), {}  # the first time: nothing was ever shown
    ids = offered_in(base_text if base_text is not None else text or "")
    known = book.rows(list(ids))
    shown = {p: Proposal(p, r["section"], r["text"], "") for p, r in known.items()}
    stamp = last_updated_in(base_text) if base_text is not None else None
    return read_decisions(text, shown, last_updated=stamp), known


def _undecided(book: Book, ids: Iterable[str]) -> list[str]:
    return [p for p in ids if book.status.get(p, PENDING) == PENDING]


def _read_back(settings: Settings, lake: Lake, book: Book, text: str | None, now: datetime, result: Settled) -> None:
    reading, known = _reading(settings, book, text)
    result.damaged = reading.damaged
    is_pending = {p for p in known if book.status[p] == PENDING}
    over = {p: s for p in [*reading.approved, *reading.ignored] if (s := book.status.get(p, PENDING)) not in _OPEN}
    result.late |= over
    automatic = set(book.frame.filter(pl.col("surface") == AUTO_SURFACE)["proposal_id"])
    result.too_late = [p for p in [*reading.rejected, *reading.ignored] if p in automatic]
    result.ignored = _undecided(book, reading.ignored)
    sections = offered_in(text or "")  # a line that a person moved to another group belongs there
    decided = {p: book.status[p] for p in reading.ignored if p in sections and p in book.status}
    result.already = {p: s for p, s in decided.items() if s in (APPROVED, REJECTED) and p not in automatic}
    decisions: list[_Decision] = [(p, APPROVED, t, sections[p]) for p, t in reading.approved.items() if p in is_pending]
    decisions += [(p, REJECTED, known[p]["text"], None) for p in reading.rejected if p in is_pending]
    result.invalid |= _take(settings, lake, book, decisions, REVIEW_SURFACE, now)
    result.approved += [p for p, d, *_ in decisions if d == APPROVED and p not in result.invalid]
    result.rejected += [p for p, d, *_ in decisions if d == REJECTED]


def _take(
    settings: Settings,
    lake: Lake,
    book: Book,
    decisions: list[_Decision],
    surface: str,
    now: datetime,
) -> dict[str, str]:
    """Record a person's decisions; lines that they approve are looked at once more. Returns why some are invalid."""
    reasons = invalid(settings, lake, book, {p: text for p, d, text, _ in decisions if d == APPROVED})
    rows = [
        {
            "proposal_id": p,
            "decision": INVALID if p in reasons else d,
            "surface": surface,
            "section": section,
            "text": text,
            "reason": reasons.get(p),
        }
        for p, d, text, section in decisions
    ]
    _record(settings, lake, book, rows, now)
    return reasons


def _end(settings: Settings, lake: Lake, book: Book, now: datetime, result: Settled, *, tasks_are_read: bool) -> None:
    """Pending proposals whose place a newer one takes, whose time is over, or whose section has earned not to wait.
    With a REVIEW.md that cannot be read only the first: it may hold the decision."""
    over = supersessions(book)
    _record(settings, lake, book, over, now)
    result.superseded += [r["proposal_id"] for r in over]
    unread = set() if tasks_are_read or not settings.todoist.enabled else shown_on(lake, TODOIST_SURFACE)
    expired = [] if result.damaged else [r for r in expiries(settings, book, now) if r["proposal_id"] not in unread]
    _record(settings, lake, book, expired, now)
    result.expired += [r["proposal_id"] for r in expired]
    automatic = [] if result.damaged else automatic_decisions(settings, lake, book, now, unread=unread)
    _record(settings, lake, book, automatic, now)
    result.automatic += [r["proposal_id"] for r in automatic]


def _record(settings: Settings, lake: Lake, book: Book, rows: list[dict[str, Any]], now: datetime) -> None:
    record_decisions(settings, lake, rows, now)
    book.status.update({r["proposal_id"]: r["decision"] for r in rows})


def _way_out(state: str) -> str:
    """What a person can still do who has changed their mind."""
    if state == APPROVED:
        return "To take it back, delete or strike out its line in MEMORY.md."
    return "To have it all the same, write the line into MEMORY.md yourself."


def _write_shown(settings: Settings, text: str) -> None:
    path = settings.review_shown
    write_atomically(path, encode(text), expected=path.read_bytes() if path.exists() else None, backups=None)


def now_utc() -> datetime:
    return datetime.now(UTC)
