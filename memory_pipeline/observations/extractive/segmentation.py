"""Where a conversation turns to another topic."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import timedelta

from memory_pipeline.observations.extractive import cues
from memory_pipeline.observations.extractive.topic_shifts import Vector, topic_shifts
from memory_pipeline.observations.observer import Said
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.similarity import content_words

SPEAKERS = ("user", "assistant")
MIN_MESSAGES, MAX_MESSAGES = 10, 50
"""Messages that a topic has before other words end it, and after which the person's next message does."""
LONGEST = 2 * MAX_MESSAGES
"""Messages after which a segment is cut whoever speaks."""
AFTER_BREAKPOINT = 4
"""Messages that a topic has before a natural end, like a commit, ends it."""
GAP = timedelta(minutes=30)
COHESION = 0.2
"""Below this share of words in common between what came before and after, a user message opens a new topic."""
MIN_WISH = 12
"""Characters below which a person's message goes on with what is going on."""
LOOKED_AT = 3000
"""Characters of a message in which a natural end shows."""
ENCODED = 1000
"""Characters of a message that its vector is made of."""


def segment_starts(messages: Sequence[Said], vectors: Sequence[Vector | None] | None = None) -> list[int]:
    """Positions at which a segment begins; the first is 0. `vectors` are those of `said_vectors`.

    A segment begins with a message of the person that is more than consent: after a pause, behind something
    finished, where they turn to the next thing, or where the topic shifts, which vectors tell better than words do.
    Only one that grows without end is cut whoever speaks. The numbers were set with the labelled sessions in view,
    but for those of `topic_shifts.py`.
    """
    starts = [0] if messages else []
    shifts = _word_changes(messages) if vectors is None else frozenset(topic_shifts(vectors))
    is_finished = False
    for i in range(1, len(messages)):
        is_finished = is_finished or _finishes(messages[i - 1])
        length = i - starts[-1]
        if length >= LONGEST or (_is_wish(messages[i]) and _opens(messages, i, length, is_finished, shifts)):
            starts.append(i)
            is_finished = False
    return starts


def said_vectors(messages: Sequence[Said], encoder: Encoder) -> list[list[float] | None]:
    """One for the beginning of each message's own words; None for tools, and where there are none."""
    words = [m.own.strip()[:ENCODED] if m.role in SPEAKERS else "" for m in messages]
    encoded = iter(encoder.encode([text for text in words if text]))
    return [next(encoded) if text else None for text in words]


def _is_wish(message: Said) -> bool:
    own = message.own.strip() if message.role == "user" else ""
    return len(own) >= MIN_WISH and bool(cues.NEXT_THING.match(own) or not cues.ACCEPTING.match(own))


def _opens(messages: Sequence[Said], i: int, length: int, is_finished: bool, shifts: Container[int]) -> bool:
    if messages[i].said_at - messages[i - 1].said_at >= GAP or length >= MAX_MESSAGES:
        return True
    if length >= AFTER_BREAKPOINT and (is_finished or cues.NEXT_THING.match(messages[i].own)):
        return True
    return length >= MIN_MESSAGES and i in shifts


def _finishes(message: Said) -> bool:
    """Whether something ends with it: a commit, tests that pass."""
    if message.role == "tool":
        return not message.is_error and bool(cues.FINISHING.search(message.text, 0, LOOKED_AT))
    return message.role == "assistant" and bool(cues.FINISHED.search(message.text, 0, LOOKED_AT))


def _word_changes(messages: Sequence[Said]) -> frozenset[int]:
    """Positions of the person's messages before and after which the words differ."""
    vocabulary = [content_words(m.own) if m.role in SPEAKERS else frozenset() for m in messages]
    return frozenset(i for i, m in enumerate(messages) if m.role == "user" and _cohesion(vocabulary, i) < COHESION)


def _cohesion(vocabulary: Sequence[frozenset[str]], i: int, reach: int = MIN_MESSAGES) -> float:
    """Words shared by the `reach` messages before and after position i, per word of the smaller side."""
    before = frozenset().union(*vocabulary[max(0, i - reach) : i])
    after = frozenset().union(*vocabulary[i : i + reach])
    smaller = min(len(before), len(after))
    return len(before & after) / smaller if smaller else 1.0
