"""Search over everything that is kept: what was said, what was observed of it, and the lines of MEMORY.md.

Opens the index late and closes it early. While a run writes it waits for it a moment, then it answers by words
from the tables (`scan.py`); it never sees half a day, since a day is written while the index is held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from memory_pipeline.embeddings.index import (
    COLLECTION,
    DENSE,
    MESSAGES,
    OBSERVATION,
    WORDS,
    IndexUnavailableError,
    VectorIndex,
)
from memory_pipeline.embeddings.opening import Collection, new_generation, open_collection, searched_collection
from memory_pipeline.embeddings.sparse import numbers_of, weigh_query
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.recall.approved import approved_lines
from memory_pipeline.recall.fusion import CANDIDATES, EVERYTHING, Filters, Ranked, rank, substance
from memory_pipeline.recall.remembered import Remembered
from memory_pipeline.settings import BUNDLED_MODEL, Settings
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.text.similarity import is_latin
from memory_pipeline.text.terms import query_terms

WAIT_SECONDS = 1.5
"""For the index while a run has it open; what is left of two seconds is for opening it, or the tables."""
MAX_QUERY = 2_000
"""Characters of a query that are looked for: more than the model reads, and than anybody asks."""
MEMORY_LINE = "memory_line"
"""What a hit is that is no point of the index."""
OBSERVATION_FACTOR = 0.8
"""Of an observation's score beside that of the words themselves, which it mostly repeats."""

MIN_LIKENESS = 0.45
"""Cosine of the bundled model from which a hit is about what was asked. On half of the questions of
`benchmarks/recall.py` it is silent on 5 of 10 that have no answer and on 3 of 34 that have one; on the other half,
which it was not chosen on, on 3 of 4 and 2 of 34."""
MIN_COVERAGE, ALL_BUT_SAID = 0.45, 0.8
"""Share of what is asked that a hit has in words: where there is no such cosine, and where there is none near."""
AMONG_THE_BEST = 5
FIELDS_SHOWN = (
    *("record", "source_id", "text", "timestamp", "session_id", "session_name", "project", "harness", "role"),
    *("priority", "kind", "start", "end"),
)
"""Of a payload that a hit tells."""


class QueryError(MemoryPipelineError):
    """A query that says nothing to look for."""


@dataclass(frozen=True)
class Found:
    """A hit: a passage of a message, an observation, or a line of MEMORY.md. `score` is 0 to about 1."""

    record: str
    source_id: str
    score: float
    text: str
    day: str = ""
    timestamp: str = ""
    session_id: str = ""
    session_name: str = ""
    project: str = ""
    harness: str = ""
    role: str = ""
    priority: str = ""
    kind: str = ""
    start: int = 0
    end: int = 0
    point_id: str = ""


