"""Estimates of cost: of a run (`memory run --estimate`), and of a day and the backlog with a model (`memory setup`)."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from rich.table import Table

from memory_pipeline.cli.choosing import (
    RECENT_DAYS,
    days_in,
    progress,
    read_catalogue,
    session_files,
    sessions_of_call,
    span_of,
)
from memory_pipeline.cli.console import out, print_json, say
from memory_pipeline.cli.workspace import shown_model
from memory_pipeline.days import today
from memory_pipeline.defs.runs import only_run
from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.friction.estimate import estimate_friction
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.observations.estimate import Estimate, estimate_day
from memory_pipeline.observations.examination import result_of
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.planning import Stages
from memory_pipeline.reflections.estimate import estimate_pool, estimate_reflections
from memory_pipeline.settings import ObserverSettings, Settings
from memory_pipeline.settings.loading import is_installed
from memory_pipeline.stages import bring_up_to_date, is_current

OBSERVING, REFLECTING, POOLING = "observations", "reflections", "pool_reflections"
FRICTION = "friction_clusters"
NOBODY = "nobody {prompt}"
"""A model that is never called, for counting the tokens that any model would take."""
ByDay = dict[date, Estimate]


@dataclass(frozen=True)
class Costs:
    """The estimated requests of each stage for the days of a run, and of the pool reflection, which is run by hand."""

    by_stage: dict[str, ByDay] = field(default_factory=dict)
    pool: Estimate = field(default_factory=Estimate)

    @property
    def total(self) -> Estimate:
        """The sum for a run, without the pool."""
        return _sum(self.days())

    @property
    def stages(self) -> dict[str, Estimate]:
        return {name: _sum(by_day) for name, by_day in self.by_stage.items()} | {POOLING: self.pool}

    def days(self) -> ByDay:
        """The sum of all stages by day."""
        found: ByDay = defaultdict(Estimate)
        for by_day in self.by_stage.values():
            for day, estimated in by_day.items():
                found[day] += estimated
        return dict(sorted(found.items()))


def print_estimate(
    first: str | None, last: str | None, everything: bool, sessions: list[Path] | None, *, as_json: bool
) -> None:
    """Print the requests that `memory run` would send to models for these days, and their cost. No request is sent."""
    span = span_of(first, last, everything)
    settings, catalogue = sessions_of_call(sessions)
    with only_run(settings):
        stages = Stages.from_settings(settings, catalogue, datetime.now(UTC))
        costs = estimate_costs(stages, days_in(catalogue, span, everything))
    if not as_json:
        _print(settings, costs)
        return
    print_json(
        {
            "model": shown_model(settings, settings.observer.model),
            "reflector_model": shown_model(settings, settings.reflector.model),
            "total": vars(costs.total),
            "stages": {name: vars(estimated) for name, estimated in costs.stages.items()},
            "days_needed": days_needed(settings, costs.total),
            "days": {str(day): vars(estimated) for day, estimated in costs.days().items() if estimated.calls},
        }
    )


def estimate_costs(stages: Stages, days: list[date]) -> Costs:
    """The costs for these days. Messages are stored, so the next run need not read them again."""
    observed: ByDay = {}
    observer, lake = stages.observations.observer, stages.sessions.lake
    with progress() as bar:
        task = bar.add_task("looking at days", total=len(days))
        for day in days:
            bring_up_to_date(stages.sessions, lake, day)
            if isinstance(observer, LanguageModelObserver):
                is_done = is_current(stages.observations, lake, day)
                observed[day] = Estimate() if is_done else estimate_day(lake, day, observer)
            bar.advance(task)
    reflected = estimate_reflections(stages.observations, stages.reflections, days)
    friction = estimate_friction(stages.observations, stages.friction_clusters, days)
    pool = estimate_pool(stages.reflections, today(stages.reflections.settings.zone))
    return Costs({OBSERVING: observed, REFLECTING: reflected, FRICTION: friction}, pool)


def _sum(by_day: ByDay) -> Estimate:
    return sum(by_day.values(), Estimate())


def days_needed(settings: Settings, total: Estimate) -> int | None:
    """The number of days over which the budgets spread the work; None if a budget of zero prevents it."""
    tokens = total.input_tokens + total.output_tokens
    asked = ((tokens, settings.daily_budget_tokens), (total.cost_usd or 0.0, settings.daily_budget_usd))
    if any(needed and not budget for needed, budget in asked):
        return None
    return math.ceil(max(needed / budget if budget else 0.0 for needed, budget in asked))


def duration(seconds: float) -> str:
    """A duration in words, rounded to minutes or hours."""
    if seconds < 90:
        return "a minute"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3_600:.0f} hours"


def money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.2f}"


def _print(settings: Settings, costs: Costs) -> None:
    models = {OBSERVING: settings.observer.model, REFLECTING: settings.reflector.model}
    roles = {OBSERVING: "OBSERVER", REFLECTING: "REFLECTOR"}
    for stage, model in models.items():
        if not model:
            say(f"No model is set for {stage} ({roles[stage]}_MODEL): quotes, at no cost.")
    say("Distillations are made without a model and cost nothing.")
    if not any(models.values()):
        return
    asking = models | {FRICTION: settings.reflector.model}
    _print_table({stage: costs.by_stage[stage] for stage, model in asking.items() if model}, costs)
    named = "; ".join(f"{stage}: {shown_model(settings, model)}" for stage, model in models.items() if model)
    say(f"Models: {named}. No model was called. Tokens are estimates; repairs and retries are extra.")
    if settings.reflector.model:
        say(
            "Reflections on days without observations are estimated from their windows, friction from typed messages. "
            "The pool is only reflected on by hand and is not in the sum."
        )
    for stage, role in roles.items():
        if costs.stages[stage].cost_usd is None:
            say(
                f"The price of the model for {stage} is not known; {role}_PRICE sets it, in USD per million tokens in "
                "and out."
            )
    budget = f"{settings.daily_budget_usd:.2f} USD and {settings.daily_budget_tokens:,} tokens a day"
    days = days_needed(settings, costs.total)
    say(f"With a budget of {budget} it {'never completes' if days is None else f'takes {days} day(s) of running'}.")


def _print_table(by_stage: dict[str, ByDay], costs: Costs) -> None:
    table = Table("stage", "windows", "calls", "answered already", "tokens in", "tokens out", "USD", "at most")
    rows = [(stage, _sum(by_day)) for stage, by_day in by_stage.items()]
    rows.append(("a run", costs.total))
    if REFLECTING in by_stage:
        rows.append((f"{POOLING}, by hand", costs.pool))
    for name, found in rows:
        counts = (found.windows, found.calls, found.answered, found.input_tokens, found.output_tokens)
        table.add_row(name, *(f"{n:,}" for n in counts), money(found.cost_usd), money(found.most_usd))
    out.print(table)


@dataclass(frozen=True)
class Outlook:
    """The tokens of observing a day and the backlog, with any model."""

    day: Estimate
    """The mean of the days considered."""
    looked_at: int
    days: int
    """Days with sessions."""

    @property
    def backlog(self) -> Estimate:
        return _times(self.day, self.days)

    def tokens(self) -> str:
        """One sentence on the tokens of a day and of the backlog."""
        day, backlog = self.day, self.backlog
        exact = "" if self.looked_at == self.days else f", by the last {self.looked_at} of them"
        return (
            f"{self.days} days have sessions. One takes about {day.input_tokens:,} tokens in and {day.output_tokens:,} "
            f"out, all of them {backlog.input_tokens:,} and {backlog.output_tokens:,}{exact}."
        )

    def time(self, tokens_per_second: float) -> str:
        """The time that a model of this speed takes for a day and for the backlog, with sequential requests."""
        totals = (found.input_tokens + found.output_tokens for found in (self.day, self.backlog))
        day, backlog = (duration(total / tokens_per_second) for total in totals)
        return f"at this speed a day takes about {day}, all days {backlog}"

    def cost(self, settings: Settings) -> str:
        """The cost of a day and of the backlog with the model of these settings, and their time if it was examined."""
        day, backlog = (_priced(settings, found) for found in (self.day, self.backlog))
        parts = [f"a day: {_usd(day.cost_usd)}", f"all days: {_usd(backlog.cost_usd)}"]
        needed = days_needed(settings, backlog)
        if needed is None:
            parts.append("never within the daily budget")
        elif needed > 1:
            parts.append(f"within the daily budget over {needed} days")
        result = result_of(settings)
        if result and result.tokens_per_second:
            parts.append(self.time(result.tokens_per_second))
        return "; ".join(parts)


def estimate_outlook(settings: Settings) -> Outlook | str:
    """The outlook, or a sentence why there is none. Messages are stored, so the next run need not read them again."""
    _, sources = session_files(settings)
    if not sources:
        return "No session of a coding agent was found yet, so the cost of observing is unknown."
    try:
        with only_run(settings):
            catalogue = read_catalogue(settings, sources)
            days = catalogue.days()
            if not days:
                return "No session is on a day that is kept, so the cost of observing is unknown."
            probe = catalogue.settings.model_copy(update={"observer": ObserverSettings(model=NOBODY)})
            recent = days[-RECENT_DAYS:]
            costs = estimate_costs(Stages.from_settings(probe, catalogue, datetime.now(UTC)), recent)
    except TryAgainLaterError as busy:
        return f"The cost of observing is unknown now: {busy}"
    return Outlook(_times(costs.stages[OBSERVING], 1 / len(recent)), len(recent), len(days))


def _usd(usd: float | None) -> str:
    if usd is None:
        return "price not known"
    return "less than 0.01 USD" if 0 < usd < 0.01 else f"{money(usd)} USD"


def _times(estimate: Estimate, factor: float) -> Estimate:
    counts = ("windows", "calls", "input_tokens", "output_tokens")
    return Estimate(**{name: round(getattr(estimate, name) * factor) for name in counts}, cost_usd=None, most_usd=None)


def _priced(settings: Settings, estimate: Estimate) -> Estimate:
    config = observer_model(settings)
    if config is None or not (config.is_command or config.price or is_installed("models")):
        return estimate
    return replace(estimate, cost_usd=cost_of(config, estimate.input_tokens, estimate.output_tokens))
