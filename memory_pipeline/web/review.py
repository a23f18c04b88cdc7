"""The screen Review: the proposals shown, their order, and the actions that their forms request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import decode
from memory_pipeline.proposals.events import APPROVED, PROMOTED, REJECTED
from memory_pipeline.proposals.outcomes import expiring_on
from memory_pipeline.proposals.quoted_change import Change, shown_lines
from memory_pipeline.proposals.review import now_utc
from memory_pipeline.proposals.review_file import offered_in
from memory_pipeline.web.proposal_cache import Shown
from memory_pipeline.web.review_session import LATER, ReviewSession, Step

NO_PROJECT = "no project"
STEPS = {"approve": APPROVED, "edit": APPROVED, "reject": REJECTED, "later": LATER}


@dataclass(frozen=True)
class Choice:
    """A project and the number of its pending proposals."""

    value: str
    count: int


@dataclass(frozen=True)
class CardShown:
    """A proposal on the screen."""

    shown: Shown
    expires_on: date | None
    replaces: Sequence[str]
    """The lines that it would replace."""
    said_again: Sequence[str]
    """Repetitions that were merged into it."""
    sections: Sequence[str]
    """The sections to choose from; empty if the target fixes the place."""
    edited: str | None
    """The text of the edit box; None if the proposal cannot be edited."""
    changes: Sequence[str]
    """The changed lines of a fix."""
    was_put_off: bool


@dataclass(frozen=True)
class ReviewScreen:
    cards: Sequence[CardShown]
    total: int
    """The number of pending proposals that match the filters."""
    expiring: int
    start: int
    more: int | None
    """The offset of the next page."""
    projects: Sequence[Choice]
    project: str
    """The project that is chosen; empty for all."""


def review_screen(session: ReviewSession, asked: Mapping[str, str]) -> ReviewScreen:
    """The pending proposals, as many as REVIEW.md shows at once: those that expire soon, then those already in the
    file, then the others, each best first; postponed ones come last."""
    settings, now, project = session.settings, now_utc(), asked.get("project", "")
    gone = {step.proposal_id for step in session.under_way()}
    later = {p: n for n, p in enumerate(session.later)}
    every = [row for row in session.cache.pending() if row["proposal_id"] not in gone or row["proposal_id"] in later]
    expires = {row["proposal_id"]: expiring_on(settings, row, now) for row in every}
    rows = [row for row in every if not project or project in _projects(row)]
    there = _in_review_md(session)
    rows.sort(key=lambda row: (later.get(p := row["proposal_id"], -1), expires[p] or date.max, p not in there))
    start = int(asked.get("from", "0")) if asked.get("from", "0").isdecimal() else 0
    page = rows[start : start + settings.pending_limit]
    log = session.cache.log()
    promoted = dict(log.events(PROMOTED).select("proposal_id", "text").iter_rows())
    end = start + len(page)
    return ReviewScreen(
        [_card(session, shown, expires, promoted, later) for shown in session.cache.shown(page)],
        len(rows),
        sum(expires[row["proposal_id"]] is not None for row in rows),
        start,
        end if end < len(rows) else None,
        [Choice(*found) for found in sorted(Counter(p for row in every for p in _projects(row)).items())],
        project,
    )


def requested_step(session: ReviewSession, form: Mapping[str, str]) -> Step | None:
    """The action that the form of a card requests; None if its proposal is already decided or the form is invalid."""
    done, proposal_id = STEPS.get(form.get("do", "")), form.get("id", "")
    row = next((row for row in session.cache.pending() if row["proposal_id"] == proposal_id), None)
    if done is None or row is None or proposal_id in {s.proposal_id for s in session.under_way() if s.done != LATER}:
        return None
    (shown,) = session.cache.shown([row])
    text = _edited(shown, form.get("text", "")) if form["do"] == "edit" else None
    chosen = form.get("section")
    is_other = done == APPROVED and chosen in session.settings.sections and chosen != row["section"]
    return Step(done, text or shown.card.text, proposal_id, text, chosen if is_other else None)


def _in_review_md(session: ReviewSession) -> set[str]:
    path = session.settings.review_file
    return set(offered_in(decode(path.read_bytes()))) if path.exists() else set()


def _edited(shown: Shown, text: str) -> str | None:
    """The text as edited by the user; None if it is empty or unchanged."""
    line = one_line(text.replace("\r\n", "\n"))
    return line if _is_editable(shown.card.change) and line and line != one_line(shown.card.text) else None


def _is_editable(change: Change | None) -> bool:
    return change is None or change.is_editable


def _card(
    session: ReviewSession,
    shown: Shown,
    expires: Mapping[str, date | None],
    promoted: Mapping[str, str],
    later: Mapping[str, int],
) -> CardShown:
    row, card = shown.row, shown.card
    is_editable = _is_editable(card.change)
    sections = list(dict.fromkeys([card.section, *session.settings.sections])) if is_editable else []
    return CardShown(
        shown,
        expires[card.proposal_id],
        [promoted[old] for old in row["supersedes"] or [] if old in promoted],
        shown.said_again,
        sections,
        card.text if is_editable else None,
        shown_lines(card.change) if card.change else [],
        card.proposal_id in later,
    )


def _projects(row: ProposalState) -> list[str]:
    return row["projects"] or [NO_PROJECT]
