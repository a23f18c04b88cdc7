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


class _UntilMissing:
    """Stands in for a client: tells what was answered before, and ends with the first request that was not."""

    def __init__(self, client: Client) -> None:
        self.config, self.model, self._cache = client.config, client.model, client.cache
        self.missing: Request | None = None
        self.room = 0
        """Tokens of the facts that the last request asks for."""

    def complete(self, request: Request, for_day: date) -> Answer:
        if known := self._cache.known(request):
            return known
        self.missing = request
        raise NotRecordedError(request.key)


class _Watched(LanguageModelObserver):
    """Tells its client how much room each part has."""

    def room(self, chunk: Chunk, messages: Sequence[WindowMessage], context: Context) -> int:
        room = super().room(chunk, messages, context)
        cast(_UntilMissing, self.client).room = room
        return room


def missing_requests(
    lake: Lake, day: date, observer: LanguageModelObserver, refused: Collection[str] = ()
) -> Iterator[Asked]:
    """The first unanswered request of each session of the day, just as a run would send it: the next one is
    shown what this one gives. A session is left where its request was refused by a batch."""
    as_it_is = {field.name: getattr(observer, field.name) for field in fields(observer)}
    for jobs in jobs_of(lake, day):
        until = _UntilMissing(observer.client)
        with suppress(NotRecordedError):
            observe_session(jobs, _Watched(**as_it_is | {"client": until}))
        if until.missing and until.missing.key not in refused:
            answer = min(until.room + around_facts(until.missing), until.missing.max_output_tokens)
            yield Asked(until.missing, day, answer)
