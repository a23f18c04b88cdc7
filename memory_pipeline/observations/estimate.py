"""What observing would cost: the calls that a model would be asked, and which of them are answered already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memory_pipeline.lake import Lake
from memory_pipeline.llm.client import tokens_of
from memory_pipeline.llm.prices import cost_of
from memory_pipeline.observations.budget import room
from memory_pipeline.observations.language_model.observer import LanguageModelObserver
from memory_pipeline.observations.observer import Context, Said
from memory_pipeline.observations.observing import jobs_of

AROUND_FACTS = 300
"""Tokens of an answer beside its facts: tags, narratives, the task."""


@dataclass(frozen=True)
class Estimate:
    """Calls of some days, the tokens of those that would be paid, and their cost in USD (None: not known)."""

    windows: int = 0
    calls: int = 0
    answered: int = 0
    """Calls whose answer is kept already."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    most_usd: float | None = 0.0
    """If every answer were as long as it may be."""

    def __add__(self, other: Estimate) -> Estimate:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name, value in values.items():
            more = getattr(other, name)
            values[name] = None if value is None or more is None else value + more
        return Estimate(**values)


def estimate_day(lake: Lake, day: date, observer: LanguageModelObserver) -> Estimate:
    """Of a day whose messages and windows are stored.

    Parts behind the first of a window are counted with as many earlier observations as they may be shown; as those are
    not known yet, none of these parts counts as answered, unless the whole window was.
    """
    total = Estimate()
    for job in (job for jobs in jobs_of(lake, day) for job in jobs):
        total += _of_window(observer, job.messages, Context(day, job.window["dedupe_key"], job.project))
    return total


def _of_window(observer: LanguageModelObserver, messages: Sequence[Said], context: Context) -> Estimate:
    client, config = observer.client, observer.client.config
    found = Estimate(windows=1)
    shown = 0
    for request, chunk in observer.requests(messages, context):
        facts = room(messages[chunk.start : chunk.end], observer.budget)
        asked = tokens_of(request) + min(shown, observer.prior_tokens)
        told = min(facts + AROUND_FACTS, config.max_output_tokens)
        shown += facts
        if client.is_cached(request):
            found += Estimate(calls=1, answered=1)
            continue
        cost, most = cost_of(config, asked, told), client.worst_case(request)[1]
        found += Estimate(0, 1, 0, asked, told, cost, most)
    return found
