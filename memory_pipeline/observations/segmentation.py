"""Where a conversation turns to another topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from memory_pipeline.observations.observer import Said
from memory_pipeline.text.similarity import content_words

MIN_MESSAGES, MAX_MESSAGES = 10, 50
GAP = timedelta(minutes=30)
COHESION = 0.08
"""Below this share of words in common between what came before and after, a user message opens a new topic."""


def segment_starts(messages: Sequence[Said]) -> list[int]:
    """Positions at which a segment begins; the first is 0.

    A segment begins with a message of the person, after a pause or where the words change; a segment that
    has grown to the maximum is cut at the next message whoever said it.
    """
    starts = [0] if messages else []
    vocabulary = [content_words(m.text) if m.role in ("user", "assistant") else frozenset() for m in messages]
    for i in range(1, len(messages)):
        length = i - starts[-1]
        if length >= MAX_MESSAGES or (
            messages[i].role == "user"
            and (
                messages[i].said_at - messages[i - 1].said_at >= GAP
                or (length >= MIN_MESSAGES and _cohesion(vocabulary, i) < COHESION)
            )
        ):
            starts.append(i)
    return starts


def _cohesion(vocabulary: Sequence[frozenset[str]], i: int, reach: int = MIN_MESSAGES) -> float:
    """Words shared by the `reach` messages before and after position i, per word of the smaller side."""
    before = frozenset().union(*vocabulary[max(0, i - reach) : i])
    after = frozenset().union(*vocabulary[i : i + reach])
    smaller = min(len(before), len(after))
    return len(before & after) / smaller if smaller else 1.0
