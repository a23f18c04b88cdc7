"""The vector index on a Qdrant server, through `qdrant_client`, for concurrent readers and large histories."""

from __future__ import annotations

import functools
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memory_pipeline.embeddings.index import (
    COLLECTION,
    DAY_NUMBER,
    DENSE,
    KEYWORDS,
    SPARSE,
    Hit,
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
from memory_pipeline.text.sentences import clip

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter

_PAGE = 1000
_TIMEOUT_SECONDS = 8.0  # for one request including the connection
_MAX_REASON = 200
_TRIES = 4
"""Maximum attempts of a write while the server is busy, with pauses of .5, 1 and 2 seconds."""
_TEMPORARY_STATUSES = (408, 429, 500, 502, 503, 504)


class ServerIndex(VectorIndex):
    """A `VectorIndex` in one collection of a Qdrant server; the collection is created if needed.

    Raises `IndexUnavailableError` if the server cannot be reached or refuses, if the collection holds vectors of
    another dimension or distance, or if it does not exist and ``create`` is false. A given `client` is left open by
    `close`.

    A write is retried if the server was busy or the connection broke: points have ids, so a duplicate write changes
    nothing. Opening and reading are not retried, so an outage is reported at once.
    """

    def __init__(
        self,
        url: str,
        dimension: int,
        *,
        api_key: str | None = None,
        collection: str = COLLECTION,
        client: QdrantClient | None = None,
        create: bool = True,
        seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        from qdrant_client import QdrantClient

        self.dimension = dimension
        self.set_aside: Path | None = None
        self.collection = collection
        # An address may carry a password or a token; messages must not.
        self._shown_url = re.sub(r"//[^/]*@", "//", url).partition("?")[0]
        self._api_key = (api_key or "").strip()
        self._owns_client = client is None
        self._client: QdrantClient | None = client
        # The client says so with the path of this file, for whatever address; the setting's description says it once.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        if client is None:
            try:
                self._client = QdrantClient(
                    url=url,
                    api_key=self._api_key or None,
                    timeout=math.ceil(seconds),
                    check_compatibility=False,  # would query the server from a second thread and only print a warning
                )
            except ValueError:  # its message may quote the whole URL
                raise IndexUnavailableError(
                    f"Invalid address of a Qdrant server: {self._shown_url!r}. Check QDRANT_URL (something like "
                    "http://127.0.0.1:6333) and QDRANT_API_KEY (plain characters only)."
                ) from None
        try:
            self._prepare_collection(create)
        except BaseException:
            self.close()
            raise

    def upsert(self, points: Sequence[Point]) -> None:
        """Store the points; the server has applied them on return. Raises `ValueError`, storing nothing, for an invalid
        point."""
        from qdrant_client.models import PointStruct

        check_points(points, self.dimension)
        with self._server() as client:
            for batch in batches(points):
                rows = [
                    PointStruct(id=point.point_id, vector=_vectors(point), payload=stored_payload(point))
                    for point in batch
                ]
                _with_retries(functools.partial(client.upsert, self.collection, rows, wait=True))

    def delete(self, point_ids: Collection[str]) -> None:
        """Remove points."""
        with self._server() as client:
            for batch in batches(known_form(point_ids)):
                _with_retries(functools.partial(client.delete, self.collection, list(batch), wait=True))

    def ids(self, day: date | None = None, records: Collection[str] = ()) -> set[str]:
        """Ids of all points, or of the day's, or of those of these records."""
        found: set[str] = set()
        chosen = _filter(day, day, {"record": records} if records else {})
        offset = None
        with self._server() as client:
            while True:
                found_now, offset = client.scroll(
                    self.collection, chosen, limit=_PAGE, offset=offset, with_payload=False, with_vectors=False
                )
                found.update(str(record.id) for record in found_now)
                if offset is None:
                    return found

    def retrieve(
        self, point_ids: Collection[str], *, payload: bool = False, vectors: Collection[str] = ()
    ) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any]]]:
        wanted = list(vectors) or False
        with self._server() as client:
            for batch in batches(known_form(point_ids)):
                for record in client.retrieve(self.collection, list(batch), with_payload=payload, with_vectors=wanted):
                    yield str(record.id), record.payload, cast("dict[str, Any]", record.vector or {})

    def count(self, *, exact: bool = True) -> int:
        """The number of points, exact or approximate."""
        with self._server() as client:
            return client.count(self.collection, exact=exact).count

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
        from qdrant_client.models import SparseVector

        query: Any = list(vector)
        if isinstance(vector, Sparse):
            query = SparseVector(indices=vector.indices, values=vector.values)
        else:
            check_vector(vector, self.dimension)
        if limit < 1:  # servers reject such a request
            return []
        chosen = _filter(first_day, last_day, equals or {})
        with self._server() as client:
            answer = client.query_points(
                self.collection,
                query,
                using=using,
                query_filter=chosen,
                limit=limit,
                with_payload=fields is None or (list(fields) or False),
            )
        return [Hit(str(hit.id), hit.score, shown_payload(hit.payload)) for hit in answer.points]

    def settle(self) -> None:
        """Do nothing: a server optimises by itself."""

    def rewrite(self) -> None:
        """Do nothing: a server cleans up by itself, once enough was deleted."""

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        client, self._client = self._client, None
        if client is not None and self._owns_client:
            client.close()

    def _prepare_collection(self, create: bool) -> None:
        from qdrant_client.http.exceptions import UnexpectedResponse
        from qdrant_client.models import (
            Distance,
            Modifier,
            PayloadSchemaType,
            SparseVectorParams,
            VectorParams,
        )

        wanted = VectorParams(size=self.dimension, distance=Distance.COSINE)
        words = {name: SparseVectorParams(modifier=Modifier.IDF) for name in SPARSE}
        with self._server() as client:
            if not client.collection_exists(self.collection):
                if not create:
                    raise IndexUnavailableError(
                        f"There is no collection {self.collection!r} on the Qdrant server at {self._shown_url}; "
                        "`memory run --all` creates it."
                    )
                try:
                    client.create_collection(
                        self.collection,
                        vectors_config={DENSE: wanted},
                        sparse_vectors_config=words,
                    )
                except UnexpectedResponse as error:
                    if error.status_code != 409:  # 409: another process has just created it
                        raise
            info = client.get_collection(self.collection)
            named = info.config.params.vectors
            found = named.get(DENSE) if isinstance(named, dict) else named
            is_named = isinstance(named, dict) and words.keys() <= (info.config.params.sparse_vectors or {}).keys()
            if not found or not is_named or (found.size, found.distance) != (wanted.size, wanted.distance):
                what = f"vectors of dimension {found.size} ({found.distance.value})" if found else "no such vectors"
                raise IndexUnavailableError(
                    f"The collection {self.collection!r} on {self._shown_url} holds {what}, not the ones of this "
                    f"version: {DENSE!r} of dimension {self.dimension} ({wanted.distance.value}) and sparse ones for "
                    f"{', '.join(SPARSE)}. Delete the collection and embed again, or name another one."
                )
            schema = {DAY_NUMBER: PayloadSchemaType.INTEGER} | dict.fromkeys(KEYWORDS, PayloadSchemaType.KEYWORD)
            for name in schema.keys() - info.payload_schema.keys():
                client.create_payload_index(self.collection, name, schema[name], wait=True)

    @contextmanager
    def _server(self) -> Iterator[QdrantClient]:
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

        if self._client is None:
            raise IndexUnavailableError(f"The connection to {self._shown_url} is closed. Open the index again.")
        try:
            yield self._client
        except (
            ApiException,
            QdrantException,
            AssertionError,
            JSONDecodeError,
        ) as error:  # the last two come from the client
            if isinstance(error, UnexpectedResponse) and error.status_code in (401, 403):
                message = f"The Qdrant server at {self._shown_url} refuses the API key; check QDRANT_API_KEY."
            else:
                message = (
                    f"The Qdrant server at {self._shown_url} does not answer correctly "
                    f"({self._redact(_reason(error))}); start it, or check QDRANT_URL, without which the embedded "
                    "index is used."
                )
            # The cause may quote a header with the key: it stays out of the traceback.
            raise IndexUnavailableError(message) from None

    def _redact(self, text: str) -> str:
        # A key with a line break in it is quoted escaped.
        return text.replace(self._api_key, "***").replace(repr(self._api_key)[1:-1], "***") if self._api_key else text


