"""`memory run` and `memory backfill`: update the memory from the sessions, through Dagster."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Annotated

import typer

from memory_pipeline.cli.choosing import (
    EVERYTHING,
    FIRST,
    LAST,
    SESSIONS,
    days_in,
    left_out,
    sessions_of_call,
    span_of,
    waiting,
)
from memory_pipeline.cli.console import MISUSED, confirm, counted, err, fail, say
from memory_pipeline.cli.estimate import days_needed, estimate_costs, money, print_estimate
from memory_pipeline.cli.examining import examine_before_a_run
from memory_pipeline.cli.running import Running, due_by_level, report_outcome, rerun_after_repair, running
from memory_pipeline.cli.setup import offer_model
from memory_pipeline.cli.workspace import EXAMPLE_STORY, shown_model
from memory_pipeline.defs.runs import interrupts, only_run
from memory_pipeline.embeddings.health import vector_problems
from memory_pipeline.lake.shared_marks import refuse_beside_a_server, serve
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def run(
    first: FIRST = None,
    last: LAST = None,
    everything: EVERYTHING = False,
    sessions: SESSIONS = None,
    review: Annotated[
        bool, typer.Option("--review/--no-review", help="Bring REVIEW.md and MEMORY.md up to date.")
    ] = True,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only show what the models would be asked, and the cost.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary, or the estimate, as JSON.")] = False,
) -> None:
    """Bring the latest days, or the given days, up to date.

    By default the 7 latest days with sessions. Days that are old enough are distilled, as are the weeks and months that
    have ended. If you review on another machine with the same lake, --no-review leaves both files to that machine.
    --estimate calls no model.
    """
    if estimate:
        print_estimate(first, last, everything, sessions, as_json=as_json)
        return
    span, began = span_of(first, last, everything), datetime.now(UTC)
    settings, catalogue = sessions_of_call(sessions, with_examples=review)
    examine_before_a_run(settings, as_json=as_json)
    days, has_run = list[date](), False

    def work() -> str | None:
        nonlocal has_run
        days[:] = days_in(catalogue, span, everything)
        ranges, to_distil = _plan(settings, catalogue, days), None if everything else days
        if not (ranges or has_run or due_by_level(settings, to_distil)):
            if review:
                for problem in reconcile(Workspace.open(settings), began).not_refreshed:
                    err.print(problem, style="yellow", soft_wrap=True)
            return None
        has_run = True
        with running(settings, catalogue, is_pressed) as runs:
            runs.over(ranges)
            if review:
                runs.review()
            runs.distil(to_distil)
        return runs.failure

    with only_run(settings), interrupts() as is_pressed:
        if review:
            refuse_beside_a_server(settings)
        else:
            serve(settings)
        failure = rerun_after_repair(Workspace(settings, catalogue.lake), work)
        report_outcome(settings, days, began, failure, as_json=as_json, reviews=review, has_run=has_run)
    if settings.shows_examples and not as_json:
        say(EXAMPLE_STORY)
    if has_run and not as_json:
        offer_model(settings, began.astimezone(settings.zone).date())


def backfill(
    first: FIRST = None,
    last: LAST = None,
    sessions: SESSIONS = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation; the daily budget still applies.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON; needs --yes.")] = False,
) -> None:
    """Bring all days of a range up to date, month by month.

    Shows the number of days and sessions and the cost in tokens and money, then asks for confirmation. After an
    interruption, or when the daily budget is used up, the next call resumes. REVIEW.md never shows more lines at once
    than its limit.
    """
    if as_json and not yes:
        raise fail(
            "--json cannot ask for confirmation: add --yes. `memory run --estimate --json` prints the estimate.",
            MISUSED,
        )
    span, began = span_of(first, last, everything=False) or (date.min, date.max), datetime.now(UTC)
    settings, catalogue = sessions_of_call(sessions)
    refuse_beside_a_server(settings)
    with only_run(settings):
        chosen, left = _days_to_do(settings, catalogue, span)
        _print_plan(settings, catalogue, chosen, left)
    if left:
        confirm("Begin?", yes, "Nothing was run.", default=False)  # it may cost money
    with only_run(settings), interrupts() as is_pressed:

        def work() -> str | None:
            with running(settings, catalogue, is_pressed) as runs:
                _run_by_month(runs, chosen, set(left))
            return runs.failure

        failure = rerun_after_repair(Workspace(settings, catalogue.lake), work)
    report_outcome(settings, chosen, began, failure, as_json=as_json)


def _plan(settings: Settings, catalogue: Catalogue, days: Sequence[date]) -> list[tuple[date, date]]:
    """The ranges of days to run. Prints them, and does the preparation."""
    # first, as it may make days out of date
    problems = vector_problems(Workspace(settings, catalogue.lake), before_a_run=True)
    with waiting("what is out of date"):
        ranges = Stages.from_settings(settings, catalogue, datetime.now(UTC)).runs_for(days)
    nothing = "nothing to do, but there are problems" if problems else "all up to date"
    number = sum((end - start).days + 1 for start, end in ranges)
    todo = f"{counted(len(ranges), 'run')} over {counted(number, 'day')} to do." if ranges else f"{nothing}."
    sentence = f"{len(days)} days with sessions chosen, {todo} {left_out(catalogue)}"
    err.print(sentence.rstrip(), style="dim", soft_wrap=True)
    return ranges


def _days_to_do(settings: Settings, catalogue: Catalogue, span: tuple[date, date]) -> tuple[list[date], list[date]]:
    """The days of the range that have sessions or notes, and those of them that are not up to date. Raises
    `typer.Exit` if the range has no days."""
    chosen = days_in(catalogue, span, everything=False)
    if not chosen:
        known = catalogue.days()
        where = f"; sessions were found from {known[0]} to {known[-1]}" if known else ""
        raise fail(f"No day of the range has a session{where}. {left_out(catalogue)}".rstrip())
    vector_problems(Workspace(settings, catalogue.lake), before_a_run=True)  # first, as it may make days out of date
    planning = Stages.from_settings(settings, catalogue, datetime.now(UTC), for_planning=True)
    with waiting("what is out of date"):
        return chosen, [day for day in chosen if not planning.is_current(day)]


def _print_plan(settings: Settings, catalogue: Catalogue, chosen: list[date], left: list[date]) -> None:
    """Print the work and its cost to stderr; stdout has the summary."""
    lines = [
        f"days        {len(chosen)} with sessions, {chosen[0]} to {chosen[-1]}; {len(chosen) - len(left)} are up to "
        f"date, {len(left) or 'none'} are left"
    ]
    if left:
        read = [(file, day) for day in left for file in catalogue.files_of(day)]
        messages = sum(catalogue.messages_of(file, day) for file, day in read)
        lines.append(f"sessions    {len({file for file, _ in read})} files with {messages:,} messages on these days")
        lines.append(f"models      {_describe_cost(settings, catalogue, left)}")
    for line in lines:
        err.print(line, soft_wrap=True)
    if outside := left_out(catalogue):
        err.print(outside, style="yellow", soft_wrap=True)


def _describe_cost(settings: Settings, catalogue: Catalogue, left: list[date]) -> str:
    """The models, and what they cost for these days. Messages are read for it, so the runs need not read them again."""
    models = [model for model in (settings.observer.model, settings.reflector.model) if model]
    if not models:
        return "none is set: no tokens, no cost"
    cost = estimate_costs(Stages.from_settings(settings, catalogue, datetime.now(UTC)), left).total
    names = ", ".join(dict.fromkeys(filter(None, (shown_model(settings, model) for model in models))))
    calls = f"{cost.calls - cost.answered:,} calls, {cost.input_tokens:,} tokens in and {cost.output_tokens:,} out"
    days = days_needed(settings, cost)
    within = "never completed" if days is None else "completed in a day"
    if days and days > 1:
        within = f"completed in {days} days, with a call on each"
    usd = f"{money(cost.cost_usd)} USD (at most {money(cost.most_usd)})"
    budget = f"{settings.daily_budget_usd:.2f} USD and {settings.daily_budget_tokens:,} tokens a day"
    return f"{names}: {calls}, {usd}; with {budget} it is {within}"


def _run_by_month(runs: Running, chosen: list[date], left: set[date]) -> None:
    """Run all months, until the user, the budget of the models or a failure that affects all days ends it."""
    for _, month in groupby(chosen, key=lambda day: (day.year, day.month)):
        days = list(month)
        with waiting("what is out of date"):
            ranges = Stages.from_settings(runs.settings, runs.catalogue, datetime.now(UTC)).runs_for(days)
        if not ranges:
            continue
        err.print(f"{days[0]} to {days[-1]}: {len(left)} days are left", style="dim", soft_wrap=True)
        failures = len(runs.failures)
        runs.over(ranges)
        left.difference_update(days)
        if why := _reason_to_stop(runs, failures):
            err.print(f"Run the command again to resume. {why}", style="yellow", soft_wrap=True)
            break
    runs.review()
    runs.distil(chosen)


def _reason_to_stop(runs: Running, failures: int) -> str:
    """A sentence if the other months would also fail; ``failures`` is the number before this month."""
    if runs.unfinished.out_of_budget:
        return runs.unfinished.out_of_budget
    return runs.failures[-1] if len(runs.failures) > failures and not runs.unfinished.failed else ""
