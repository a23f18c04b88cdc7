"""Where the vectors of a conversation's messages turn to another topic.

At each message, what was said before is compared with what is said from there on, nearer messages counting more. How
far that likeness falls below the peaks on its two sides is the depth of the place; where it is clearly deeper than the
conversation's other places, the topic shifts (TextTiling, on vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

Vector = Sequence[float]

FADE = 0.65
"""What a message counts beside the one next to it that is nearer to the place."""
CLEAR = 1.2
"""Standard deviations above the mean of the conversation from which a depth is a shift."""
PRECISION = 6
"""Decimals of a likeness and a depth; what is behind them is noise of the arithmetic."""


def topic_shifts(vectors: Sequence[Vector | None], fade: float = FADE, clear: float = CLEAR) -> list[int]:
    """Positions of the messages that begin another topic; `None` is a message without words, which begins none.

    `FADE` and `CLEAR` were chosen by `benchmarks/segmentation.py --tune`, on dialogues that it does not report.
    """
    import numpy as np  # comes with the encoder; the observer without one must not need it

    places, units = [], []
    for place, vector in enumerate(vectors):
        values = np.asarray([] if vector is None else vector, dtype=np.float64)
        norm = np.linalg.norm(values)
        if np.isfinite(norm) and norm > 0:  # others point nowhere
            places.append(place)
            units.append(values / norm)
    before, after = _faded(units, fade)[:-1], _faded(units[::-1], fade)[::-1][1:]
    likeness = [_cosine(one, other) for one, other in zip(before, after, strict=True)]
    return [places[i + 1] for i in deep_places(likeness, clear)]


def deep_places(likeness: Sequence[float], clear: float) -> list[int]:
    """Where the likeness is clearly deeper than elsewhere."""
    import numpy as np

    if not likeness:
        return []
    left, right = _peaks(likeness), _peaks(likeness[::-1])[::-1]
    depths = [round(a + b - 2 * here, PRECISION) for a, b, here in zip(left, right, likeness, strict=True)]
    threshold = round(float(np.mean(depths) + clear * np.std(depths)), PRECISION)
    return [i for i, depth in enumerate(depths) if depth > threshold]


def _faded(units: Sequence[Any], fade: float) -> list[Any]:
    """For each the sum of it and those before it, each counting `fade` times what the next one counts."""
    return list(accumulate(units, lambda total, unit: fade * total + unit))


def _cosine(one: Any, other: Any) -> float:
    import numpy as np

    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return round(float(one @ other) / norms, PRECISION) if norms else 0.0


def _peaks(likeness: Sequence[float]) -> list[float]:
    """For each the highest that is reached by going back as long as it does not go down."""
    peaks: list[float] = []
    for i, here in enumerate(likeness):
        peaks.append(peaks[-1] if i and likeness[i - 1] >= here else here)
    return peaks