def _reason(error: Exception) -> str:
    """The cause of the failure, shortened to one line."""
    from pydantic import ValidationError
    from qdrant_client.http.exceptions import UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return f"{error.status_code} {error.reason_phrase}"
    if isinstance(getattr(error, "source", error), (ValidationError, AssertionError, JSONDecodeError)):
        return "the server there speaks another protocol"
    return clip(one_line(str(error)), _MAX_REASON) or type(error).__name__


def _with_retries(write: Callable[[], object]) -> None:
    import tenacity

    tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_temporary),
        wait=tenacity.wait_exponential(multiplier=0.5),
        stop=tenacity.stop_after_attempt(_TRIES),
        reraise=True,
    )(write)


def _is_temporary(error: BaseException) -> bool:
    """Whether the same request may succeed soon: the server is busy or starting, or the connection broke."""
    from httpx import TransportError, UnsupportedProtocol
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return error.status_code in _TEMPORARY_STATUSES
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, TransportError) and not isinstance(error.source, UnsupportedProtocol)
    return isinstance(error, ResourceExhaustedResponse)


def _vectors(point: Point) -> dict[str, Any]:
    from qdrant_client.models import SparseVector

    named: dict[str, Any] = {name: SparseVector(indices=v.indices, values=v.values) for name, v in point.sparse.items()}
    return named if point.vector is None else named | {DENSE: list(point.vector)}


def _filter(first_day: date | None, last_day: date | None, equals: Mapping[str, Collection[str]]) -> Filter | None:
    from qdrant_client.models import FieldCondition, Filter, MatchAny, Range

    conditions = [FieldCondition(key=name, match=MatchAny(any=sorted(values))) for name, values in equals.items()]
    if bounds := day_bounds(first_day, last_day):
        conditions.append(FieldCondition(key=DAY_NUMBER, range=Range(**bounds)))
    return Filter(must=list(conditions)) if conditions else None
