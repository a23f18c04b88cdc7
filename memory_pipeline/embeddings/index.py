"""The index: one class for the embedded engine (`edge.py`) and a server (`server.py`).

An index is one collection of points, each with a dense vector, sparse vectors of its words, or both. It can be rebuilt
from the lake at any time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from memory_pipeline.errors import TryAgainLaterError

if TYPE_CHECKING:
    from qdrant_edge import Bm25

COLLECTION = "memory_observations"
MESSAGES = "memory_messages"

DENSE = "dense"
WORDS, CONTEXT, SESSION = "words", "context", "session"
SPARSE = (WORDS, CONTEXT, SESSION)
"""Names of the vectors of a point: a dense one of its meaning, and sparse ones of its words, of its words with those of
its neighbours, and, for a whole session, of all its words. The engine weights the terms of a sparse vector by their
rarity in the collection, so texts of different sizes have vectors with different names."""
PASSAGE, WHOLE_SESSION = "message", "session"
OBSERVATION, SEGMENT, REFLECTION = "observation", "segment", "reflection"
"""Values of `record` in the payload of points: first those in the collection of messages, then those in the other."""
KEYWORDS = ("priority", "record", "session_id", "project", "harness", "kind", "owner")
"""Payload fields that can be filtered by equality."""

# Neither engine can compare "YYYY-MM-DD" strings, so the adapters store the day as a number too, under this reserved
# payload key. It never leaves an adapter.
DAY_NUMBER = "day_number"

# Points per request: 256 vectors of 768 numbers are some 4 MB of JSON, well below a server's limit of 32 MB.
BATCH = 256
PAGE = 1000
"""Points per page of a listing."""

Item = TypeVar("Item")


class Sparse(NamedTuple):
    """A sparse vector: term numbers and their weights."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its vectors, and the payload for display and filters.

    `point_id` is a UUID string; `vector` is the dense one and has the index's dimension, None if there is none;
    `payload` is flat and has at least `date` ("YYYY-MM-DD"); `sparse` has sparse vectors by name.
    """

    point_id: str
    vector: Sequence[float] | None
    payload: dict[str, Any] = field(default_factory=dict)
    sparse: Mapping[str, Sparse] = field(default_factory=dict)


@dataclass(frozen=True)
class Filters:
    """Conditions for hits: a range of days (both included) and one of the given values in each field of `equals`, which
    are some of `KEYWORDS`."""

    first_day: date | None = None
    last_day: date | None = None
    equals: Mapping[str, Collection[str]] = field(default_factory=dict)


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Hit:
    """A point found by `search`; `score` is the cosine similarity, or BM25 for a sparse vector. Higher is nearer."""

    point_id: str
    score: float
    payload: dict[str, Any]


class IndexUnavailableError(TryAgainLaterError):
    """The index cannot be opened or reached; the message says why and what to do."""


class IndexBusyError(IndexUnavailableError):
    """Another process has the index open; the index is intact."""


class VectorIndex(Protocol):
    """A collection of points. All methods raise `IndexUnavailableError` if it cannot be reached.

    An engine implements the methods that begin with an underscore, for at most `BATCH` points, and names its `_models`:
    those of both engines have the same names.
    """

    dimension: int
    set_aside: Path | None = None
    """The path of the damaged index that this one replaces."""
    _models: Any

    def upsert(self, points: Sequence[Point]) -> None:
        """Store the points durably; a point with a known id is replaced. Raises `ValueError`, storing nothing, for a
        vector of another dimension or with numbers that are not finite."""
        for point in points:
            if point.vector is not None:
                check_vector(point.vector, self.dimension)
        for batch in batches(points):
            self._upsert([(point.point_id, self._vectors(point), stored_payload(point)) for point in batch])
        if points:
            self._flush()

    def delete(self, point_ids: Collection[str]) -> None:
        """Remove points; unknown ids are ignored."""
        for batch in batches(list(point_ids)):
            self._delete(list(batch))
        if point_ids:
            self._flush()

    def ids(self, day: date | None = None, records: Collection[str] = ()) -> set[str]:
        """Ids of all points, or of those whose payload `date` is the day and whose `record` is one of these."""
        found, offset = set[str](), None
        chosen = self._filter(Filters(day, day, {"record": records} if records else {}))
        while True:
            page, offset = self._scroll(offset, chosen)
            found.update(str(record.id) for record in page)
            if offset is None:
                return found

    def count(self) -> int:
        """The number of points."""

    def retrieve(
        self, point_ids: Collection[str], *, payload: bool = False, vectors: Collection[str] = ()
    ) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any]]]:
        """The known ones of these points: id, stored payload (if requested), and their vectors of these names."""
        for batch in batches(list(point_ids)):
            for record in self._retrieve(list(batch), payload, list(vectors) or False):
                yield str(record.id), record.payload, record.vector or {}

    def vectors(self, point_ids: Collection[str]) -> dict[str, list[float]]:
        """The stored dense vectors by id, without unknown ids and points that have none. They have unit length, as in
        any cosine index."""
        return {i: named[DENSE] for i, _, named in self.retrieve(point_ids, vectors=[DENSE]) if DENSE in named}

    def payloads(self, point_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """The payloads by id; unknown ids are left out."""
        return {i: shown_payload(payload) for i, payload, _ in self.retrieve(point_ids, payload=True)}

    def term_numbers(self, point_ids: Collection[str], using: str) -> dict[str, set[int]]:
        """The term numbers in the sparse vector of that name, by id, without unknown ids."""
        found = self.retrieve(point_ids, vectors=[using])
        return {i: set(named[using].indices) if named.get(using) else set() for i, _, named in found}

    def search(
        self,
        vector: Sequence[float] | Sparse,
        limit: int,
        *,
        using: str = DENSE,
        filters: Filters = EVERYTHING,
        fields: Collection[str] | None = None,
    ) -> list[Hit]:
        """The nearest points by the vector of that name, nearest first. The hits have these `fields` of their payload,
        or all: texts are most of the data of a search. Raises `ValueError` for a vector of another dimension."""
        query: Any = list(vector)
        if isinstance(vector, Sparse):
            query = self._models.SparseVector(indices=vector.indices, values=vector.values)
        else:
            check_vector(vector, self.dimension)
        if limit < 1:  # servers reject such a request
            return []
        hits = self._search(query, using, limit, self._filter(filters), fields is None or (list(fields) or False))
        return [Hit(str(hit.id), hit.score, shown_payload(hit.payload)) for hit in hits]

    def settle(self) -> None:
        """Optimise added points for opening and searching, if there are enough."""

    def rewrite(self) -> None:
        """Rewrite the storage without deleted points."""

    def close(self) -> None:
        """Flush and release the lock. Safe to call twice."""

    def _upsert(self, rows: list[tuple[str, Any, dict[str, Any]]]) -> None: ...

    def _delete(self, point_ids: list[str]) -> None: ...

    def _flush(self) -> None:
        """Make writes durable."""

    def _scroll(self, offset: Any, chosen: Any) -> tuple[Sequence[Any], Any]:
        """A page of points without payload, and the offset of the next one, or None."""

    def _retrieve(self, point_ids: list[str], payload: bool, vectors: list[str] | Literal[False]) -> Sequence[Any]: ...

    def _search(self, query: Any, using: str, limit: int, chosen: Any, payload: bool | list[str]) -> Sequence[Any]: ...

    def _vectors(self, point: Point) -> Any:
        sparse = self._models.SparseVector
        named: dict[str, Any] = {name: sparse(indices=v.indices, values=v.values) for name, v in point.sparse.items()}
        return named if point.vector is None else named | {DENSE: list(point.vector)}

    def _filter(self, filters: Filters) -> Any:
        models = self._models
        conditions = [
            models.FieldCondition(key=name, match=models.MatchAny(any=sorted(values)))
            for name, values in filters.equals.items()
        ]
        bounds = {"gte": filters.first_day, "lte": filters.last_day}
        if days := {name: float(day.toordinal()) for name, day in bounds.items() if day is not None}:
            span = models.RangeFloat if hasattr(models, "RangeFloat") else models.Range
            conditions.append(models.FieldCondition(key=DAY_NUMBER, range=span(**days)))
        return models.Filter(must=conditions) if conditions else None


def batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The items in runs of at most `BATCH`."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def check_vector(vector: Sequence[float], dimension: int) -> None:
    """Raise `ValueError` unless the vector has the dimension and finite numbers only."""
    if len(vector) != dimension:
        raise ValueError(f"The vector has {len(vector)} numbers, the index holds vectors of {dimension}.")
    if not math.isfinite(math.fsum(vector)):
        raise ValueError("The vector holds a number that is not finite.")


def is_sound(vector: Sequence[float], dimension: int) -> bool:
    """Whether a stored vector is valid: of the right dimension, finite, and not zero, which a damaged file gives."""
    size = math.hypot(*vector)
    return len(vector) == dimension and math.isfinite(size) and size > 0


def stored_payload(point: Point) -> dict[str, Any]:
    """The payload for the engine, with the day number."""
    return {**point.payload, DAY_NUMBER: date.fromisoformat(point.payload["date"]).toordinal()}


def shown_payload(payload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The payload as given to `upsert`, without the day number."""
    return {key: value for key, value in (payload or {}).items() if key != DAY_NUMBER}


