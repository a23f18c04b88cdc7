"""`memory run --estimate`: the cost of observing, reflecting and finding friction with the configured models."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from memory_pipeline.cli.choosing import days_in, progress, sessions_of_call, span_of
from memory_pipeline.cli.console import out, print_json, say
from memory_pipeline.cli.workspace import shown_model
from memory_pipeline.days import today
from memory_pipeline.defs.runs import only_run
from memory_pipeline.friction.estimate import estimate_friction
from memory_pipeline.observations.estimate import Estimate, estimate_day
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.planning import Stages
from memory_pipeline.reflections.estimate import estimate_pool, estimate_reflections
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date, is_current

OBSERVING, REFLECTING, POOLING = "observations", "reflections", "pool_reflections"
FRICTION = "friction_clusters"
ByDay = dict[date, Estimate]


@dataclass(frozen=True)
class Costs:
    """The estimated requests of each stage for the days of a run, and of the pool reflection, which is run by hand."""

    by_stage: dict[str, ByDay] = field(default_factory=dict)
    pool: Estimate = field(default_factory=Estimate)

    @property
    def total(self) -> Estimate:
        """The sum for a run, without the pool."""
        return sum((_sum(by_day) for by_day in self.by_stage.values()), Estimate())

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
    print_json(_as_json(settings, costs)) if as_json else _print(settings, costs)


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


def _as_json(settings: Settings, costs: Costs) -> dict[str, Any]:
    return {
        "model": shown_model(settings, settings.observer.model),
        "reflector_model": shown_model(settings, settings.reflector.model),
        "total": vars(costs.total),
        "stages": {name: vars(estimated) for name, estimated in costs.stages.items()},
        "days_needed": days_needed(settings, costs.total),
        "days": {str(day): vars(estimated) for day, estimated in costs.days().items() if estimated.calls},
    }


def duration(seconds: float) -> str:
    """A duration in words, rounded to minutes or hours."""
    if seconds < 90:
        return "a minute"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3_600:.0f} hours"


def _print(settings: Settings, costs: Costs) -> None:
    models = {OBSERVING: settings.observer.model, REFLECTING: settings.reflector.model}
    for (stage, model), role in zip(models.items(), ("OBSERVER", "REFLECTOR"), strict=True):
        if not model:
            say(f"No model is set for {stage} ({role}_MODEL): quotes, at no cost.")
    say("Distillations are made without a model and cost nothing.")
    if not any(models.values()):
        return
    asking = models | {FRICTION: settings.reflector.model}
    _table({stage: costs.by_stage[stage] for stage, model in asking.items() if model}, costs)
    named = "; ".join(f"{stage}: {shown_model(settings, model)}" for stage, model in models.items() if model)
    say(f"Models: {named}. No model was called. Tokens are estimates; repairs and retries are extra.")
    if settings.reflector.model:
        say(
            "Reflections on days without observations are estimated from their windows, friction from typed messages. "
            "The pool is only reflected on by hand and is not in the sum."
        )
    for stage, role in ((OBSERVING, "OBSERVER"), (REFLECTING, "REFLECTOR")):
        if costs.stages[stage].cost_usd is None:
            say(
                f"The price of the model for {stage} is not known; {role}_PRICE sets it, in USD per million tokens in "
                "and out."
            )
    budget = f"{settings.daily_budget_usd:.2f} USD and {settings.daily_budget_tokens:,} tokens a day"
    days = days_needed(settings, costs.total)
    say(f"With a budget of {budget} it {'never completes' if days is None else f'takes {days} day(s) of running'}.")


def _table(by_stage: dict[str, ByDay], costs: Costs) -> None:
    table = Table("stage", "windows", "calls", "answered already", "tokens in", "tokens out", "USD", "at most")
    rows = [(stage, _sum(by_day)) for stage, by_day in by_stage.items()]
    rows.append(("a run", costs.total))
    if REFLECTING in by_stage:
        rows.append((f"{POOLING}, by hand", costs.pool))
    for name, found in rows:
        counts = (found.windows, found.calls, found.answered, found.input_tokens, found.output_tokens)
        table.add_row(name, *(f"{n:,}" for n in counts), money(found.cost_usd), money(found.most_usd))
    out.print(table)


def money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.2f}"
