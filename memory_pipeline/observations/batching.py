"""Selection of requests for a batch: the observer's next requests, for days whose messages and windows are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date
from typing import cast

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.batching import Asked
from memory_pipeline.llm.cache import NotRecordedError
from memory_pipeline.llm.client import Client
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.estimate import around_facts
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.model.transcript import Chunk
from memory_pipeline.observations.observing import jobs_of, observe_session
from memory_pipeline.observations.types import Context, WindowMessage


class _CachedClient:
    """A replacement for the client that answers from the cache and raises at the first request that is not cached."""

    def __init__(self, client: Client) -> None:
        self.config, self.model, self._cache = client.config, client.model, client.cache
        self.missing: Request | None = None
        self.room = 0
        """Token budget for the facts of the last request."""

    def complete(self, request: Request, for_day: date) -> Answer:
        if known := self._cache.known(request):
            return known
        self.missing = request
        raise NotRecordedError(request.key)


class _BudgetReportingObserver(LanguageModelObserver):
    """An observer that reports the token budget of each part to its client."""

    def room(self, chunk: Chunk, messages: Sequence[WindowMessage], context: Context) -> int:
        room = super().room(chunk, messages, context)
        cast(_CachedClient, self.client).room = room
        return room


def missing_requests(
    lake: Lake, day: date, observer: LanguageModelObserver, refused: Collection[str] = ()
) -> Iterator[Asked]:
    """The first unanswered request of each session of the day, exactly as a run would send it. Later requests of a
    session contain the answer to this one. A session is skipped if a batch refused its request."""
    arguments = {field.name: getattr(observer, field.name) for field in fields(observer)}
    for jobs in jobs_of(lake, day):
        cached = _CachedClient(observer.client)
        with suppress(NotRecordedError):
            observe_session(jobs, _BudgetReportingObserver(**arguments | {"client": cached}))
        if cached.missing and cached.missing.key not in refused:
            answer = min(cached.room + around_facts(cached.missing), cached.missing.max_output_tokens)
            yield Asked(cached.missing, day, answer)
