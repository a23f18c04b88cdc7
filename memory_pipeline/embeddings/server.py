"""The vector index on a Qdrant server, through `qdrant_client`, for concurrent readers and large histories."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Any, Literal

import tenacity
from httpx import TransportError, UnsupportedProtocol
from pydantic import ValidationError
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import Distance, Modifier, PayloadSchemaType, PointStruct, SparseVectorParams, VectorParams

from memory_pipeline.embeddings.index import (
    COLLECTION,
    DAY_NUMBER,
    DENSE,
    KEYWORDS,
    PAGE,
    SPARSE,
    IndexUnavailableError,
    VectorIndex,
)
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.sentences import clip

_MAX_REASON = 200
_TRIES = 4
"""Maximum attempts of a write while the server is busy, with pauses of .5, 1 and 2 seconds."""
_TEMPORARY_STATUSES = (408, 429, 500, 502, 503, 504)


class ServerIndex(VectorIndex):
    """A `VectorIndex` in one collection of a Qdrant server; the collection is created if needed.

    Raises `IndexUnavailableError` if the server cannot be reached or refuses, if the collection holds vectors of
    another dimension or distance, or if it does not exist and ``create`` is false.

    A write is retried if the server was busy or the connection broke: points have ids, so a duplicate write changes
    nothing. Opening and reading are not retried, so an outage is reported at once.
    """

    _models = models

    def __init__(
        self,
        url: str,
        dimension: int,
        *,
        api_key: str | None = None,
        collection: str = COLLECTION,
        create: bool = True,
        seconds: float = 8.0,
    ) -> None:
        self.dimension = dimension
        self.collection = collection
        # An address may carry a password or a token; messages must not.
        self._shown_url = re.sub(r"//[^/]*@", "//", url).partition("?")[0]
        self._api_key = (api_key or "").strip()
        # The client says so with the path of this file, for whatever address; the setting's description says it once.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        try:
            self._client: QdrantClient | None = QdrantClient(
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

    def _upsert(self, rows: list[tuple[str, Any, dict[str, Any]]]) -> None:
        points = [PointStruct(id=point_id, vector=vectors, payload=payload) for point_id, vectors, payload in rows]
        with self._server() as client:
            _retrying(client.upsert, self.collection, points, wait=True)

    def _delete(self, point_ids: list[Any]) -> None:
        with self._server() as client:
            _retrying(client.delete, self.collection, point_ids, wait=True)

    def _scroll(self, offset: Any, chosen: Any) -> tuple[Sequence[Any], Any]:
        with self._server() as client:
            return client.scroll(
                self.collection, chosen, limit=PAGE, offset=offset, with_payload=False, with_vectors=False
            )

    def _retrieve(self, point_ids: list[str], payload: bool, vectors: list[str] | Literal[False]) -> Sequence[Any]:
        with self._server() as client:
            return client.retrieve(self.collection, point_ids, with_payload=payload, with_vectors=vectors)

    def count(self) -> int:
        with self._server() as client:
            return client.count(self.collection).count

    def _search(self, query: Any, using: str, limit: int, chosen: Any, payload: bool | list[str]) -> Sequence[Any]:
        with self._server() as client:
            return client.query_points(
                self.collection, query, using=using, query_filter=chosen, limit=limit, with_payload=payload
            ).points

    def settle(self) -> None:
        """Do nothing: a server optimises by itself."""

    def rewrite(self) -> None:
        """Do nothing: a server cleans up by itself, once enough was deleted."""

    def _flush(self) -> None:
        """Do nothing: each write waits until the server has applied it."""

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _prepare_collection(self, create: bool) -> None:
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
        if self._client is None:
            raise IndexUnavailableError(f"The connection to {self._shown_url} is closed. Open the index again.")
        try:
            yield self._client
        # the last two come from the client
        except (ApiException, QdrantException, AssertionError, JSONDecodeError) as error:
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
    if isinstance(error, UnexpectedResponse):
        return f"{error.status_code} {error.reason_phrase}"
    if isinstance(getattr(error, "source", error), (ValidationError, AssertionError, JSONDecodeError)):
        return "the server there speaks another protocol"
    return clip(one_line(str(error)), _MAX_REASON) or type(error).__name__


def _is_temporary(error: BaseException) -> bool:
    """Whether the same request may succeed soon: the server is busy or starting, or the connection broke."""
    if isinstance(error, UnexpectedResponse):
        return error.status_code in _TEMPORARY_STATUSES
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, TransportError) and not isinstance(error.source, UnsupportedProtocol)
    return isinstance(error, ResourceExhaustedResponse)


_retrying = tenacity.Retrying(
    retry=tenacity.retry_if_exception(_is_temporary),
    wait=tenacity.wait_exponential(multiplier=0.5),
    stop=tenacity.stop_after_attempt(_TRIES),
    reraise=True,
)
