"""The vector index in a folder: Qdrant Edge, the engine of Qdrant inside this process.

Search compares with every point; no HNSW graph is built. Settled points are first compared in quantized form with a
quarter of the bytes and the nearest of these exactly: 2 ms for 100,000 of 384 dimensions instead of 13, with the same
nearest 200.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, cast

import qdrant_edge
from filelock import Timeout
from qdrant_edge import (
    CountRequest,
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
    Point,
    QuantizationSearchParams,
    Query,
    QueryRequest,
    ScalarQuantizationConfig,
    ScalarType,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)

from memory_pipeline.embeddings.index import (
    DAY_NUMBER,
    DENSE,
    KEYWORDS,
    PAGE,
    SPARSE,
    IndexBusyError,
    IndexUnavailableError,
    VectorIndex,
    batches,
)
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import aside
from memory_pipeline.text.sentences import clip

_RETRY_SECONDS = 0.05
_NEVER = 1_000_000_000
_MAX_REASON = 200
_MAX_COSINE = 1.01
_OVERSAMPLING = 2.0
"""Factor of candidates that are compared exactly. From 1.5 on, none of the nearest 200 of 100,000 was lost."""
_SETTLED_FROM_KB = 4_000
"""Kilobytes of dense vectors (about 2,700 of 384 numbers) below which a scan takes .1 s."""


class FairLock:
    """A lock beside the folder (`FOLDER.lock`), with a second one (`FOLDER.next.lock`) that a waiting process holds.

    So the holder can see whether another process waits; both end with their process. Raises `filelock.Timeout` after
    `timeout` seconds. It is not thread-local: another thread may release it.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self.timeout = timeout
        self._lock = FileLock(f"{folder}.lock", thread_local=False)
        self._next = FileLock(f"{folder}.next.lock", thread_local=False)

    def acquire(self) -> None:
        deadline = time.monotonic() + self.timeout
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            with self._next.acquire(timeout=self.timeout):
                self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def is_wanted(self) -> bool:
        """Whether another process waits for the lock."""
        try:
            with self._next.acquire(timeout=0):
                return False
        except Timeout:
            return True

    def release(self) -> None:
        """Safe to call twice."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class EdgeIndex(VectorIndex):
    """A `VectorIndex` in a local folder, used by one process at a time: open late, close early.

    Opening creates the folder if needed and waits up to `lock_timeout` seconds for another holder, then raises
    `IndexUnavailableError`. A folder that the engine cannot load, or that holds vectors of another dimension, is
    renamed to `<folder>.broken-<n>`; the index then starts empty and `set_aside` names that folder (else it is None).
    Missing points that the engine itself does not notice are left for the count-parity check.
    """

    _models = qdrant_edge

    def __init__(self, folder: Path, dimension: int, *, lock_timeout: float = 30.0) -> None:
        self.folder = folder
        self.dimension = dimension
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

    def _upsert(self, rows: list[tuple[str, Any, dict[str, Any]]]) -> None:
        with self._engine() as shard:
            shard.update(UpdateOperation.upsert_points([Point(*row) for row in rows]))

    def _delete(self, point_ids: list[Any]) -> None:
        with self._engine() as shard:
            shard.update(UpdateOperation.delete_points(point_ids))

    def _flush(self) -> None:
        with self._engine() as shard:
            shard.flush()

    def _scroll(self, offset: Any, chosen: Any) -> tuple[Sequence[Any], Any]:
        with self._engine() as shard:
            return shard.scroll(ScrollRequest(offset, PAGE, chosen, with_payload=False))

    def _retrieve(self, point_ids: list[Any], payload: bool, vectors: list[str] | Literal[False]) -> Sequence[Any]:
        with self._engine() as shard:
            return shard.retrieve(point_ids, with_payload=payload, with_vector=vectors)

    def count(self) -> int:
        """The number of points, in 7 ms for 100,000."""
        with self._engine() as shard:
            return int(shard.count(CountRequest(exact=True)))

    def _search(self, query: Any, using: str, limit: int, chosen: Any, payload: bool | list[str]) -> Sequence[Any]:
        exactly = SearchParams(quantization=QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING))
        request = QueryRequest(
            limit=limit,
            query=Query.Nearest(query, using=using),
            filter=chosen,
            with_payload=payload,
            params=exactly if using == DENSE else None,
        )
        with self._engine() as shard:
            hits = shard.query(request)
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
        new, old = (self.folder.with_name(f"{self.folder.name}.{name}") for name in ("new", "old"))
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        ids = sorted(self.ids())
        with self._engine() as shard:
            copy = self._load(new)
            for batch in batches(ids):
                found = shard.retrieve(list(batch), with_payload=True, with_vector=True)
                rows = [Point(str(r.id), cast("Any", r.vector), dict(r.payload or {})) for r in found]
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


def _engine_failed(error: BaseException) -> bool:
    # The engine reports its failures as bare Exceptions; a panic inside it (seen with truncated files) arrives as
    # pyo3's PanicException, which is no Exception and cannot be imported. TypeError and ValueError are the caller's.
    return type(error) is Exception or type(error).__name__ == "PanicException"