_SHAPES = {WORDS: (1.2, 0.4, 40.0), CONTEXT: (1.2, 0.75, 100.0), SESSION: (2.0, 0.75, 800.0)}
"""BM25 parameters by vector: saturation of a repeated term, normalisation by length, average terms of a text. Changing
them by up to a factor of two changes no figure of `benchmarks/recall.py` by more than .5 points."""


def weigh(terms: Sequence[str], name: str) -> Sparse:
    """The terms of a document as the sparse vector of that name."""
    found = _model(name).embed_document(" ".join(terms))
    return Sparse(found.indices, found.values)


def weigh_query(terms: Sequence[str]) -> Sparse:
    """The unique terms of a query, all with the same weight."""
    found = _model(WORDS).embed_query(" ".join(terms))
    return Sparse(found.indices, found.values)


@cache
def _model(name: str) -> Bm25:
    from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, StopwordsSet, TokenizerType

    saturation, by_length, usual = _SHAPES[name]
    return Bm25(
        Bm25Config(
            k=saturation,
            b=by_length,
            avg_len=usual,
            # the terms come from text/terms.py; the engine only splits them
            tokenizer=TokenizerType.Whitespace,
            lowercase=False,
            stopwords=StopwordsSet(),
            stemmer=DisabledStemmer(),
        )
    )
