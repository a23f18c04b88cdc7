"""`memory run`: updates the memory from the sessions, through Dagster."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
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
from memory_pipeline.cli.console import counted, err, say
from memory_pipeline.cli.estimate import print_estimate
from memory_pipeline.cli.examining import examine_before_a_run
from memory_pipeline.cli.running import due_by_level, report_outcome, rerun_after_repair, running
from memory_pipeline.cli.setup import offer_model
from memory_pipeline.cli.workspace import EXAMPLE_STORY
from memory_pipeline.defs.runs import interrupts, only_run
from memory_pipeline.embeddings.health import vector_problems
from memory_pipeline.lake.shared_marks import refuse_beside_a_server, serve
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

UP_TO_DATE = "all up to date"


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


def _plan(settings: Settings, catalogue: Catalogue, days: Sequence[date]) -> list[tuple[date, date]]:
    """The ranges of days to run. Prints them, and does the preparation."""
    # first, as it may make days out of date
    problems = vector_problems(Workspace(settings, catalogue.lake), before_a_run=True)
    with waiting("what is out of date"):
        ranges = Stages.from_settings(settings, catalogue, datetime.now(UTC)).runs_for(days)
    nothing = "nothing to do, but there are problems" if problems else UP_TO_DATE
    todo = describe_ranges(ranges) if ranges else f"{nothing}."
    sentence = f"{len(days)} days with sessions chosen, {todo} {left_out(catalogue)}"
    err.print(sentence.rstrip(), style="dim", soft_wrap=True)
    return ranges


def describe_ranges(ranges: Sequence[tuple[date, date]]) -> str:
    """The number of runs and of their days."""
    days = sum((end - start).days + 1 for start, end in ranges)
    return f"{counted(len(ranges), 'run')} over {counted(days, 'day')} to do."
