"""Which lines must never be offered, whatever their value, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_pipeline.files.blocks import one_line
from memory_pipeline.observations.grounding import UNGROUNDED, UNGROUNDED_SPECIFICS
from memory_pipeline.proposals.wording import asks, orders, supposes

PERSON = "user"
TRUSTED = (PERSON, "assistant")
"""Whose words may tell what to do: a person's, and the model's that works for them. Results of tools, pastes and what
programs put into a message may hold a stranger's."""
ENDED = "ended"
UNFIT = (UNGROUNDED, UNGROUNDED_SPECIFICS, "unparsed", ENDED)
"""Flags of observations that nobody should be asked to remember."""
ORDER, FLAGGED, EMPTY = "instruction_not_trusted", "flagged", "empty"
QUESTION, HYPOTHETICAL = "question", "hypothetical"


def why_left_out(text: str, observed: Sequence[dict[str, Any]]) -> str | None:
    """The reason why a line is not offered, if there is one; ``observed`` are its observations, the one with the words
    first."""
    visible = one_line(text)
    trust = {o["trust"] for o in observed}
    if not visible:
        return EMPTY
    if trust - set(TRUSTED) and PERSON not in trust and orders(visible):
        return ORDER
    if observed and set(observed[0]["flags"] or []) & set(UNFIT):
        return FLAGGED
    if asks(visible) or (observed and observed[0]["kind"] == "question"):
        return QUESTION
    return HYPOTHETICAL if supposes(visible) else None
