"""Ranking of passages and sessions for a question: by words, meaning, neighbours and session, and then by amendments.

The scores of the lists are normalised and added. Reciprocal ranks, which ignore score differences, found less in every
comparison (`benchmarks/recall.py` prints both). A question usually has the words of the older state, so the older
session is the better hit by words and meaning. If a user said in a later one that they amend something ("Amendment to
the retry policy: ..."), that session comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_pipeline.embeddings.index import (
    CONTEXT,
    DENSE,
    EVERYTHING,
    SESSION,
    WORDS,
    Filters,
    Hit,
    IndexUnavailableError,
    Sparse,
    VectorIndex,
    weigh_query,
)
from memory_pipeline.text.languages.identify import cues_of, english, is_plainly_english
from memory_pipeline.text.phrases import LANGUAGES, SPACED_LANGUAGES, load
from memory_pipeline.text.similarity import CJK
from memory_pipeline.text.terms import query_terms

SUBSTANTIAL, SHORTEST, QUESTION = 300, 0.7, 0.7
"""Characters from which an agent's passage counts in full, and the factors for one of hardly any characters and for a
user's question. On one half of the questions of `benchmarks/recall.py` about a project, R@10 of messages rises from
67.2 to 73.5 with them, and on the other half, not used for choosing them, from 46.6 to 47.5."""
CANDIDATES = 200
"""Number of hits requested for each list."""
FIELDS = ("source_id", "session_id", "before", "after")
"""Fields of the payload that ranking needs."""
OF_PASSAGE = {WORDS: 0.2, CONTEXT: 0.2, DENSE: 0.3}
"""Weights of a passage's own lists in its score, chosen by hand on the conversations of `benchmarks/recall.py`."""
OF_ITS_SESSION, OF_NEIGHBOURS = 0.2, 0.1
"""Weights of the words of a passage's whole session and of its neighbours in its score, chosen likewise."""
OF_SESSION = (0.3, 0.4, 0.2, 0.1)
"""Weights of `Ranked.session_parts` in the score of a session, chosen by leaving one conversation out."""
NEAR = 0.55
"""Minimum score of an amending session as a share of that of the older one, so that both are about the question. The
three amended tasks of sde-bench's visible half have .60 to .99, other sessions that amend something mostly less
(`benchmarks/sde.py`)."""


@dataclass(frozen=True)
class Candidates:
    """The answers of the index: hits on passages by the name of the vector, and on whole sessions."""

    passages: Mapping[str, Sequence[Hit]]
    sessions: Sequence[Hit]


class Place(NamedTuple):
    """A hit or a session of a list, best first."""

    session_id: str
    score: float
    said_at: str
    """Time in ISO format, or empty."""
    role: str = ""
    text: str = ""


def candidates(
    index: VectorIndex, query: Sequence[str], vector: Sequence[float] | None, filters: Filters = EVERYTHING
) -> Candidates:
    """The lists of the collection of messages for the terms of a query and its dense vector, if any."""
    words = weigh_query(query)
    found = {name: _search(index, words, name, filters) if query else [] for name in (WORDS, CONTEXT)}
    found[DENSE] = _search(index, vector, DENSE, filters) if vector is not None else []
    return Candidates(found, _search(index, words, SESSION, filters) if query else [])


def _search(index: VectorIndex, vector: Sequence[float] | Sparse, using: str, filters: Filters) -> list[Hit]:
    """The hits for a named vector. Whole sessions have a vector with its own name and no other, so each name finds one
    kind of point. Raises `IndexUnavailableError` also for other points, which a damaged index may hold."""
    hits = index.search(vector, CANDIDATES, using=using, filters=filters, fields=FIELDS)
    needed = FIELDS[:2] if using == SESSION else FIELDS
    if not all(hit.payload.keys() >= set(needed) for hit in hits):
        raise IndexUnavailableError("the index holds unknown points; `memory admin index rebuild` rebuilds it.")
    return hits


