"""Keyword search over some hundred short texts (Okapi BM25), in process and without an index on disk."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from memory_pipeline.text.similarity import content_words, words

SATURATION = 1.2
"""How soon a word that is said again counts no more."""
BY_LENGTH = 0.75
"""How much longer texts are held back: 0 not at all, 1 by all of their length."""


class BM25:
    """Texts that can be asked for by their words; common words count nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [_counts(text) for text in texts]
        lengths = [count.total() for count in counted]
        mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._places: dict[str, list[tuple[int, float]]] = defaultdict(list)
        """Of each word: the texts that have it, and what it counts there."""
        for number, count in enumerate(counted):
            damping = SATURATION * (1 - BY_LENGTH + BY_LENGTH * lengths[number] / mean)
            for word, times in count.items():
                self._places[word].append((number, times * (SATURATION + 1) / (times + damping)))
        for word, places in self._places.items():
            rarity = math.log(1 + (len(texts) - len(places) + 0.5) / (len(places) + 0.5))
            self._places[word] = [(number, rarity * weight) for number, weight in places]

    def search(self, query: str, limit: int) -> list[int]:
        """Numbers of the texts that share a word with the query, the best first; of equals the earlier one."""
        found: defaultdict[int, float] = defaultdict(float)
        for word in sorted(content_words(query)):
            for number, weight in self._places.get(word, ()):
                found[number] += weight
        return sorted(found, key=lambda number: (-found[number], number))[:limit]


def _counts(text: str) -> Counter[str]:
    kept = content_words(text)
    return Counter(word for word in words(text) if word in kept)
