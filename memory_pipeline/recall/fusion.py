"""Ranking of passages and sessions for a question: by words, meaning, neighbours and session.

The scores of the lists are normalised and added. Reciprocal ranks, which ignore score differences, found less in every
comparison (`benchmarks/recall.py` prints both).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Self

from memory_pipeline.embeddings.index import (
    CONTEXT,
    DENSE,
    SESSION,
    WORDS,
    Hit,
    IndexUnavailableError,
    Sparse,
    VectorIndex,
)
from memory_pipeline.embeddings.sparse import weigh_query

SUBSTANTIAL, SHORTEST, QUESTION = 300, 0.7, 0.7
"""Characters from which an agent's passage counts in full, and the factors for one of hardly any characters and for a
user's question. On one half of the questions of `benchmarks/recall.py` about a project, R@10 of messages rises from
67.2 to 73.5 with them, and on the other half, not used for choosing them, from 46.6 to 47.5."""
CANDIDATES = 200
"""Number of hits requested for each list."""
FIELDS = ("source_id", "session_id", "before", "after")
"""Fields of the payload that ranking needs."""


@dataclass(frozen=True)
class Weights:
    """The weight of each list in a score. The weights of sessions were chosen by leaving one conversation out
    (`benchmarks/recall.py`), those of passages by hand on the same conversations."""

    words: float = 0.2
    context: float = 0.2
    meaning: float = 0.3
    session: float = 0.2
    neighbours: float = 0.1
    of_session: tuple[float, float, float, float] = (0.3, 0.4, 0.2, 0.1)
    """Weights of all words of a session, its best passage, its best pair of neighbours, and its three passages nearest
    in meaning."""


WEIGHTS = Weights()


@dataclass(frozen=True)
class Filters:
    """Conditions for hits: a range of days (both included) and one of the given values in each field of `equals`."""

    first_day: date | None = None
    last_day: date | None = None
    equals: Mapping[str, Collection[str]] = field(default_factory=dict)


EVERYTHING = Filters()


@dataclass(frozen=True)
class Candidates:
    """The answers of the index: hits on passages by the name of the vector, and on whole sessions."""

    passages: Mapping[str, Sequence[Hit]]
    sessions: Sequence[Hit]


@dataclass(frozen=True)
class Ranked:
    """Passages and sessions with their scores, best first; `payloads` maps points of all retrieved passages to at most
    `FIELDS`."""

    passages: list[tuple[str, float]]
    sessions: list[tuple[str, float]]
    payloads: dict[str, dict[str, Any]]
    meaning: dict[str, float]
    """Cosine by passage, for those that are near in meaning."""


def rank(
    index: VectorIndex, query: Sequence[str], vector: Sequence[float] | None, filters: Filters = EVERYTHING
) -> Ranked:
    """The passages and sessions of the collection of messages for the terms of a query and its dense vector, if any."""
    return fuse(candidates(index, query, vector, filters))


def candidates(
    index: VectorIndex, query: Sequence[str], vector: Sequence[float] | None, filters: Filters = EVERYTHING
) -> Candidates:
    """The lists of the index for a query."""
    words = weigh_query(query)
    found = {name: _search(index, words, name, filters) if query else [] for name in (WORDS, CONTEXT)}
    found[DENSE] = _search(index, vector, DENSE, filters) if vector is not None else []
    return Candidates(found, _search(index, words, SESSION, filters) if query else [])


def fuse(found: Candidates, weights: Weights = WEIGHTS) -> Ranked:
    """The lists merged into one order of passages and one of sessions."""
    seen = _Seen.of(found, weights)
    scores = {
        name: seen.own[name]
        + weights.session * seen.by_session.get(payload["session_id"], 0.0)
        + weights.neighbours * seen.beside[name]
        for name, payload in seen.payloads.items()
    }
    sessions: dict[str, float] = defaultdict(float)
    for weight, part in zip(weights.of_session, _parts(seen, found), strict=True):
        for session, score in part.items():
            sessions[session] += weight * score
    return Ranked(
        sorted(scores.items(), key=lambda item: (-item[1], item[0])),
        sorted(sessions.items(), key=lambda item: (-item[1], item[0])),
        seen.payloads,
        {hit.point_id: hit.score for hit in found.passages[DENSE]},
    )


def session_parts(found: Candidates, weights: Weights = WEIGHTS) -> tuple[dict[str, float], ...]:
    """The parts that `Weights.of_session` weights, each with a score from 0 to 1 by session."""
    return _parts(_Seen.of(found, weights), found)


@dataclass(frozen=True)
class _Seen:
    """Intermediate scores: by passage, and by session for the words of the whole session."""

    payloads: dict[str, dict[str, Any]]
    own: Mapping[str, float]
    near: Mapping[str, float]
    beside: Mapping[str, float]
    by_session: dict[str, float]

    @classmethod
    def of(cls, found: Candidates, weights: Weights) -> Self:
        payloads = {hit.point_id: hit.payload for hits in found.passages.values() for hit in hits}
        near = _normalised(found.passages[DENSE])
        own = _own_scores(found, weights)
        return cls(payloads, own, near, _neighbour_scores(near, payloads), _by_session(found.sessions))


def _parts(seen: _Seen, found: Candidates) -> tuple[dict[str, float], ...]:
    inside: dict[str, list[str]] = defaultdict(list)
    for name, payload in seen.payloads.items():
        inside[payload["session_id"]].append(name)
    own, near, beside, stretched = seen.own, seen.near, seen.beside, _stretched(found.passages[DENSE])
    best = {session: max(own[n] for n in names) for session, names in inside.items()}
    pairs = {s: max(near.get(n, 0.0) + beside[n] for n in names) for s, names in inside.items()}
    three = {s: sum(sorted((stretched.get(n, 0.0) for n in names), reverse=True)[:3]) for s, names in inside.items()}
    return seen.by_session, *(_scaled_to_highest(part) for part in (best, pairs, three))


def _own_scores(found: Candidates, weights: Weights) -> dict[str, float]:
    """Scores by passage, from its own words and meaning and its context."""
    scores: dict[str, float] = defaultdict(float)
    for name, weight in ((WORDS, weights.words), (CONTEXT, weights.context), (DENSE, weights.meaning)):
        for point, score in _normalised(found.passages[name]).items():
            scores[point] += weight * score
    return scores


def substance(payload: Mapping[str, Any]) -> float:
    """The factor for the score of a passage. A question contains no answer. An agent's few words between two tool calls
    announce its next step and contain none, while a user's few words may be the rule itself."""
    if payload["role"] != "assistant":
        return QUESTION if payload["text"].rstrip().endswith(("?", "？")) else 1.0
    return min(1.0, SHORTEST + (1 - SHORTEST) * len(payload["text"]) / SUBSTANTIAL)


