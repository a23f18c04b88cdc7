"""The screen Review: the proposals shown, their order, and the actions that their forms request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import decode
from memory_pipeline.proposals.events import APPROVED, PROMOTED, REJECTED
from memory_pipeline.proposals.outcomes import expiring_on
from memory_pipeline.proposals.review import now_utc
from memory_pipeline.proposals.review_file import offered_in
from memory_pipeline.web.proposal_cache import Shown
from memory_pipeline.web.review_session import LATER, ReviewSession, Step

NO_PROJECT = "no project"
STEPS = {"approve": APPROVED, "edit": APPROVED, "reject": REJECTED, "later": LATER}


@dataclass(frozen=True)
class CardShown:
    """A proposal on the screen."""

    shown: Shown
    expires_on: date | None
    replaces: Sequence[str]
    """The lines that it would replace."""
    was_put_off: bool


def review_screen(session: ReviewSession, asked: Mapping[str, str]) -> dict[str, Any]:
    """The pending proposals, as many as REVIEW.md shows at once: those that expire soon, then those already in the
    file, then the others, each best first; postponed ones come last. With the number of pending ones
    by project."""
    settings, now, project = session.settings, now_utc(), asked.get("project", "")
    gone = {step.proposal_id for step in session.under_way()}
    later = {p: n for n, p in enumerate(list(session.later))}
    every = [row for row in session.cache.pending() if row["proposal_id"] not in gone or row["proposal_id"] in later]
    expires = {row["proposal_id"]: expiring_on(settings, row, now) for row in every}
    rows = [row for row in every if not project or project in _projects(row)]
    there = _in_review_md(session)
    rows.sort(key=lambda row: (later.get(p := row["proposal_id"], -1), expires[p] or date.max, p not in there))
    start = int(asked.get("from", "0")) if asked.get("from", "0").isdecimal() else 0
    end = start + settings.pending_limit
    promoted = dict(session.cache.log().events(PROMOTED).select("proposal_id", "text").iter_rows())
    cards = [
        CardShown(
            shown,
            expires[p := shown.card.proposal_id],
            [promoted[old] for old in shown.row["supersedes"] or [] if old in promoted],
            p in later,
        )
        for shown in session.cache.shown(rows[start:end])
    ]
    return {
        "cards": cards,
        "total": len(rows),  # that match the filter
        "expiring": sum(expires[row["proposal_id"]] is not None for row in rows),
        "more": end if end < len(rows) else None,  # where the next page begins
        "projects": dict(sorted(Counter(p for row in every for p in _projects(row)).items())),
        "project": project,
    }


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
    return line if shown.is_editable and line and line != one_line(shown.card.text) else None


def _projects(row: ProposalState) -> list[str]:
    return row["projects"] or [NO_PROJECT]
