"""Estimate of the cost of observing: the requests to a model, and how many of them the cache answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import date

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.cache import NotRecordedError
from memory_pipeline.llm.client import Client, tokens_of
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.observing import context_of, jobs_of, observed_part
from memory_pipeline.observations.types import Context, Fact, WindowMessage, observation_id

TOKENS_AROUND_FACTS = 300
"""Tokens of an answer in addition to its facts: tags, narratives, the task."""
TOKENS_AROUND_FACTS_IN_JSON = 470
"""The same for JSON: 46 recorded answers with 443 facts took 168 tokens more each."""


@dataclass(frozen=True)
class Estimate:
    """The calls for some days, the tokens of those that must be paid for, and their cost in USD (None: unknown)."""

    windows: int = 0
    calls: int = 0
    answered: int = 0
    """Calls whose answer is cached."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    most_usd: float | None = 0.0
    """The cost if every answer had its maximum length."""

    def __add__(self, other: Estimate) -> Estimate:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Estimate(*(None if None in pair else sum(pair) for pair in pairs))


class _CachedClient:
    """A replacement for the client that answers from the cache and raises at a request that is not cached."""

    def __init__(self, client: Client) -> None:
        self.config, self.model, self._cache = client.config, client.model, client.cache
        self.answered = 0
        """Number of parts, not calls: a second attempt belongs to the same part."""

    def complete(self, request: Request, for_day: date) -> Answer:
        known = self._cache.known(request)
        if known is None:
            raise NotRecordedError(request.key)
        self.answered += request.attempt == 0
        return known


def estimate_day(lake: Lake, day: date, observer: LanguageModelObserver) -> Estimate:
    """The estimate of a day whose messages and windows are stored.

    Cached answers are replayed as in a run. After the first missing answer of a window, each part is assumed to show as
    many earlier observations as it may.
    """
    total = Estimate()
    for jobs in jobs_of(lake, day):
        earlier: list[tuple[str, Fact]] = []
        for job in jobs:
            window = job.window["dedupe_key"]
            known = observed_part(job, observer)
            context = context_of(job, known, earlier)
            earlier += known.facts
            parts = len({segment["answer"] for segment in known.rows.segments})
            total += Estimate(calls=parts, answered=parts)
            if known.messages == len(job.messages):
                total += Estimate(windows=1)
                continue
            replay = _CachedClient(observer.client)
            try:
                segments = replace(observer, client=replay).observe(job.messages, context)  # type: ignore[arg-type]
            except NotRecordedError:
                segments = []
            earlier += [(observation_id(window, fact), fact) for segment in segments for fact in segment.facts]
            total += _window_estimate(observer, job.messages, context, replay.answered)
    return total


def _window_estimate(
    observer: LanguageModelObserver, messages: Sequence[WindowMessage], context: Context, answered: int
) -> Estimate:
    client, config = observer.client, observer.client.config
    found = Estimate(windows=1)
    shown = 0
    for number, (request, chunk) in enumerate(observer.requests(messages, context)):
        facts = observer.room(chunk, messages, context)
        asked = tokens_of(request) + min(shown, observer.prior_tokens)
        reported = min(facts + around_facts(request), config.max_output_tokens)
        shown += facts
        if number < answered:
            found += Estimate(calls=1, answered=1)
            continue
        cost, most = cost_of(config, asked, reported), client.worst_case(request).cost_usd
        found += Estimate(0, 1, 0, asked, reported, cost, most)
    return found


def around_facts(request: Request) -> int:
    """Approximate tokens of the answer to a request in addition to its facts."""
    return TOKENS_AROUND_FACTS_IN_JSON if request.schema else TOKENS_AROUND_FACTS