def _scaled_to_highest(part: Mapping[str, float]) -> dict[str, float]:
    highest = max(part.values(), default=0.0)
    return {name: score / highest for name, score in part.items()} if highest > 0 else {}


def _stretched(hits: Sequence[Hit]) -> dict[str, float]:
    """Scores stretched from 0 (lowest hit) to 1 (highest hit), as cosines of hits are close together."""
    scores = [hit.score for hit in hits]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return {hit.point_id: (hit.score - low) / (high - low) for hit in hits} if high > low else {}


def _search(index: VectorIndex, vector: Sequence[float] | Sparse, using: str, filters: Filters) -> list[Hit]:
    """The hits for a named vector. Whole sessions have a vector with its own name and no other, so each name finds one
    kind of point. Raises `IndexUnavailableError` also for other points, which a damaged index may hold."""
    hits = index.search(
        vector,
        CANDIDATES,
        using=using,
        first_day=filters.first_day,
        last_day=filters.last_day,
        equals=filters.equals,
        fields=FIELDS,
    )
    needed = FIELDS[:2] if using == SESSION else FIELDS
    if not all(hit.payload.keys() >= set(needed) for hit in hits):
        raise IndexUnavailableError("the index holds unknown points; `memory admin index rebuild` rebuilds it.")
    return hits


def _normalised(hits: Sequence[Hit]) -> dict[str, float]:
    highest = max((hit.score for hit in hits), default=0.0)
    return {hit.point_id: max(hit.score, 0.0) / highest for hit in hits} if highest > 0 else {}


def _by_session(hits: Sequence[Hit]) -> dict[str, float]:
    """The scores by session; for a session of several days the best one."""
    best: dict[str, float] = {}
    scores = _normalised(hits)
    for hit in hits:
        session = hit.payload["session_id"]
        best[session] = max(best.get(session, 0.0), scores.get(hit.point_id, 0.0))
    return best


def _neighbour_scores(near: Mapping[str, float], payloads: Mapping[str, dict[str, Any]]) -> dict[str, float]:
    """The similarity of the nearer of a passage's two neighbours, by passage."""
    return {
        name: max(near.get(payload["before"], 0.0), near.get(payload["after"], 0.0))
        for name, payload in payloads.items()
    }
