"""Whether several sentences are one, said of different things: "add a test for the importer", "... for the mailer".

That is how the same work is asked for day by day. Who corrects says the same thing in other words, or in the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from memory_pipeline.friction.clustering import terms_of
from memory_pipeline.text.similarity import words

MIN_FRAME = 0.5
"""Share of the longer one's words that are the same, before and after what differs."""
MIN_SAME = 2
"""Words that are the same, at least."""
MOSTLY = 0.5


def mostly_of_one_frame(texts: Sequence[str]) -> bool:
    """Whether at least half of the texts have another beside them that says the same of something else."""
    split = [words(text) for text in texts]
    framed = sum(any(_is_same_of_another(one, other) for other in split if other is not one) for one in split)
    return framed >= max(1.0, MOSTLY * len(texts))


def _is_same_of_another(one: Sequence[str], other: Sequence[str]) -> bool:
    before = _common(one, other)
    after = _common(one[before:][::-1], other[before:][::-1])
    same, of_one, of_other = before + after, one[before : len(one) - after], other[before : len(other) - after]
    return (
        same >= MIN_SAME
        and same >= MIN_FRAME * max(len(one), len(other))
        and bool(terms_of(" ".join(of_one)))
        and bool(terms_of(" ".join(of_other)))
    )


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words they begin with together."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
