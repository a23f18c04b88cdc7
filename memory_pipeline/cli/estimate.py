"""`memory estimate`: what observing these days with the configured model would cost, before it does."""

import math
from collections import defaultdict
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from memory_pipeline.cli.choosing import EVERYTHING, FIRST, LAST, SESSIONS, days_in, progress, sessions_of_call, span_of
from memory_pipeline.cli.console import out, print_json, say
from memory_pipeline.cli.dagster_runs import only_run
from memory_pipeline.observations.estimate import Estimate, estimate_day
from memory_pipeline.observations.language_model.observer import LanguageModelObserver
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.redaction import redactor_of
from memory_pipeline.settings import Settings
from memory_pipeline.stage import bring_up_to_date, is_current


def estimate(
    first: FIRST = None,
    last: LAST = None,
    everything: EVERYTHING = False,
    sessions: SESSIONS = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimate as JSON.")] = False,
) -> None:
    """Tell what `memory run` of the same days would ask of the model, and what that costs; asks nothing itself."""
    span = span_of(first, last, everything)
    settings, catalogue = sessions_of_call(sessions)
    with only_run(settings):
        stages = Stages.of(settings, catalogue, datetime.now(UTC))
        by_day = _by_day(stages, days_in(catalogue, span, everything))
    print_json(_as_json(settings, by_day)) if as_json else _print(settings, by_day)


def _by_day(stages: Stages, days: list[date]) -> dict[date, Estimate]:
    """What each day needs; messages are read on the way, which the next run need not do again."""
    found: dict[date, Estimate] = {}
    observer, lake = stages.observations.observer, stages.sessions.lake
    with progress() as bar:
        task = bar.add_task("looking at days", total=len(days))
        for day in days:
            bring_up_to_date(stages.sessions, lake, day)
            if isinstance(observer, LanguageModelObserver):
                is_done = is_current(stages.observations, lake, day)
                found[day] = Estimate() if is_done else estimate_day(lake, day, observer)
            bar.advance(task)
    return found


def _total(by_day: dict[date, Estimate]) -> Estimate:
    return sum(by_day.values(), Estimate())


def _days_needed(settings: Settings, total: Estimate) -> int | None:
    """Days that the budgets stretch it over; None where a budget of nothing keeps it from ever being done."""
    tokens = total.input_tokens + total.output_tokens
    asked = ((tokens, settings.daily_budget_tokens), (total.cost_usd or 0.0, settings.daily_budget_usd))
    if any(needed and not budget for needed, budget in asked):
        return None
    return math.ceil(max(needed / budget if budget else 0.0 for needed, budget in asked))


def _as_json(settings: Settings, by_day: dict[date, Estimate]) -> dict[str, Any]:
    days = {str(day): vars(found) for day, found in by_day.items() if found.calls}
    total = _total(by_day)
    return {
        "model": _model(settings),
        "total": vars(total),
        "days_needed": _days_needed(settings, total),
        "days": days,
    }


def _print(settings: Settings, by_day: dict[date, Estimate]) -> None:
    if not settings.observer_model:
        say("No model is set (OBSERVER_MODEL), so observing quotes and costs nothing.")
        return
    total = _total(by_day)
    months: dict[str, Estimate] = defaultdict(Estimate)
    for day, found in by_day.items():
        months[f"{day:%Y-%m}"] += found
    table = Table("month", "windows", "calls", "answered already", "tokens in", "tokens out", "USD", "at most")
    for name, found in [*sorted(months.items()), ("all", total)]:
        counts = (found.windows, found.calls, found.answered, found.input_tokens, found.output_tokens)
        table.add_row(name, *(f"{n:,}" for n in counts), _money(found.cost_usd), _money(found.most_usd))
    out.print(table)
    say(f"Model: {_model(settings)}. Nothing was asked. Repairs and retries come on top; tokens are estimates.")
    if total.cost_usd is None:
        say("The price of this model is not known; OBSERVER_PRICE tells it, in USD per million tokens in and out.")
    budget = f"{settings.daily_budget_usd:.2f} USD and {settings.daily_budget_tokens:,} tokens a day"
    days = _days_needed(settings, total)
    say(f"With a budget of {budget} it {'is never done' if days is None else f'takes {days} day(s) of running'}.")


def _model(settings: Settings) -> str | None:
    """As it may be told: a command may have a key among its arguments."""
    return redactor_of(settings).redact(settings.observer_model) if settings.observer_model else None


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.2f}"
