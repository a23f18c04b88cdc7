"""Topic segmentation of a conversation: by words, or by the vectors of its messages.

With vectors, the text before each message is compared with the text after it, nearer messages counting more. The depth
of a position is how far this similarity falls below the peaks on both sides; the topic shifts where the depth is
clearly above the mean of the conversation (TextTiling, with vectors).
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.languages.cues import english
from memory_pipeline.text.similarity import content_words

Vector = Sequence[float]

FADE = 0.65
"""The weight of a message relative to its neighbour that is nearer to the position."""
CLEAR = 1.2
"""Standard deviations above the mean depth of the conversation at which the topic shifts."""
PRECISION = 6
"""Decimals of a similarity and a depth; further digits are floating-point noise."""


def topic_shifts(vectors: Sequence[Vector | None], fade: float = FADE, clear: float = CLEAR) -> list[int]:
    """Positions of the messages that begin another topic; `None` stands for a message without words, which begins none.

    `FADE` and `CLEAR` were chosen by `benchmarks/segmentation.py --tune`, on dialogues that it does not report.
    """
    import numpy as np  # comes with the encoder; the observer without one must not need it

    places, units = [], []
    for place, vector in enumerate(vectors):
        values = np.asarray([] if vector is None else vector, dtype=np.float64)
        norm = np.linalg.norm(values)
        if np.isfinite(norm) and norm > 0:  # zero vectors have no direction
            places.append(place)
            units.append(values / norm)
    before, after = _faded(units, fade)[:-1], _faded(units[::-1], fade)[::-1][1:]
    likeness = [_cosine(one, other) for one, other in zip(before, after, strict=True)]
    return [places[i + 1] for i in deep_places(likeness, clear)]


def deep_places(likeness: Sequence[float], clear: float) -> list[int]:
    """Positions whose depth clearly exceeds that of the others."""
    import numpy as np

    if not likeness:
        return []
    left, right = _peaks(likeness), _peaks(likeness[::-1])[::-1]
    depths = [round(a + b - 2 * here, PRECISION) for a, b, here in zip(left, right, likeness, strict=True)]
    threshold = round(float(np.mean(depths) + clear * np.std(depths)), PRECISION)
    return [i for i, depth in enumerate(depths) if depth > threshold]


def _faded(units: Sequence[Any], fade: float) -> list[Any]:
    """The sum of each item and those before it, each weighted by `fade` relative to the next one."""
    return list(accumulate(units, lambda total, unit: fade * total + unit))


def _cosine(one: Any, other: Any) -> float:
    import numpy as np

    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return round(float(one @ other) / norms, PRECISION) if norms else 0.0


def _peaks(likeness: Sequence[float]) -> list[float]:
    """For each value, the peak reached by going back while the values do not fall."""
    peaks: list[float] = []
    for i, here in enumerate(likeness):
        peaks.append(peaks[-1] if i and likeness[i - 1] >= here else here)
    return peaks


SPEAKERS = ("user", "assistant")
MIN_MESSAGES, MAX_MESSAGES = 10, 50
"""Minimum messages of a topic that a change of words ends, and maximum after which the user's next message ends it."""
MAX_WINDOW = 2 * MAX_MESSAGES
"""Maximum messages of a segment, whoever speaks."""
AFTER_BREAKPOINT = 4
"""Minimum messages of a topic that a natural end, like a commit, ends."""
GAP = timedelta(minutes=30)
COHESION = 0.2
"""Share of common words before and after a user's message below which it begins a new topic."""
MIN_WISH = 12
"""Minimum characters of a user's message that may begin a topic."""
LOOKED_AT = 3000
"""Characters of a message that are searched for a natural end."""
_FINISHING = re.compile(r"\bgit (commit|push|merge)\b|\btests? pass|\b[1-9]\d* passed\b", re.I)
"""Commands and output of a tool that finish a piece of work."""
ENCODED = 1000
"""Maximum characters of a message for its vector."""


def segment_starts(messages: Sequence[WindowMessage], vectors: Sequence[Vector | None] | None = None) -> list[int]:
    """The positions at which a segment begins; the first is 0. `vectors` are those of `message_vectors`.

    A segment begins with a message of the user that is more than consent: after a pause, after something was finished,
    when the user turns to the next task, or where the topic shifts, which vectors show better than words. Only an
    overlong segment is cut at any speaker. The numbers were set with the labelled sessions in view, except those of
    `topic_shifts`.
    """
    starts = [0] if messages else []
    shifts = _word_changes(messages) if vectors is None else frozenset(topic_shifts(vectors))
    is_finished = False
    for i in range(1, len(messages)):
        is_finished = is_finished or _finishes(messages[i - 1])
        length = i - starts[-1]
        if length >= MAX_WINDOW or (_is_wish(messages[i]) and _opens(messages, i, length, is_finished, shifts)):
            starts.append(i)
            is_finished = False
    return starts


def message_vectors(messages: Sequence[WindowMessage], encoder: Encoder) -> list[list[float] | None]:
    """A vector for the beginning of each message's own words; None for tools and messages without own words."""
    words = [m.own.strip()[:ENCODED] if m.role in SPEAKERS else "" for m in messages]
    encoded = iter(encoder.encode([text for text in words if text]))
    return [next(encoded) if text else None for text in words]


def _is_wish(message: WindowMessage) -> bool:
    own = message.own.strip() if message.role == "user" and message.answer_to not in CHOICES else ""
    return len(own) >= MIN_WISH and bool(english().next_thing.match(own) or not english().accepting.match(own))


def _opens(messages: Sequence[WindowMessage], i: int, length: int, is_finished: bool, shifts: Container[int]) -> bool:
    if messages[i].said_at - messages[i - 1].said_at >= GAP or length >= MAX_MESSAGES:
        return True
    if length >= AFTER_BREAKPOINT and (is_finished or english().next_thing.match(messages[i].own)):
        return True
    return length >= MIN_MESSAGES and i in shifts


def _finishes(message: WindowMessage) -> bool:
    """Whether the message finishes something: a commit, or tests that pass."""
    if message.role == "tool":
        return not message.is_error and bool(_FINISHING.search(message.text, 0, LOOKED_AT))
    return message.role == "assistant" and bool(english().finished.search(message.text, 0, LOOKED_AT))


def _word_changes(messages: Sequence[WindowMessage]) -> frozenset[int]:
    """Positions of the user's messages before and after which the words differ."""
    vocabulary = [content_words(m.own) if m.role in SPEAKERS else frozenset() for m in messages]
    return frozenset(i for i, m in enumerate(messages) if m.role == "user" and _cohesion(vocabulary, i) < COHESION)


def _cohesion(vocabulary: Sequence[frozenset[str]], i: int, reach: int = MIN_MESSAGES) -> float:
    """Words shared by the `reach` messages before and after position i, divided by the words of the smaller side."""
    before = frozenset().union(*vocabulary[max(0, i - reach) : i])
    after = frozenset().union(*vocabulary[i : i + reach])
    smaller = min(len(before), len(after))
    return len(before & after) / smaller if smaller else 1.0
