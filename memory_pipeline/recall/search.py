"""Search over messages, observations and the lines of MEMORY.md.

The index is opened late and closed early. While a run writes it, a search waits for it briefly, then answers by words
from the tables (`scan.py`). It never sees half of a day, as a day is written while the index is held.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Self

from memory_pipeline.embeddings.index import (
    COLLECTION,
    DENSE,
    EVERYTHING,
    MESSAGES,
    OBSERVATION,
    PASSAGE,
    WORDS,
    Filters,
    IndexBusyError,
    IndexUnavailableError,
    Sparse,
    VectorIndex,
    weigh_query,
)
from memory_pipeline.embeddings.opening import (
    MAKE_ANEW,
    SearchedCollection,
    collection_name,
    new_generation,
    open_collection,
    searched_collection,
)
from memory_pipeline.errors import MisuseError
from memory_pipeline.recall.approved import approved_lines
from memory_pipeline.recall.fusion import (
    CANDIDATES,
    Place,
    Ranked,
    amended_order,
    amending,
    best_first,
    candidates,
    normalised,
    substance,
)
from memory_pipeline.settings import BUNDLED_MODEL, Settings
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.text.similarity import is_latin
from memory_pipeline.text.terms import query_terms

WAIT_SECONDS = 1.5
"""Seconds to wait for the index while a run has it open. The rest of two seconds is for opening it, or for reading the
tables."""
BUSY = "the index is in use by another process; ask again in a moment."
MAX_QUERY = 2_000
"""Maximum characters of a query; the model reads fewer."""
MEMORY_LINE = "memory_line"
"""The record of a hit that is a line of MEMORY.md, not a point of the index."""
OBSERVATION_FACTOR = 0.8
"""The factor for scores of observations, which mostly repeat the words of messages."""

MIN_LIKENESS = 0.45
"""Minimum cosine of the bundled model for a hit that is about the question. On half of the questions of
`benchmarks/recall.py` nothing reaches it for 5 of 10 without an answer and for 3 of 34 with one; on the other half, not
used for choosing it, for 3 of 4 and 2 of 34."""
MIN_COVERAGE, HIGH_COVERAGE = 0.45, 0.8
"""Minimum share of the query in the words of a hit: without a cosine, and with a low one."""
BEST_PASSAGES = 5
NO_TIME = "~"
"""A time that sorts after all others, for a session without a passage among the best."""


class QueryError(MisuseError):
    """A query without searchable words; the message says what to ask."""


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

    @classmethod
    def from_payload(cls, point_id: str, score: float, payload: Mapping[str, Any]) -> Self:
        """The hit for a point; fields that its record does not have are empty."""
        known = {name: payload[name] for name in cls.__dataclass_fields__ if payload.get(name) is not None}
        return cls(**known | {"score": score, "day": payload["date"], "point_id": point_id})


@dataclass(frozen=True)
class Results:
    """The hits, best first. Each of the `notes` is a sentence about something missing, such as a model or an index."""

    query: str
    hits: tuple[Found, ...]
    sessions: tuple[str, ...]
    is_likely: bool
    """Whether the best hits are about the question, and not merely the nearest ones."""
    notes: tuple[str, ...] = ()
    coverage: float = 0.0
    """Share of the query, by weight of its terms, in the best hit and its neighbours."""
    likeness: float | None = None
    """The highest cosine to the query among the best hits; None if not available."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weight of each term of the query."""


@dataclass(frozen=True)
class OpenCollections:
    """Open collections; the one of observations may not exist yet, or be unavailable."""

    messages: VectorIndex
    observations: VectorIndex | None = None
    model: str = ""
    dimension: int = 0
    note: str = ""
    """A note if these collections are used while better ones are being filled."""
    without_observations: str = ""
    """The reason why the collection of observations is unavailable."""


def search(settings: Settings, query: str, filters: Filters = EVERYTHING, *, limit: int = 8) -> Results:
    """The best hits for a query. Raises `QueryError` for one that has no words or is not text; any other problem
    becomes a note."""
    with closing(Searcher(settings)) as ask:
        return ask.search(query, filters, limit=limit)


