"""The results of a reconciliation in sentences, for the terminal and the page."""

from __future__ import annotations

from memory_pipeline.proposals.events import APPROVED, EXPIRED, REJECTED, SUPERSEDED
from memory_pipeline.proposals.review import Reconciled


def describe(made: Reconciled) -> list[str]:
    """The outcomes that the user did not just cause on the page or the command line, and what is left to do."""
    found = [made.damaged] if made.damaged else []
    for state, ids in ((APPROVED, made.approved), (REJECTED, made.rejected)):
        found += [f"{p} was {state} in REVIEW.md." for p in ids]
    for state, ids in ((EXPIRED, made.expired), (SUPERSEDED, made.superseded)):
        found += [f"{p} {state}." for p in ids]
    return [*found, *made.messages, *made.warnings]
