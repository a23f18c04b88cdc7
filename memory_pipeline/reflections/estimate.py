"""Estimate of the cost of reflecting: the requests to the model of `REFLECTOR_MODEL`.

For an observed day, batches are counted as in a run. For others the tokens of observations are estimated from the
windows, as the share of the tokens said that observations may take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import polars as pl

from memory_pipeline.llm.client import tokens_of
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.request import Request
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.observations.quotes.observer import token_budget_for
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.model.reflector import LanguageModelReflector
from memory_pipeline.reflections.model.rendering import shown_tokens
from memory_pipeline.reflections.pool import STAY_DAYS, eligible_rows, observed_of
from memory_pipeline.reflections.stage import ReflectionsStage, observed_in
from memory_pipeline.reflections.types import Observation
from memory_pipeline.stages import is_current

OBSERVATION_TOKENS, AROUND_OBSERVATION = 25, 8
"""Tokens of an observation, and those added when it is shown: number, priority, kind, speaker."""
ANSWERED = 0.5
"""Tokens of an answer per token of the observations shown, including marks and sources, as the reflector's prompt leads
to."""
ANSWERED_IN_JSON = 0.85
"""The same for JSON, whose field names add about 30 tokens to a line of 45."""


def expected_tokens(said: Iterable[int], budget: float) -> int:
    """Estimated tokens of the observations, as shown to the model, of windows with these numbers of tokens said."""
    tokens = sum(token_budget_for(n, budget) for n in said)
    return int(tokens * (1 + AROUND_OBSERVATION / OBSERVATION_TOKENS))


def estimate_reflections(
    observations: ObservationsStage, reflections: ReflectionsStage, days: Iterable[date]
) -> dict[date, Estimate]:
    """The estimate for each of these days, whose windows must be stored; empty without a model."""
    reflector, lake = reflections.reflector, reflections.lake
    if not isinstance(reflector, LanguageModelReflector):
        return {}
    days = sorted(days)
    coming = {day for day in days if not is_current(observations, lake, day)}
    found = {}
    for day in days:
        if not coming.isdisjoint(reflections.days_before(day)):
            found[day] = _expected_estimate(reflections, reflector, day, coming)
        elif is_current(reflections, lake, day):
            found[day] = Estimate()
        else:
            observed = observed_in(reflections.workspace, reflections.days_before(day))
            has_new = any(o.day == day for o in observed)
            found[day] = _requests_estimate(reflector, day, observed if has_new else ())
    return found


def estimate_pool(reflections: ReflectionsStage, today: date) -> Estimate:
    """The estimate for `pool_reflections` if it ran now."""
    reflector, lake, settings = reflections.reflector, reflections.lake, reflections.settings
    if not isinstance(reflector, LanguageModelReflector):
        return Estimate()
    rows = eligible_rows(lake, lake.read("pool_reflections"), today - timedelta(days=STAY_DAYS))
    return _requests_estimate(reflector, None, [observed_of(row, settings) for row in rows])


def _expected_estimate(
    stage: ReflectionsStage, reflector: LanguageModelReflector, day: date, coming: set[date]
) -> Estimate:
    days = stage.days_before(day)
    observed = observed_in(stage.workspace, [d for d in days if d not in coming])
    windows = stage.lake.read("windows", [d for d in days if d in coming], ["day", "tokens_said", "observed"])
    windows = windows.filter(pl.col("observed"))
    if day not in {*windows["day"], *(o.day for o in observed)}:
        return Estimate()
    shown = shown_tokens(observed) + expected_tokens(windows["tokens_said"], stage.settings.observation_budget)
    calls = max(1, math.ceil(shown / reflector.batch_tokens))
    empty = reflector.empty_request(day)
    return sum((_request_estimate(reflector, empty, shown // calls, shown // calls) for _ in range(calls)), Estimate())


def _requests_estimate(
    reflector: LanguageModelReflector, day: date | None, observed: Sequence[Observation]
) -> Estimate:
    total = Estimate()
    for request, batch in reflector.requests(day, observed):
        if reflector.client.is_cached(request):
            total += Estimate(calls=1, answered=1)
        else:
            total += _request_estimate(reflector, request, 0, batch.tokens)
    return total


def _request_estimate(reflector: LanguageModelReflector, request: Request, more: int, shown: int) -> Estimate:
    """The estimate of one request that will grow by `more` tokens; `shown` counts the observations in it."""
    config = reflector.client.config
    asked = tokens_of(request) + more
    share = ANSWERED_IN_JSON if request.schema else ANSWERED
    reported = min(int(share * shown), config.max_output_tokens)
    most = cost_of(config, asked, config.max_output_tokens)
    return Estimate(0, 1, 0, asked, reported, cost_of(config, asked, reported), most)
