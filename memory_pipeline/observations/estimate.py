"""Estimate of the cost of observing: the requests to a model, and how many of them the cache answers."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from datetime import date
from typing import Any

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.client import Client, tokens_of
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.model.observer import LanguageModelObserver, model_token_budget
from memory_pipeline.observations.stage import context_of, jobs_of, observed_part
from memory_pipeline.observations.types import Fact, observation_id

TOKENS_AROUND_FACTS = 300
"""Tokens of an answer in addition to its facts: tags, narratives, the task."""
TOKENS_AROUND_FACTS_IN_JSON = 470
"""The same for JSON: 46 recorded answers with 443 facts took 168 tokens more each."""
NOTHING = "<observations>nothing worth keeping</observations>"


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
        sums: Any = (None if None in pair else sum(pair) for pair in pairs)
        return Estimate(*sums)


class _CountingClient:
    """A replacement for the client that answers from the cache. Requests that are not cached are kept, and answered as
    if nothing were worth keeping."""

    def __init__(self, client: Client) -> None:
        self.config, self.model, self._cache = client.config, client.model, client.cache
        self.answered = 0
        """Number of parts, not calls: a second attempt belongs to the same part."""
        self.unknown: list[Request] = []

    def complete(self, request: Request, for_day: date) -> Answer:
        known = self._cache.known(request)
        if known is not None:
            self.answered += request.attempt == 0
        elif request.attempt == 0:
            self.unknown.append(request)
        return known or Answer(NOTHING, 0, 0, None, 0.0, key=request.key)


def estimate_day(lake: Lake, day: date, observer: LanguageModelObserver) -> Estimate:
    """The estimate of a day whose messages and windows are stored.

    Its windows are observed as in a run, with cached answers only. Each part after one without an answer is assumed to
    show as many earlier observations as it may.
    """
    total = Estimate()
    for jobs in jobs_of(lake, day):
        earlier: list[tuple[str, Fact]] = []
        for job in jobs:
            known = observed_part(job, observer)
            context = context_of(job, known, earlier)
            earlier += known.facts
            parts = len({segment["answer"] for segment in known.rows.segments})
            total += Estimate(windows=1, calls=parts, answered=parts)
            if known.messages < len(job.messages):
                client = _CountingClient(observer.client)
                segments = replace(observer, client=client).observe(job.messages, context)  # type: ignore[arg-type]
                earlier += [(observation_id(context.window, f), f) for segment in segments for f in segment.facts]
                total += _parts_estimate(
                    client, observer, model_token_budget(job.messages[known.messages :], observer.budget)
                )
    return total


def _parts_estimate(asked: _CountingClient, observer: LanguageModelObserver, token_budget: int) -> Estimate:
    """The estimate of the parts of a window, whose facts may have this number of tokens."""
    client, config = observer.client, observer.client.config
    found = Estimate(calls=asked.answered, answered=asked.answered)
    facts = token_budget // max(1, asked.answered + len(asked.unknown))
    for number, request in enumerate(asked.unknown):
        tokens = tokens_of(request) + min(number * facts, observer.prior_tokens)
        around = TOKENS_AROUND_FACTS_IN_JSON if request.schema else TOKENS_AROUND_FACTS
        reported = min(facts + around, config.max_output_tokens)
        cost, most = cost_of(config, tokens, reported), client.worst_case(request).cost_usd
        found += Estimate(0, 1, 0, tokens, reported, cost, most)
    return found
