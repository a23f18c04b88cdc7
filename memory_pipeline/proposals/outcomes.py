"""The results of a reconciliation in sentences, for the terminal and the page."""

from __future__ import annotations

from memory_pipeline.proposals.auto_fix import HOW_TO_UNDO
from memory_pipeline.proposals.auto_promotion import HOW_TO_TAKE_BACK
from memory_pipeline.proposals.events import APPROVED, EXPIRED, REJECTED, SUPERSEDED, is_fix
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review import Reconciled


def describe(made: Reconciled) -> list[str]:
    """The outcomes that the user did not just cause on the page or the command line, and what is left to do."""
    found = [f"REVIEW.md was not read: {made.damaged} A new one was written."] if made.damaged else []
    found += [visible(how) for how in made.to_make.values()]
    for state, ids in ((APPROVED, made.approved), (REJECTED, made.rejected)):
        found += [f"{p} was {state} in REVIEW.md." for p in ids]
    for state, ids in ((EXPIRED, made.expired), (SUPERSEDED, made.superseded)):
        found += [f"{p} {state}." for p in ids]
    found += [f"{p} is withdrawn: {reason}" for p, reason in made.withdrawn.items()]
    found += [f"{p} is offered again: the fix that replaced it was withdrawn." for p in made.came_back]
    found += [f"{p} is not promoted: {reason}" for p, reason in made.invalid.items()]
    how_to_revert = {p: HOW_TO_UNDO if is_fix(p) else HOW_TO_TAKE_BACK for p in (*made.automatic, *made.too_late)}
    found += [f"{p} is {how_to_revert[p]}." for p in made.automatic]
    found += [f"The decision on {p} came too late: it is {how_to_revert[p]}." for p in made.too_late]
    found += [f"{p} was {state} before it was approved in REVIEW.md." for p, state in made.late.items()]
    for state in (APPROVED, REJECTED):
        if before := [p for p, s in made.already.items() if s == state]:
            found.append(f"Already {state}, so its line in REVIEW.md was not read: {', '.join(before)}")
    if made.ignored:
        found.append(f"Nothing was decided, because the mark in REVIEW.md is unclear: {', '.join(made.ignored)}")
    return [*found, *made.not_refreshed]