class Searcher:
    """A searcher that holds the collections open from the first query until `close`. Others wait meanwhile, so it
    should be closed soon."""

    def __init__(self, settings: Settings, opened: OpenCollections | None = None) -> None:
        self.settings = settings
        self._open = opened
        self._missing = ""
        """The reason why the index cannot be used."""

    def search(self, query: str, filters: Filters = EVERYTHING, *, limit: int = 8) -> Results:
        """See `search`."""
        text, notes = _parse_query(query)
        wanted = query_terms(text)
        if not self._missing:
            try:
                self._open = self._open or self._opened()
                found = self._by_index(self._open, text, wanted, filters, limit)
                return replace(found, notes=(*notes, *found.notes))
            except IndexUnavailableError as error:  # also damage that only shows in a query
                self.close()
                self._missing = f"Answered by keywords from the tables: {_describe_error(error)}"
        return replace(self._by_words(text, wanted, filters, limit), notes=(*notes, self._missing))

    def _by_index(
        self, opened: OpenCollections, text: str, wanted: Sequence[str], filters: Filters, limit: int
    ) -> Results:
        messages = opened.messages
        vector, note = self._vector(text, opened)
        ranked = Ranked(candidates(messages, wanted, vector, filters))
        weight = _weights_of_terms(messages, wanted)
        said = _hits(messages, ranked.passages[: limit * 4], substance)
        observed, without = list[Found](), ""
        if opened.observations:
            observed = _near_observations(opened.observations, wanted, vector, filters, limit)
        elif opened.without_observations:
            observed = self._observed_by_words(wanted, filters, limit)
            without = f"Observations by keywords from the tables: {opened.without_observations}"
        lines = self._memory_lines(weight, vector, opened.model, filters)
        coverage = _coverage(messages, ranked, weight)
        cosines = [ranked.meaning.get(name, 0.0) for name, _ in ranked.passages[:BEST_PASSAGES]]
        likeness = max(cosines, default=0.0) if vector is not None and opened.model == BUNDLED_MODEL else None
        hits, sessions = _ordered(ranked, said, [*observed, *lines], wanted, limit)
        likely = bool(lines) or (bool(hits) and is_likely(coverage, likeness))
        notes = tuple(filter(None, (note or opened.note, without)))
        return Results(text, tuple(hits), tuple(sessions), likely, notes, coverage, likeness, weight)

    def _by_words(self, text: str, wanted: Sequence[str], filters: Filters, limit: int) -> Results:
        """The results of a word search over the tables, which needs no index."""
        from memory_pipeline.recall.scan import scan  # with it polars, which the index does not need

        said = [Found(**fields) for fields in scan(self.settings, wanted, filters, limit)]
        weights = dict.fromkeys(wanted, 1.0)
        lines = self._memory_lines(weights, None, "", filters)
        best = _merged([*said, *self._observed_by_words(wanted, filters, limit), *lines])[:limit]
        coverage = max((hit.score for hit in best), default=0.0)
        likely = bool(lines) or (bool(best) and is_likely(coverage, None))
        sessions = tuple(dict.fromkeys(hit.session_id for hit in best if hit.session_id))
        return Results(text, tuple(best), sessions, likely, (), coverage, weights=weights)

    def _observed_by_words(self, wanted: Sequence[str], filters: Filters, limit: int) -> list[Found]:
        from memory_pipeline.recall.scan import scan_observations

        found = [Found(**fields) for fields in scan_observations(self.settings, wanted, filters, limit)]
        return [replace(hit, score=hit.score * OBSERVATION_FACTOR) for hit in found]

    def close(self) -> None:
        """Release the index."""
        opened, self._open = self._open, None
        for index in (opened.messages, opened.observations) if opened else ():
            if index:
                index.close()

    def _opened(self) -> OpenCollections:
        deadline = time.monotonic() + WAIT_SECONDS  # for both collections
        known = searched_collection(self.settings, MESSAGES) or self._unknown(deadline)
        messages = self._open_collection(known, MESSAGES, deadline)
        observations, without = None, ""
        try:
            if of_observations := searched_collection(self.settings, COLLECTION):
                observations = self._open_collection(of_observations, COLLECTION, deadline)
        except IndexUnavailableError as error:
            without = _describe_error(error)
        note = ""
        if not known.is_complete:
            note = "Only some messages are indexed yet; `memory run --all` indexes the rest."
        elif known.model != self.settings.embedding_model:
            note = (
                f"Searched with the vectors of {known.model}, because those of {self.settings.embedding_model} are "
                f"incomplete; `memory run --all` completes them."
            )
        return OpenCollections(messages, observations, known.model, known.dimension, note, without)

    def _unknown(self, deadline: float) -> SearchedCollection:
        """Raise the reason why nothing is indexed: a server may be unreachable or have refused the key."""
        if self.settings.qdrant.url:
            name = collection_name(self.settings, MESSAGES, self.settings.embedding_model, "*")
            open_collection(self.settings, name, 1, max(deadline - time.monotonic(), 0.0), create=False).close()
        if self._has_rows(MESSAGES):
            raise IndexUnavailableError(f"there is no index; {MAKE_ANEW}.")
        raise IndexUnavailableError("nothing is indexed yet; `memory run` indexes it.")

    def _open_collection(self, collection: SearchedCollection, base: str, deadline: float) -> VectorIndex:
        """A collection. Raises `IndexUnavailableError` also if it is missing, damaged or unexpectedly empty, as it
        would silently find nothing."""
        wait = max(deadline - time.monotonic(), 0.0)
        index = open_collection(self.settings, collection.name, collection.dimension, wait, create=False)
        try:
            if index.set_aside:
                new_generation(self.settings, base)
                raise IndexUnavailableError(f"the index was damaged and was moved to {index.set_aside}; {MAKE_ANEW}.")
            if not index.count() and self._has_rows(base):
                raise IndexUnavailableError(f"{collection.name} is empty; {MAKE_ANEW}.")
        except IndexUnavailableError:
            index.close()
            raise
        return index

    def _has_rows(self, base: str) -> bool:
        from memory_pipeline.lake.store import Lake

        table = "message_embeddings" if base == MESSAGES else "embeddings"
        return Lake.from_settings(self.settings).read(table, columns=["day"]).height > 0

    def _vector(self, text: str, opened: OpenCollections) -> tuple[list[float] | None, str]:
        model = opened.model
        if not model:
            return None, ""
        if model == BUNDLED_MODEL and not is_latin(text):
            return None, ""  # the model knows English; neighbours in other scripts are random
        try:
            vector = encoder_of(model).encode_query(text)
        except EncoderUnavailableError as error:
            return None, f"By words only: {error}"
        if opened.dimension not in (0, len(vector)):
            return None, "By words only: messages have no vectors yet; `memory run --all` computes them."
        return vector, ""

    def _memory_lines(
        self, weights: Mapping[str, float], vector: Sequence[float] | None, model: str, filters: Filters
    ) -> list[Found]:
        found = approved_lines(self.settings, weights, vector, encoder_of(model) if model else None, filters)
        return [
            Found(MEMORY_LINE, line.id, score, line.text, f"{line.day or ''}", kind=line.section)
            for line, score in found
        ]


