"""The vector index in a folder: Qdrant Edge, the engine of Qdrant inside this process.

Search compares with every point; no HNSW graph is built. Settled points are first compared in quantized form with a
quarter of the bytes and the nearest of these exactly: 2 ms for 100,000 of 384 dimensions instead of 13, with the same
nearest 200.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from filelock import Timeout

from memory_pipeline.embeddings.fair_lock import FairLock
from memory_pipeline.embeddings.index import (
    DAY_NUMBER,
    DENSE,
    KEYWORDS,
    SPARSE,
    Hit,
    IndexBusyError,
    IndexUnavailableError,
    Point,
    Sparse,
    VectorIndex,
    batches,
    check_points,
    check_vector,
    day_bounds,
    known_form,
    shown_payload,
    stored_payload,
)
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import aside
from memory_pipeline.text.sentences import clip

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter

_PAGE = 1000
_RETRY_SECONDS = 0.05
_NEVER = 1_000_000_000
_MAX_REASON = 200
_MAX_COSINE = 1.01
_OVERSAMPLING = 2.0
"""Factor of candidates that are compared exactly. From 1.5 on, none of the nearest 200 of 100,000 was lost."""
_SETTLED_FROM_KB = 4_000
"""Kilobytes of dense vectors (about 2,700 of 384 numbers) below which a scan takes .1 s."""


class EdgeIndex(VectorIndex):
    """A `VectorIndex` in a local folder, used by one process at a time: open late, close early.

    Opening creates the folder if needed and waits up to `lock_timeout` seconds for another holder, then raises
    `IndexUnavailableError`. A folder that the engine cannot load, or that holds vectors of another dimension, is
    renamed to `<folder>.broken-<n>`; the index then starts empty and `set_aside` names that folder (else it is None).
    Missing points that the engine itself does not notice are left for the count-parity check.
    """

    def __init__(self, folder: Path, dimension: int, *, lock_timeout: float = 30.0) -> None:
        self.folder = folder
        self.dimension = dimension
        self.set_aside: Path | None = None
        self._shard: EdgeShard | None = None
        self._busy = (
            f"The vector index in {folder} is in use by another process and did not become free within "
            f"{lock_timeout:.2g} s; wait for the other run to end, or stop it, then try again."
        )
        # The engine locks its folder too, but says so only in the text of a bare Exception, and it does not protect
        # the renaming of a broken folder. A lock of our own covers both.
        self._lock = FairLock(folder, lock_timeout)
        deadline = time.monotonic() + lock_timeout
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._shard = self._open(deadline)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, Timeout):
                raise IndexBusyError(self._busy) from None
            if isinstance(error, OSError):
                raise IndexUnavailableError(
                    f"The vector index in {folder} cannot be opened: {error}. Check its permissions and the disk."
                ) from error
            raise

    def upsert(self, points: Sequence[Point]) -> None:
        """Store the points, flushed to disk on return. Raises `ValueError`, storing nothing, for an invalid point."""
        from qdrant_edge import Point as EdgePoint
        from qdrant_edge import UpdateOperation

        check_points(points, self.dimension)
        if not points:
            return
        with self._engine() as shard:
            for batch in batches(points):
                rows = [EdgePoint(point.point_id, _vectors(point), stored_payload(point)) for point in batch]
                shard.update(UpdateOperation.upsert_points(rows))
            shard.flush()

    def delete(self, point_ids: Collection[str]) -> None:
        """Remove points; flushed to disk on return."""
        from qdrant_edge import UpdateOperation

        if not point_ids:
            return  # flushing takes .1 s
        with self._engine() as shard:
            for batch in batches(known_form(point_ids)):
                shard.update(UpdateOperation.delete_points(list(batch)))
            shard.flush()

    def ids(self, day: date | None = None, records: Collection[str] = ()) -> set[str]:
        """Ids of all points, or of the day's, or of those of these records."""
        from qdrant_edge import ScrollRequest

        found: set[str] = set()
        chosen = _filter(day, day, {"record": records} if records else {})
        offset = None
        with self._engine() as shard:
            while True:
                found_now, offset = shard.scroll(ScrollRequest(offset, _PAGE, chosen, with_payload=False))
                found.update(str(record.id) for record in found_now)
                if offset is None:
                    return found

    def retrieve(
        self, point_ids: Collection[str], *, payload: bool = False, vectors: Collection[str] = ()
    ) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any]]]:
        wanted = list(vectors) or False
        with self._engine() as shard:
            for batch in batches(known_form(point_ids)):
                for record in shard.retrieve(list(batch), with_payload=payload, with_vector=wanted):
                    yield str(record.id), record.payload, cast("dict[str, Any]", record.vector or {})

    def count(self, *, exact: bool = True) -> int:
        """The exact number of points, in 7 ms for 100,000."""
        from qdrant_edge import CountRequest

        with self._engine() as shard:
            return int(shard.count(CountRequest(exact=exact)))

    def search(
        self,
        vector: Sequence[float] | Sparse,
        limit: int,
        *,
        using: str = DENSE,
        first_day: date | None = None,
        last_day: date | None = None,
        equals: Mapping[str, Collection[str]] | None = None,
        fields: Collection[str] | None = None,
    ) -> list[Hit]:
        """The nearest points, nearest first. Raises `ValueError` for a vector of another dimension."""
        from qdrant_edge import QuantizationSearchParams, Query, QueryRequest, SearchParams, SparseVector

        params = None
        if isinstance(vector, Sparse):
            query = Query.Nearest(SparseVector(vector.indices, vector.values), using=using)
        else:
            check_vector(vector, self.dimension)
            query = Query.Nearest(list(vector), using=using)
            params = SearchParams(quantization=QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING))
        request = QueryRequest(
            limit=max(limit, 0),
            query=query,
            filter=_filter(first_day, last_day, equals or {}),
            with_payload=fields is None or (list(fields) or False),
            params=params,
        )
        with self._engine() as shard:
            hits = [Hit(str(hit.id), hit.score, shown_payload(hit.payload)) for hit in shard.query(request)]
        if using == DENSE and not all(abs(hit.score) <= _MAX_COSINE for hit in hits):
            raise IndexUnavailableError(
                f"The vectors in {self.folder} are damaged; `memory admin index rebuild` rebuilds them."
            )
        return hits

    def settle(self) -> None:
        """Move recently added points into a memory-mapped segment, at .25 ms each; afterwards 100,000 open in .25 s
        instead of 2 s."""
        with self._engine() as shard:
            shard.optimize()

    def rewrite(self) -> None:
        """Rewrite all points into a new folder: the engine leaves deleted data in its files.

        If the process is killed between the two renames, the folder is missing, and the next run rebuilds it.
        """
        from qdrant_edge import Point as EdgePoint
        from qdrant_edge import UpdateOperation

        new, old = (self.folder.with_name(f"{self.folder.name}.{name}") for name in ("new", "old"))
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        ids = sorted(self.ids())
        with self._engine() as shard:
            copy = self._load(new)
            for batch in batches(ids):
                found = shard.retrieve(list(batch), with_payload=True, with_vector=True)
                rows = [EdgePoint(str(r.id), cast("Any", r.vector), dict(r.payload or {})) for r in found]
                copy.update(UpdateOperation.upsert_points(rows))
            copy.flush()
            copy.close()
            shard.close()
            self._shard = None
        self.folder.rename(old)
        new.rename(self.folder)
        shutil.rmtree(old)
        self._shard = self._load()

    def is_wanted(self) -> bool:
        """Whether another process waits for the folder."""
        return self._lock.is_wanted()

    def close(self) -> None:
        """Flush and release the folder. Safe to call twice."""
        try:
            if self._shard is not None:
                with self._engine() as shard:
                    shard.close()
        finally:
            self._shard = None
            self._lock.release()

    @contextmanager
    def _engine(self) -> Iterator[EdgeShard]:
        if self._shard is None:
            raise IndexUnavailableError(f"The vector index in {self.folder} is closed. Open it again.")
        try:
            yield self._shard
        except BaseException as error:
            if not _engine_failed(error):
                raise
            raise IndexUnavailableError(
                f"The vector index in {self.folder} failed ({clip(one_line(str(error)), _MAX_REASON)}); if the disk is "
                "sound, `memory admin index rebuild` rebuilds it."
            ) from error

    def _open(self, deadline: float) -> EdgeShard:
        while True:
            try:
                return self._load()
            except BaseException as error:
                if not _engine_failed(error):
                    raise
                # Held by a program that does not take our lock, or by a child forked from a former holder.
                if "WouldBlock" not in str(error):
                    return self._start_empty(error)
                if time.monotonic() >= deadline:
                    raise IndexBusyError(self._busy) from error
            time.sleep(_RETRY_SECONDS)

    def _load(self, folder: Path | None = None) -> EdgeShard:
        folder = folder or self.folder
        from qdrant_edge import (
            Distance,
            EdgeConfig,
            EdgeOptimizersConfig,
            EdgeShard,
            EdgeSparseVectorParams,
            EdgeVectorParams,
            HnswIndexConfig,
            IntegerIndexParams,
            KeywordIndexParams,
            Memory,
            Modifier,
            ScalarQuantizationConfig,
            ScalarType,
            UpdateOperation,
        )

        bytes_of = ScalarQuantizationConfig(ScalarType.Int8, memory=Memory.Cold)
        dense = EdgeVectorParams(self.dimension, Distance.Cosine, quantization_config=bytes_of)
        config = EdgeConfig(
            vectors={DENSE: dense},
            sparse_vectors={name: EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold) for name in SPARSE},
            # no graph (m=0): comparing with all is exact, and a graph of 100,000 takes a minute to build
            hnsw_config=HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=_NEVER),
            optimizers=EdgeOptimizersConfig(indexing_threshold=_SETTLED_FROM_KB, default_segment_number=1),
        )
        # load() also fills an empty folder and finishes one whose creation was cut short; create() refuses both.
        shard = (EdgeShard.load if folder.exists() else EdgeShard.create)(str(folder), config)
        # mapped ("cold"), so that opening the folder for one question does not read them
        wanted: dict[str, IntegerIndexParams | KeywordIndexParams] = {
            DAY_NUMBER: IntegerIndexParams(lookup=True, range=True, memory=Memory.Cold)
        }
        wanted |= {name: KeywordIndexParams(memory=Memory.Cold) for name in KEYWORDS}
        for name in wanted.keys() - shard.info().payload_schema.keys():
            shard.update(UpdateOperation.create_field_index(name, wanted[name]))
        return shard

    def _start_empty(self, reason: BaseException) -> EdgeShard:
        broken = self.folder.rename(aside(self.folder))
        try:
            shard = self._load()
        except BaseException as error:
            # A fresh folder fails too, so the old one is not to blame (disk full, too many open files): put it back.
            shutil.rmtree(self.folder, ignore_errors=True)
            broken.rename(self.folder)
            if not _engine_failed(error):
                raise
            raise IndexUnavailableError(
                f"The vector index in {self.folder} cannot be opened ({reason}), nor can a new one be created "
                f"({error}). "
                "Check the disk and the limits of this process."
            ) from error
        self.set_aside = broken
        return shard


def _vectors(point: Point) -> Any:
    from qdrant_edge import SparseVector

    named: dict[str, Any] = {name: SparseVector(v.indices, v.values) for name, v in point.sparse.items()}
    return named if point.vector is None else named | {DENSE: list(point.vector)}


def _filter(first_day: date | None, last_day: date | None, equals: Mapping[str, Collection[str]]) -> Filter | None:
    from qdrant_edge import FieldCondition, Filter, MatchAny, RangeFloat

    conditions = [FieldCondition(name, match=MatchAny(sorted(values))) for name, values in equals.items()]
    if bounds := day_bounds(first_day, last_day):
        conditions.append(FieldCondition(DAY_NUMBER, range=RangeFloat(**bounds)))
    return Filter(must=list(conditions)) if conditions else None


def _engine_failed(error: BaseException) -> bool:
    # The engine reports its failures as bare Exceptions; a panic inside it (seen with truncated files) arrives as
    # pyo3's PanicException, which is no Exception and cannot be imported. TypeError and ValueError are the caller's.
    return type(error) is Exception or type(error).__name__ == "PanicException"
