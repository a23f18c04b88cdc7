"""Which requests a batch may hold: what the observer would ask next, of days whose messages and windows are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.cache import NotRecordedError
from memory_pipeline.llm.client import Client
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.estimate import around_facts
from memory_pipeline.observations.language_model.observer import LanguageModelObserver
from memory_pipeline.observations.observing import jobs_of, observe_session
from memory_pipeline.text.tokens import estimate


class _UntilMissing:
    """Stands in for a client: tells what was answered before, and ends with the first request that was not."""

    def __init__(self, client: Client) -> None:
        self.config, self.model, self._cache = client.config, client.model, client.cache
        self.missing: Request | None = None

    def complete(self, request: Request, for_day: date) -> Answer:
        if known := self._cache.known(request):
            return known
        self.missing = request
        raise NotRecordedError(request.key)


def missing_requests(
    lake: Lake, day: date, observer: LanguageModelObserver, refused: Collection[str] = ()
) -> Iterator[Request]:
    """Of each session of the day the first request that is not answered, just as a run would send it: the next one is
    shown what this one gives. A session is left where its request was refused by a batch."""
    for jobs in jobs_of(lake, day):
        until = _UntilMissing(observer.client)
        with suppress(NotRecordedError):
            observe_session(jobs, replace(observer, client=until))  # type: ignore[arg-type]
        if until.missing and until.missing.key not in refused:
            yield until.missing


def expected_answer(request: Request, observer: LanguageModelObserver) -> int:
    """Tokens of the answer, about."""
    return min(round(observer.budget * estimate(request.prompt)) + around_facts(request), request.max_output_tokens)