def _hits(
    index: VectorIndex, best: Sequence[tuple[str, float]], factor: Callable[[Mapping[str, Any]], float]
) -> list[Found]:
    """The points as hits, their scores multiplied by a factor that depends on the payload."""
    payloads = index.payloads([name for name, _ in best])
    known = ((name, score, payloads[name]) for name, score in best if name in payloads)
    return [Found.from_payload(name, score * factor(payload), payload) for name, score, payload in known]


def _near_observations(
    index: VectorIndex, wanted: Sequence[str], vector: Sequence[float] | None, filters: Filters, limit: int
) -> list[Found]:
    scores: dict[str, float] = defaultdict(float)
    queries: list[tuple[str, Sequence[float] | Sparse, float]] = []
    queries += [(WORDS, weigh_query(wanted), 0.6)] if wanted else []
    queries += [(DENSE, vector, 0.4)] if vector is not None else []
    for using, asked, share in queries:
        hits = index.search(asked, CANDIDATES, using=using, filters=filters, fields=())
        near = normalised(hits)
        for hit in hits:  # also those without a positive score, which a filter may leave alone
            scores[hit.point_id] += share * near.get(hit.point_id, 0.0)
    return _hits(index, best_first(scores)[:limit], lambda _: OBSERVATION_FACTOR)


