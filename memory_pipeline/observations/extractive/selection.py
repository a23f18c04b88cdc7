"""The choice of what is kept: the most worth per token that fits into the budget, without saying things twice."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from memory_pipeline.observations.extractive.candidates import Candidate
from memory_pipeline.observations.extractive.weights import Weights
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

REPEATS = 0.85
"""Share of a unit's words, by their rarity, that another has already, from which it says nothing new."""


class Selection:
    """What has been kept so far, indexed by its words and its place."""

    def __init__(self, rarity: Mapping[str, float]) -> None:
        self.rarity = rarity
        self.kept: list[Candidate] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._spans: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, candidate: Candidate, words: frozenset[str]) -> None:
        for word in words:
            self._by_word[word].append(len(self.kept))
        for position, start, end in candidate.unit.places:
            self._spans[position].append((start, end))
        self.kept.append(candidate)

    def overlaps(self, candidate: Candidate) -> bool:
        """Whether some of the very same words are kept already."""
        return any(
            start < other_end and other_start < end
            for position, start, end in candidate.unit.places
            for other_start, other_end in self._spans.get(position, ())
        )

    def repeated(self, words: frozenset[str], since: int = 0) -> float:
        """The largest share of these words, by their rarity, that one of those kept has; of the first `since`, none
        is looked at."""
        shared: dict[int, float] = defaultdict(float)
        total = 0.0
        for word in words:
            weight = self.rarity.get(word, 1.0)
            total += weight
            having = self._by_word.get(word, ())
            for number in having[bisect_left(having, since) :]:
                shared[number] += weight
        return max(shared.values(), default=0.0) / total if total else 0.0


def select(pool: Sequence[Candidate], weights: Weights, rarity: Mapping[str, float], room: float) -> list[Candidate]:
    """The best that fit, in the order in which they were said.

    What is kept makes others that repeat it worth less. Values only fall, so a heap with values that may be too high
    is enough: what stays on top when it is looked at again is the best.
    """
    chosen = Selection(rarity)
    words = [content_words(c.unit.text) for c in pool]
    costs = [estimate(c.unit.text) for c in pool]
    worth = [c.probability**2 / math.pow(max(1, cost), weights.cost) for c, cost in zip(pool, costs, strict=True)]
    heap = [(-value, i) for i, value in enumerate(worth)]
    heapify(heap)
    repeated, looked_at = [0.0] * len(pool), [0] * len(pool)  # so that no two are compared twice
    least = min(costs, default=0)
    while heap and room >= least:
        value, i = heappop(heap)
        if costs[i] > room or chosen.overlaps(pool[i]):
            continue
        repeated[i] = max(repeated[i], chosen.repeated(words[i], looked_at[i]))
        looked_at[i] = len(chosen.kept)
        if repeated[i] >= REPEATS:
            continue
        now = -worth[i] * (1 - weights.redundancy * repeated[i])
        if now > value:
            heappush(heap, (now, i))
            continue
        room -= costs[i]
        chosen.add(pool[i], words[i])
    return sorted(chosen.kept, key=lambda c: (c.unit.position, c.unit.start))
