"""The choice compares no two units twice, and comes to what comparing all with all each time comes to."""

import random

import pytest

from memory_pipeline.observations.quotes.candidates import SAYS_NOTHING_NEW, Candidate, Weights, select
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

WORDS = "parcel invoice carrier label retry queue port table index cache token route".split()  # noqa: SIM905
RARITY = {word: 0.3 + 0.1 * number for number, word in enumerate(WORDS)}
WEIGHTS = Weights(0.0, {}, cost=0.3, redundancy=0.8)


def pool(seed: int, size: int = 120) -> list[Candidate]:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 8))) for _ in range(size)]
    return [
        Candidate(Unit(i, 0, len(text), text, "said", (text,)), "statement", "assistant", chance.random(), False)
        for i, text in enumerate(texts)
    ]


def share(candidate: Candidate, kept: list[Candidate]) -> float:
    words = content_words(candidate.unit.text)
    total = sum(RARITY[w] for w in words)
    return max((sum(RARITY[w] for w in words & content_words(k.unit.text)) / total for k in kept), default=0.0)


def slowly(candidates: list[Candidate], token_budget: float) -> list[Candidate]:
    kept: list[Candidate] = []
    left = list(candidates)
    while left:
        left = [c for c in left if estimate(c.unit.text) <= token_budget and share(c, kept) < SAYS_NOTHING_NEW]
        if not left:
            break
        best = max(
            left,
            key=lambda c: (
                c.probability**2 / estimate(c.unit.text) ** WEIGHTS.cost * (1 - WEIGHTS.redundancy * share(c, kept))
            ),
        )
        kept.append(best)
        left.remove(best)
        token_budget -= estimate(best.unit.text)
    return sorted(kept, key=lambda c: c.unit.position)


@pytest.mark.slow
def test_as_when_all_are_compared_with_all() -> None:
    for seed in range(20):
        candidates = pool(seed)
        kept = select(candidates, WEIGHTS, RARITY, token_budget=200)
        assert 10 < len(kept) < len(candidates)
        assert kept == slowly(candidates, 200)


def test_of_the_same_words_one_is_kept() -> None:
    text = "the carrier of each parcel"
    same = [Candidate(Unit(i, 0, 9, text, "said", (text,)), "statement", "assistant", 0.9, False) for i in range(50)]
    assert select(same, WEIGHTS, {}, token_budget=10_000) == same[:1]
