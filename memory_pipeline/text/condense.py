"""Extraction of the texts with the rarest words, up to a share of the total length. It needs no model and no cues of
what is worth keeping.

Later questions are about rare and specific words: names, numbers, and things that were said once. The value of a text
is the rarity of its words relative to its tokens; the best texts are kept whole and in order. How central a text is
does not help: in `benchmarks/answer_words.py` centrality keeps the words that a question will need no better than
chance.
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
"""Exponent of a word's rarity: one rare word counts more than two that are half as rare."""
NAMED = 6.0
"""The extra weight of a name, a number, a path or an identifier."""
OWN = 2.0
"""The extra weight of a text in the first person, in English only."""
ASKED = 0.5
"""The weight of a question."""
LENGTH = 0.75
"""Exponent of the tokens of a text: 1 prefers fragments, 0 the longest texts."""
_OWN = re.compile(r"\b(i|me|my|mine|we|us|our|ours)\b", re.I)


def condense(texts: Sequence[str], share: float, rarity: Mapping[str, float] | None = None) -> list[int]:
    """Indices of the selected texts, in order: those with the highest value that fit into this share of the tokens of
    all.

    `rarity` maps each word to its rarity, 0 for one that occurs everywhere; it may be counted over more texts than
    these. An unknown word counts nothing. Of texts with the same set of words one is kept.
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
    """The rarity of each word among these texts, which are given as sets of words; 0 if all have it."""
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