class Ranked:
    """The candidates in one order of passages and one of sessions, each with scores, best first."""

    def __init__(self, found: Candidates) -> None:
        self.payloads = {hit.point_id: hit.payload for hits in found.passages.values() for hit in hits}
        """At most `FIELDS` of the payload of each retrieved passage."""
        self.meaning = {hit.point_id: hit.score for hit in found.passages[DENSE]}
        """Cosine by passage, for those that are near in meaning."""
        self._near = normalised(found.passages[DENSE])
        self._beside = {
            name: max(self._near.get(payload["before"], 0.0), self._near.get(payload["after"], 0.0))
            for name, payload in self.payloads.items()
        }
        """The similarity of the nearer of a passage's two neighbours, by passage."""
        self._own: dict[str, float] = defaultdict(float)
        for name, weight in OF_PASSAGE.items():
            for point, score in normalised(found.passages[name]).items():
                self._own[point] += weight * score
        self.session_parts = self._session_parts(found)
        self.passages = best_first(
            {
                name: self._own[name]
                + OF_ITS_SESSION * self.session_parts[0].get(payload["session_id"], 0.0)
                + OF_NEIGHBOURS * self._beside[name]
                for name, payload in self.payloads.items()
            }
        )
        sessions: dict[str, float] = defaultdict(float)
        for weight, part in zip(OF_SESSION, self.session_parts, strict=True):
            for session, score in part.items():
                sessions[session] += weight * score
        self.sessions = best_first(sessions)

    def _session_parts(self, found: Candidates) -> tuple[dict[str, float], ...]:
        """Scores from 0 to 1 by session: of all its words, its best passage, its best pair of neighbours, and its three
        passages nearest in meaning."""
        inside: dict[str, list[str]] = defaultdict(list)
        for name, payload in self.payloads.items():
            inside[payload["session_id"]].append(name)
        near, beside, stretched = self._near, self._beside, _stretched(found.passages[DENSE])
        best = {session: max(self._own[n] for n in names) for session, names in inside.items()}
        pairs = {s: max(near.get(n, 0.0) + beside[n] for n in names) for s, names in inside.items()}
        three = {s: sum(sorted((stretched.get(n, 0.0) for n in own), reverse=True)[:3]) for s, own in inside.items()}
        return _by_session(found.sessions), *(_scaled_to_highest(part) for part in (best, pairs, three))


def best_first(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """The names with their scores, the highest first."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def normalised(hits: Sequence[Hit]) -> dict[str, float]:
    """The scores by point, from 0 to 1 for the highest."""
    return _scaled_to_highest({hit.point_id: max(hit.score, 0.0) for hit in hits})


def _scaled_to_highest(part: Mapping[str, float]) -> dict[str, float]:
    highest = max(part.values(), default=0.0)
    return {name: score / highest for name, score in part.items()} if highest > 0 else {}


def _stretched(hits: Sequence[Hit]) -> dict[str, float]:
    """Scores stretched from 0 (lowest hit) to 1 (highest hit), as cosines of hits are close together."""
    scores = [hit.score for hit in hits]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return {hit.point_id: (hit.score - low) / (high - low) for hit in hits} if high > low else {}


def _by_session(hits: Sequence[Hit]) -> dict[str, float]:
    """The scores by session; for a session of several days the best one."""
    best: dict[str, float] = defaultdict(float)
    scores = normalised(hits)
    for hit in hits:
        session = hit.payload["session_id"]
        best[session] = max(best[session], scores.get(hit.point_id, 0.0))
    return best


def substance(payload: Mapping[str, Any]) -> float:
    """The factor for the score of a passage. A question contains no answer. An agent's few words between two tool calls
    announce its next step and contain none, while a user's few words may be the rule itself."""
    if payload["role"] != "assistant":
        return QUESTION if payload["text"].rstrip().endswith(("?", "？")) else 1.0
    return min(1.0, SHORTEST + (1 - SHORTEST) * len(payload["text"]) / SUBSTANTIAL)


def amending(hits: Iterable[Place], asked: Sequence[str]) -> dict[str, str]:
    """The sessions in which a user amends something that the question names, each with the time of that message;
    ``asked`` are the terms of the question."""
    found: dict[str, str] = {}
    terms = set(asked)
    for hit in hits:
        announces = hit.role == "user" and hit.said_at and _announces(hit.text)
        if announces and not terms.isdisjoint(query_terms(hit.text)):
            found.setdefault(hit.session_id, hit.said_at)
    return found


def _announces(text: str) -> bool:
    """Whether the text says, in its language, that it amends something."""
    if is_plainly_english(text):
        return bool(english().amends.search(text))
    # the language is identified last: few texts need it, and the model takes longer than the rest of a search
    names = LANGUAGES if CJK.search(text) else SPACED_LANGUAGES
    return any(load(name).amends.search(text) for name in names) and bool(cues_of(text).amends.search(text))


def amended_order(places: Sequence[Place], amended_at: Mapping[str, str]) -> list[int]:
    """The indices of the places, with the best of each amending session moved before earlier sessions whose score is
    less than 1 / `NEAR` times as high."""
    order = list(range(len(places)))
    for name, at in amended_at.items():
        newer = next((number for number in order if places[number].session_id == name), None)
        if newer is None:
            continue
        ahead = order[: order.index(newer)]
        older = (n for n in ahead if places[n].said_at < at and places[newer].score >= NEAR * places[n].score)
        if (first := next(older, None)) is not None:
            order.remove(newer)
            order.insert(order.index(first), newer)
    return order
