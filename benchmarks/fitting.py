"""Fitting the weights of the extractive observer on labelled sessions, and the scorer's figures without the scorer.

A unit counts as worth keeping when the scorer would find a gold fact in it; those that hold a high fact count double.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import FIXTURES
from benchmarks.labels import scorer
from benchmarks.observing import Session
from memory_pipeline.observations.quotes.candidates import Weights, measured
from memory_pipeline.observations.quotes.features import FEATURES, Conversation
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Fact, Segment

WEIGHT_OF_HIGH = 2.0
PENALTY, PENALTY_OF_SESSION = 0.1, 1.0
"""Of the ridge, on weights and on the sessions' offsets. A third or three times as much does as well."""
COST, REDUNDANCY = 0.3, 0.8
"""From 0.2 to 0.4, and from 0.6 to 1, do as well within the noise, so nothing is chosen here."""
Hits = Callable[[str, tuple[str, ...]], tuple[frozenset[int], frozenset[int]]]


@dataclass(frozen=True, eq=False)
class Labelled:
    """A session measured, and for each of its units whether the scorer finds a fact in it."""

    session: Session
    features: np.ndarray
    is_fact: np.ndarray
    weight: np.ndarray
    hits: Hits
    """Numbers of the facts and of the traps that a text with its evidence holds."""

    @property
    def high(self) -> set[int]:
        return {i for i, fact in enumerate(self.session.gold["facts"]) if fact["priority"] == "high"}


def labelled(session: Session, fixtures: Path = FIXTURES) -> Labelled:
    found = measured(Conversation(session.said))
    hits = _finder(session, fixtures)
    texts = [m.text for m in session.said]
    facts = [hits(u.text, tuple(texts[i][start:end] for i, start, end in u.places))[0] for u, _ in found]
    high = {i for i, fact in enumerate(session.gold["facts"]) if fact["priority"] == "high"}
    is_fact = np.array([float(bool(f)) for f in facts])
    weight = np.array([WEIGHT_OF_HIGH if f & high else 1.0 for f in facts])
    return Labelled(session, np.array([own for _, (own, *_) in found]), is_fact, weight, hits)


def _finder(session: Session, fixtures: Path) -> Hits:
    """The scorer's rule."""
    words_of = scorer().words
    spoken = [(n, " ".join(text.split())) for n, text in scorer().spoken(fixtures / session.file)]
    golds = [
        (
            [k.lower() for k in fact["keywords"]],
            [set(words_of(fact["text"])), set(words_of(fact["quote"]))],
            {fact["line"], *fact.get("other_lines", [])},
        )
        for fact in session.gold["facts"]
    ]
    traps = [set(words_of(trap["quote"])) for trap in session.gold["traps"]]

    def share(gold: set[str], words: set[str]) -> float:
        return len(gold & words) / len(gold) if gold else 0.0

    def finds(fact: tuple[list[str], list[set[str]], set[int]], text: str, words: set[str], lines: set[int]) -> bool:
        keywords, texts, places = fact
        keys = sum(k in text for k in keywords) * 2 >= len(keywords)
        same = max(share(t, words) for t in texts) >= 0.35
        return (keys and same) or ((keys or same) and bool(lines & places))

    @cache
    def hits(text: str, evidence: tuple[str, ...]) -> tuple[frozenset[int], frozenset[int]]:
        spans = [" ".join(e.split()) for e in evidence[:3] if len(e.strip()) >= 12]
        lines = {n for n, said in spoken for e in spans if e in said}
        words = set(words_of(text))
        facts = (i for i, fact in enumerate(golds) if finds(fact, text.lower(), words, lines))
        return frozenset(facts), frozenset(i for i, trap in enumerate(traps) if share(trap, words) >= 0.6)

    return hits


def fit(data: Sequence[Labelled]) -> np.ndarray:
    """Logistic regression with a ridge, by Newton's method; the intercept comes last and is not penalised.

    Each session has an offset of its own while this is fitted: how much of it is worth keeping differs, and a weight
    should tell good from bad within a session, not one session from another.
    """
    sizes = [len(d.features) for d in data]
    offsets = np.repeat(np.eye(len(data)), sizes, axis=0)
    x = np.hstack([np.vstack([d.features for d in data]), np.ones((sum(sizes), 1)), offsets])
    y, weight = np.concatenate([d.is_fact for d in data]), np.concatenate([d.weight for d in data])
    weights = x.shape[1] - len(data)
    ridge = np.diag([PENALTY] * (weights - 1) + [1e-6] + [PENALTY_OF_SESSION] * len(data))
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -60, 60)))
        gradient = x.T @ (weight * (p - y)) + ridge @ beta
        step = np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x + ridge, gradient)
        beta -= step
        if abs(step).max() < 1e-8:
            break
    return beta[:weights]


def weights_of(beta: np.ndarray) -> Weights:
    features = {name: round(float(value), 4) for name, value in zip(FEATURES, beta[:-1], strict=True)}
    return Weights(round(float(beta[-1]), 4), features, COST, REDUNDANCY)


def observed(data: Labelled, weights: Weights) -> list[Segment]:
    """The session with these weights; nothing is granted to short windows, as the scorer cuts by tokens."""
    return ExtractiveObserver(min_budget=0, weights=weights).observe(data.session.said)


def goodness(data: Labelled, segments: Iterable[Segment]) -> np.ndarray:
    """Facts, high facts, found, high found, high as high, high observations, junk, traps, trapped."""
    return goodness_of_facts(data, [fact for segment in segments for fact in segment.facts])


def goodness_of_facts(data: Labelled, found: Sequence[Fact]) -> np.ndarray:
    texts = {m.message_id: m.text for m in data.session.said}
    all_found: set[int] = set()
    as_high: set[int] = set()
    trapped: set[int] = set()
    highs = junk = 0
    for fact in found:
        facts, traps = data.hits(fact.text, tuple(texts[s.message_id][s.start : s.end] for s in fact.evidence))
        all_found |= facts
        if fact.priority == "high":
            highs, junk = highs + 1, junk + (not facts)
            as_high |= facts
            trapped |= traps
    gold, high = data.session.gold, data.high
    counts = (len(gold["facts"]), len(high), len(all_found), len(all_found & high), len(as_high & high), highs, junk)
    return np.array([*counts, len(gold["traps"]), len(trapped)], dtype=float)


def objective(counts: np.ndarray) -> float:
    """The five figures with equal weight."""
    facts, high, found, high_found, as_high, highs, junk, traps, trapped = counts
    return float(found / facts + high_found / high + as_high / high - junk / max(1.0, highs) - trapped / traps)


def figures_of(counts: np.ndarray) -> dict[str, Any]:
    facts, high, found, high_found, as_high, highs, junk, traps, trapped = counts
    shares = (found / facts, high_found / high, as_high / high, junk / max(1.0, highs), trapped / traps)
    names = ("recall", "recall_high", "high_as_high", "junk", "trap_rate")
    return {name: round(float(share), 3) for name, share in zip(names, shares, strict=True)}
