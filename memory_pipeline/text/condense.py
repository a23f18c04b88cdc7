"""Text condensed to a share of its length by what is rare in it. Needs no model, and no cue of what is worth keeping.

What people ask for later stands in rare and specific words: names, numbers, what was said once. So a text is worth
the rarity of its words for what it costs, and the best ones are kept whole and in their order. How central a text is
says nothing: by `benchmarks/answer_words.py` the words that a question will need survive no better than by chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.specifics import CAPITALISED
from memory_pipeline.text.tokens import estimate

RARE = 3.0
"""Exponent of a word's rarity: one rare word says more than two that are half as rare."""
NAMED = 6.0
"""The extra weight of a name, a number, a path or an identifier."""
OWN = 2.0
"""The extra weight of a text in which people speak of themselves, in English only."""
ASKED = 0.5
"""The weight of a question."""
LENGTH = 0.75
"""Exponent of the tokens that a text costs: 1 keeps fragments, 0 the longest."""
_OWN = re.compile(r"\b(i|me|my|mine|we|us|our|ours)\b", re.I)


def condense(texts: Sequence[str], share: float, rarity: Mapping[str, float] | None = None) -> list[int]:
    """Numbers of the texts that are kept, in order: the most worth that fits into this share of their tokens.

    `rarity` is that of each word, from 0 for one that is everywhere, counted in more than these texts where more is
    known; a word that it does not know counts nothing. Of texts with the very same words one is kept.
    """
    words = [content_words(text) for text in texts]
    costs = [estimate(text) for text in texts]
    known = rarity if rarity is not None else rarity_in(words)
    scores = [_score(*each, known) for each in zip(texts, words, costs, strict=True)]
    budget = share * sum(costs)
    said: set[frozenset[str]] = set()
    kept = []
    for i in sorted(range(len(texts)), key=lambda i: -scores[i]):
        if 0 < costs[i] <= budget and words[i] not in said:
            budget -= costs[i]
            said.add(words[i])
            kept.append(i)
    return sorted(kept)


def rarity_in(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """The rarity of a word among these texts, given by their words: 0 if all have it."""
    counts = Counter(word for words in texts for word in words)
    return {word: math.log((1 + len(texts)) / count) for word, count in counts.items()}


def _score(text: str, words: frozenset[str], cost: int, rarity: Mapping[str, float]) -> float:
    names = frozenset[str]().union(*(content_words(name) for name in CAPITALISED.findall(text)))
    rare = math.fsum(  # exact, so that the order of a set's words does not matter
        math.pow(rarity.get(word, 0.0), RARE) * (NAMED if word in names or not word.replace("-", "").isalpha() else 1.0)
        for word in words
    )
    own = OWN if _OWN.search(text) else 1.0
    asked = ASKED if text.rstrip("\"'”’)* ").endswith(("?", "？")) else 1.0
    return own * asked * rare / math.pow(max(1, cost), LENGTH)