def _ordered(
    ranked: Ranked, said: list[Found], others: list[Found], wanted: Sequence[str], limit: int
) -> tuple[list[Found], list[str]]:
    """The best hits, and the best sessions by id, both with an amendment before what it amends."""
    amended_at = amending(map(_place, said), wanted)
    merged = _merged([*said, *others])
    hits = [merged[number] for number in amended_order([*map(_place, merged)], amended_at)][:limit]
    times = {hit.session_id: hit.timestamp for hit in reversed(said)}
    places = [Place(name, score, times.get(name, NO_TIME)) for name, score in ranked.sessions[: max(limit, 10)]]
    return hits, [places[number].session_id for number in amended_order(places, amended_at)]


def _parse_query(query: str) -> tuple[str, list[str]]:
    """The text to search for, and a note if the query was cut. Raises `QueryError`."""
    text = query.strip()
    cut = [f"Only the first {MAX_QUERY:,} characters of the query are used."] if len(text) > MAX_QUERY else []
    text = text[:MAX_QUERY]
    if not any(character.isalnum() for character in text):
        raise QueryError("The query is empty: give at least one word.")
    return text, cut


def _describe_error(error: IndexUnavailableError) -> str:
    return BUSY if isinstance(error, IndexBusyError) else f"{error}"


def is_likely(coverage: float, likeness: float | None) -> bool:
    """Whether the hits are about the question; `likeness` is None if no cosine is available."""
    if likeness is None:
        return coverage >= MIN_COVERAGE
    return likeness >= MIN_LIKENESS or coverage >= HIGH_COVERAGE


def _weights_of_terms(index: VectorIndex, wanted: Sequence[str]) -> dict[str, float]:
    """The weight of each term: the score of the best passage with it. A term that nobody said weighs as much as one
    said once."""
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
        for name, _ in ranked.passages[:BEST_PASSAGES]
    }
    has = index.term_numbers({name for names in around.values() for name in names}, WORDS)
    numbers = {term: weigh_query([term]).indices for term in weight}
    shares = []
    for names in around.values():
        there = set().union(*(has.get(name, set()) for name in names))
        shares.append(sum(weight[term] for term, of in numbers.items() if there.issuperset(of)) / total)
    return max(shares, default=0.0)


def _merged(hits: Sequence[Found]) -> list[Found]:
    """The hits, best first; of those with the same words only the one with the best source, at the highest score."""
    kept: list[Found] = []
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.source_id)):
        same = next((n for n, other in enumerate(kept) if _is_same_text(hit, other)), None)
        if same is None:
            kept.append(hit)
        elif _source_rank(hit) < _source_rank(kept[same]):
            kept[same] = replace(hit, score=kept[same].score)
    return kept


def _is_same_text(hit: Found, other: Found) -> bool:
    """Whether both have the same words, or one is derived from the other and repeats its words."""
    short, long = sorted((_words(hit.text), _words(other.text)), key=len)
    if short == long:
        return True
    if hit.record == other.record or MEMORY_LINE in (hit.record, other.record):
        return False
    is_elsewhere = hit.session_id and other.session_id and hit.session_id != other.session_id
    return short in long and not is_elsewhere


def _source_rank(hit: Found) -> int:
    """A line that the user approved, then the message itself, then what was derived from messages."""
    return {MEMORY_LINE: 0, PASSAGE: 1, OBSERVATION: 2}.get(hit.record, 3)


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!?…")


def _place(hit: Found) -> Place:
    return Place(hit.session_id, hit.score, hit.timestamp, hit.role, hit.text)