@dataclass(frozen=True)
class Results:
    """What was found, best first. `notes` say in a sentence each what the answer lacks: no model, no index."""

    query: str
    hits: tuple[Found, ...]
    sessions: tuple[str, ...]
    is_likely: bool
    """Whether the best hits are about what was asked, and not merely the least unlike."""
    notes: tuple[str, ...] = ()
    coverage: float = 0.0
    """Share of what the query asks for, by weight of its terms, that the best hit and its neighbours have."""
    likeness: float | None = None
    """The highest cosine to the query among the best hits; None where it could not tell."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """What each term of the query is worth."""


@dataclass
class _Open:
    messages: VectorIndex | None = None
    observations: VectorIndex | None = None
    model: str = ""
    dimension: int = 0
    notes: list[str] = field(default_factory=list)


def search(
    settings: Settings,
    query: str,
    filters: Filters = EVERYTHING,
    *,
    limit: int = 8,
) -> Results:
    """The best hits for a query. Raises `QueryError` for one without words; all else is answered as well as can be."""
    with searcher(settings) as ask:
        return ask.search(query, filters, limit=limit)


@contextmanager
def searcher(settings: Settings, *, wait: float = WAIT_SECONDS) -> Iterator[Searcher]:
    """One that keeps the index open, for many queries in a row. Others wait meanwhile: close it soon."""
    opened = Searcher(settings, wait)
    try:
        yield opened
    finally:
        opened.close()


class Searcher:
    """Holds the collections open from the first query until `close`."""

    def __init__(self, settings: Settings, wait: float = WAIT_SECONDS) -> None:
        self.settings = settings
        self._wait = wait
        self._open: _Open | None = None

    @classmethod
    def over(cls, settings: Settings, messages: VectorIndex, model: str) -> Self:
        """One over a collection that is open already, with vectors of this model."""
        made = cls(settings)
        made._open = _Open(messages, model=model)
        return made

    def search(self, query: str, filters: Filters = EVERYTHING, *, limit: int = 8) -> Results:
        """See `search`."""
        text = query.strip()[:MAX_QUERY]
        wanted = query_terms(text)
        if not any(character.isalnum() for character in text):
            raise QueryError("There is nothing to look for: ask with at least one word.")
        opened = self._collections()
        notes = list(opened.notes)
        if opened.messages is None:
            from memory_pipeline.recall.scan import scan  # with it polars, which the index does not need

            found = [Found(**fields) for fields in scan(self.settings, wanted, filters, limit)]
            lines = self._memory_lines(dict.fromkeys(wanted, 1.0), None, "", filters)
            best = sorted([*found, *lines], key=lambda hit: -hit.score)[:limit]
            return Results(
                text, tuple(best), _sessions_of(best), bool(best), tuple(notes), weights=dict.fromkeys(wanted, 1.0)
            )
        vector, note = self._vector(text, opened)
        notes += [note] if note else []
        ranked = rank(opened.messages, wanted, vector, filters)
        weight = _weights_of_terms(opened.messages, wanted)
        best_passages = ranked.passages[: limit * 4]
        payloads = opened.messages.payloads([name for name, _ in best_passages])
        said = [
            _hit(name, score * substance(payloads[name]), payloads[name])
            for name, score in best_passages
            if name in payloads
        ]
        observed = self._observations(opened, wanted, vector, filters, limit)
        lines = self._memory_lines(weight, vector, opened.model, filters)
        coverage = _coverage(opened.messages, ranked, weight)
        cosines = [ranked.meaning.get(name, 0.0) for name, _ in ranked.passages[:AMONG_THE_BEST]]
        likeness = max(cosines, default=0.0) if vector is not None and opened.model == BUNDLED_MODEL else None
        hits = _merged([*said, *observed, *lines])[:limit]
        return Results(
            text,
            tuple(hits),
            tuple(session for session, _ in ranked.sessions[: max(limit, 10)]),
            bool(lines) or (bool(hits) and is_likely(coverage, likeness)),
            tuple(notes),
            coverage,
            likeness,
            weight,
        )

    def close(self) -> None:
        """Let others have the index."""
        opened, self._open = self._open, None
        for index in (opened.messages, opened.observations) if opened else ():
            if index:
                index.close()

    def _collections(self) -> _Open:
        if self._open is None:
            opened = _Open()
            known = searched_collection(self.settings, MESSAGES)
            if known is None:
                opened.notes.append("Nothing is indexed yet: `memory run` does it. Answered by words from the tables.")
                return opened
            deadline = time.monotonic() + self._wait  # for both
            try:
                opened.messages = self._one(known, MESSAGES, deadline)
            except IndexUnavailableError as error:
                opened.notes.append(f"Answered by words from the tables: {error}")
                return opened
            opened.model, opened.dimension = known.model, known.dimension
            try:
                if observations := searched_collection(self.settings, COLLECTION):
                    opened.observations = self._one(observations, COLLECTION, deadline)
            except IndexUnavailableError as error:
                opened.notes.append(f"Without observations: {error}")
            self._open = opened
        return self._open

    def _one(self, collection: Collection, base: str, deadline: float) -> VectorIndex:
        """Raises `IndexUnavailableError` also for one that is gone or damaged: an empty one would find nothing."""
        if not self.settings.qdrant.url and not (self.settings.index_dir / collection.name).is_dir():
            raise IndexUnavailableError(f"{collection.name} is gone from index/; `memory run --all` makes it anew.")
        index = open_collection(
            self.settings, collection.name, collection.dimension, max(deadline - time.monotonic(), 0.0)
        )
        if index.set_aside:
            index.close()
            new_generation(self.settings, base)
            raise IndexUnavailableError(
                f"the index was damaged and lies in {index.set_aside} now; `memory run --all` makes it anew."
            )
        return index

    def _vector(self, text: str, opened: _Open) -> tuple[list[float] | None, str]:
        model = opened.model
        if not model:
            return None, ""
        if model == BUNDLED_MODEL and not is_latin(text):
            return None, ""  # it knows English, and its neighbours in other scripts are chance
        try:
            vector = encoder_of(model).encode_query(text)
        except EncoderUnavailableError as error:
            return None, f"By words only: {error}"
        if opened.dimension not in (0, len(vector)):
            return None, "By words only: what was said has no vectors yet; `memory run --all` makes them."
        return vector, ""

    def _observations(
        self, opened: _Open, wanted: Sequence[str], vector: Sequence[float] | None, filters: Filters, limit: int
    ) -> list[Found]:
        index = opened.observations
        if index is None:
            return []
        days = {"first_day": filters.first_day, "last_day": filters.last_day}
        scores: dict[str, float] = {}
        queries = [(WORDS, weigh_query(wanted), 0.6)] if wanted else []
        for using, asked, share in [*queries, *([(DENSE, vector, 0.4)] if vector is not None else [])]:
            hits = index.search(
                asked,  # type: ignore[arg-type]
                CANDIDATES,
                using=using,
                equals=filters.equals,
                fields=(),
                **days,
            )
            highest = max((hit.score for hit in hits), default=0.0)
            for hit in hits:
                scores[hit.point_id] = scores.get(hit.point_id, 0.0) + share * max(hit.score, 0.0) / (highest or 1.0)
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
        payloads = index.payloads([name for name, _ in best])
        return [_hit(name, score * OBSERVATION_FACTOR, payloads[name]) for name, score in best if name in payloads]

    def _memory_lines(
        self, weights: Mapping[str, float], vector: Sequence[float] | None, model: str, filters: Filters
    ) -> list[Found]:
        found = approved_lines(self.settings, weights, vector, encoder_of(model) if model else None, filters)
        return [_line(line, score) for line, score in found]


def is_likely(coverage: float, likeness: float | None) -> bool:
    """Whether what was found is about what was asked; `likeness` is None where no cosine can tell."""
    if likeness is None:
        return coverage >= MIN_COVERAGE
    return likeness >= MIN_LIKENESS or coverage >= ALL_BUT_SAID


def _weights_of_terms(index: VectorIndex, wanted: Sequence[str]) -> dict[str, float]:
    """What each term is worth: the score of the best passage that has it. A term that nobody said is worth as much as
    one that was said once."""
    found = {}
    for term in wanted:
        best = index.search(weigh_query([term]), 1, using=WORDS, fields=())
        found[term] = best[0].score if best else 0.0
    absent = math.log(2.0 * index.count() + 2.0) if min(found.values(), default=1.0) <= 0 else 0.0
    return {term: score if score > 0 else absent for term, score in found.items()}


def _coverage(index: VectorIndex, ranked: Ranked, weight: dict[str, float]) -> float:
    total = sum(weight.values())
    if not total:
        return 0.0
    around = {
        name: [name, *(n for side in ("before", "after") if (n := ranked.payloads[name][side]) in ranked.payloads)]
        for name, _ in ranked.passages[:AMONG_THE_BEST]
    }
    has = index.term_numbers({name for names in around.values() for name in names}, WORDS)
    numbers = {term: numbers_of(term) for term in weight}
    shares = []
    for names in around.values():
        there = set().union(*(has.get(name, set()) for name in names))
        shares.append(sum(weight[term] for term, of in numbers.items() if there.issuperset(of)) / total)
    return max(shares, default=0.0)


def _merged(hits: Sequence[Found]) -> list[Found]:
    """Best first; of an observation and the passage that it was made of, only the better one."""
    kept: list[Found] = []
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.source_id)):
        if not any(_says_the_same(hit, other) for other in kept):
            kept.append(hit)
    return kept


def _says_the_same(hit: Found, other: Found) -> bool:
    if hit.text == other.text:
        return True
    if hit.session_id != other.session_id or (hit.record, other.record).count(OBSERVATION) != 1:
        return False
    short, long = sorted((" ".join(hit.text.split()), " ".join(other.text.split())), key=len)
    return short in long


def _sessions_of(hits: Sequence[Found]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.session_id for hit in hits if hit.session_id))


def _line(line: Remembered, score: float) -> Found:
    return Found(MEMORY_LINE, line.id, score, line.text, f"{line.day or ''}", kind=line.section)


def _hit(name: str, score: float, payload: Mapping[str, Any]) -> Found:
    """Of a point; what its record does not have is empty."""
    known = {field: value for field in FIELDS_SHOWN if (value := payload.get(field)) is not None}
    return Found(score=score, day=payload["date"], point_id=name, **known)
