"""`memory run`: sessions in, memory out, through Dagster."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Annotated, Any, NamedTuple

import typer

from memory_pipeline.automation.under_way import close_dead_runs
from memory_pipeline.cli.choosing import (
    EVERYTHING,
    FIRST,
    LAST,
    SESSIONS,
    days_in,
    progress,
    sessions_of_call,
    span_of,
    waiting,
)
from memory_pipeline.cli.console import FAILED, INTERRUPTED, err, fail, print_json
from memory_pipeline.cli.dagster_runs import instance_of, interrupts, last_words, only_run, run_job
from memory_pipeline.cli.settled import print_settled, settled_since
from memory_pipeline.cli.summary import print_summary, summarise
from memory_pipeline.daily_log.markers import write_markers
from memory_pipeline.days import lookback, stretches
from memory_pipeline.distillation.periods import NAMES, Period, periods_of
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.embeddings.health import lexical_only, set_aside_files, vector_problems
from memory_pipeline.free_space import disk_full, is_used_up
from memory_pipeline.planning import Stages
from memory_pipeline.recall.kept_briefing import refresh_kept
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.workspace import Workspace

STAGES_WITH_PROGRESS = len(fields(Stages))
DAY_JOB = "day_job"


class Runs(NamedTuple):
    """Runs of one job."""

    job: str
    ranges: list[tuple[date, date]]
    """Partitions of each, first and last."""
    steps: int
    """How often they report progress."""


def run(
    first: FIRST = None,
    last: LAST = None,
    everything: EVERYTHING = False,
    sessions: SESSIONS = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Bring the last days, or the days named, up to date.

    The last days are the 7 latest that have sessions. Days that are old enough are distilled with it, and the weeks and
    months that have ended with them.
    """
    span, began = span_of(first, last, everything), datetime.now(UTC)
    settings, catalogue = sessions_of_call(sessions)
    with last_words(settings), only_run(settings), interrupts() as is_pressed:
        before = set_aside_files(Workspace(settings, catalogue.lake))
        failure, days = _bring_up_to_date(settings, catalogue, span, everything, is_pressed)
        if not failure and set_aside_files(Workspace(settings, catalogue.lake)) != before:
            # what was found damaged on the way read as if it had never been: made anew, it changes what came of it
            failure, days = _bring_up_to_date(settings, catalogue, span, everything, is_pressed)
    if failure:
        err.print("The run did not finish; this is what is stored:", style="red")
    with instance_of(settings) as instance, waiting("what it came to"):
        summary = summarise(settings, instance, days)
    settled = settled_since(settings, began)
    refresh_kept(settings)
    if as_json:
        print_json(summary | {"review": settled, "failure": failure})
    else:
        print_summary(settings, summary)
        print_settled(settled)
    if failure:
        failure = disk_full(settings.workspace) if is_used_up(settings.workspace) else failure
        raise fail(f"The run did not finish: {failure}", INTERRUPTED if _is_stopped([failure]) else FAILED)
    by_words = lexical_only(settings)
    if by_words:  # less than there could be, but nothing that failed
        err.print(by_words, style="yellow", soft_wrap=True)
    if problems := [problem for problem in summary["problems"] if problem != by_words]:
        raise fail(f"Not all is well: {' '.join(problems)}")


def _bring_up_to_date(
    settings: Settings,
    catalogue: Catalogue,
    span: tuple[date, date] | None,
    everything: bool,
    is_pressed: Callable[[], bool],
) -> tuple[str | None, list[date]]:
    """Run what is out of date of the days asked for; returns what failed, if anything, and the days."""
    days = days_in(catalogue, span, everything)
    problems = vector_problems(Workspace(settings, catalogue.lake))  # first: it may make days out of date
    with waiting("what is out of date"):
        ranges = Stages.from_settings(settings, catalogue, datetime.now(UTC)).runs_for(days)
    out_of_date = sum((last - first).days + 1 for first, last in ranges)
    nothing = "nothing can be done, but not all is well" if problems else "all up to date"
    todo = _told(ranges, days) if ranges else f"{nothing}."
    outside = len(catalogue.days_outside())
    left_out = (
        f" {outside} days before {catalogue.settings.start_date} or in the future are left out; see `memory status`."
        if outside
        else ""
    )
    err.print(f"{len(days)} days with sessions chosen, {todo}{left_out}", style="dim", soft_wrap=True)
    if logs := write_markers(settings):
        which = f"{logs[0].stem} to {logs[-1].stem}" if len(logs) > 1 else logs[0].stem
        err.print(f"{len(logs)} daily log(s) now have the markers `{settings.markers}`: {which}.", style="dim")
    with instance_of(settings) as instance:
        close_dead_runs(instance)
        with waiting("days without sessions"):
            _report_empty_partitions(instance, catalogue)
        runs = Runs(DAY_JOB, ranges, out_of_date * STAGES_WITH_PROGRESS)
        failures = _execute(settings, instance, [runs], is_pressed) if ranges else []
        if not _is_stopped(failures):  # only now, so that REVIEW.md has the best of all days
            with waiting("REVIEW.md and MEMORY.md"):
                failures.append(run_job(settings, instance, "review_job"))
        if not _is_stopped(failures):
            failures += _distil(settings, instance, None if everything else days, is_pressed)
    failed = [f for f in failures if f]
    return (failed[-1] if _is_stopped(failed) else next(iter(failed), None)), days


def _told(ranges: Sequence[tuple[date, date]], chosen: Sequence[date]) -> str:
    """What is to be done, and why it is other days than were chosen, where it is."""
    first, last = ranges[0][0], ranges[-1][1]
    days = sum((end - start).days + 1 for start, end in ranges)
    named = sum(first <= day <= last for day in chosen)
    runs, of = f"{len(ranges)} run{'s' * (len(ranges) != 1)}", f"{days} day{'s' * (days != 1)}"
    told = f"{runs} over {of} to do."
    if named < len(chosen):
        told += f" {named} of them are not up to date, from {first} on: what changed there may change what comes after."
    if days > named:
        told += f" {days - named} without sessions lie between them: a run more would take longer."
    return told


def _report_empty_partitions(instance: Any, catalogue: Catalogue) -> None:
    """So that Dagster's catalogue counts no day without a session as missing. It has to be before any run: what is made
    of such a day would count as older than it."""
    from memory_pipeline.automation.empty_partitions import report_empty_partitions

    report_empty_partitions(instance, Workspace(catalogue.settings, catalogue.lake), catalogue)


def _distil(
    settings: Settings, instance: object, days: list[date] | None, is_pressed: Callable[[], bool]
) -> list[str | None]:
    """Distil what these days (None: all) have made due; without a model, so it costs nothing."""
    from memory_pipeline.automation.jobs import DISTIL_JOBS

    stages = stages_of(Workspace.open(settings, for_planning=True))
    due = {stage.level: due_periods(stage, days) for stage in stages}
    if not any(due.values()):
        return []
    counts = [f"{len(periods)} {NAMES[level]}{'s' * (len(periods) != 1)}" for level, periods in due.items() if periods]
    err.print(f"To distil: {', '.join(counts)}.", style="dim")
    runs = [_run_over(DISTIL_JOBS[level], level, periods) for level, periods in due.items() if periods]
    return _execute(settings, instance, runs, is_pressed)


def _run_over(job: str, level: int, due: Sequence[Period]) -> Runs:
    """One run, as the schedules start."""
    keys = [period.key for period in due]
    first, last = keys[0], keys[-1]
    return Runs(job, [(first, last)], len(periods_of(level, lookback(last, (last - first).days + 1))))


def _execute(
    settings: Settings, instance: object, todo: Sequence[Runs], is_pressed: Callable[[], bool]
) -> list[str | None]:
    from memory_pipeline.orchestration import STOPPED, on_progress

    def show(at: str, done: int) -> None:
        bar.update(task, advance=done, description=at)
        if is_pressed():  # a library may have taken Ctrl-C for its own and gone on
            raise KeyboardInterrupt

    with progress() as bar:
        # one more than there are: when all are done the clock would stop, and checks are still to come
        steps = sum(runs.steps for runs in todo) + 1
        task = bar.add_task("starting Dagster", total=steps)
        token = on_progress.set(show)
        failures: list[str | None] = []
        try:
            # a range that fails does not stop the others, but a user does
            left = [(runs.job, span) for runs in todo for span in runs.ranges]
            while left and not _is_stopped(failures):
                job, span = left.pop(0)
                failed: set[date] = set()
                failure = run_job(settings, instance, job, span, failed)
                if failure and failed and not _is_stopped([failure]):
                    failure = f"{failure} (on {', '.join(f'{day}' for day in sorted(failed))})"
                failures.append(STOPPED if is_pressed() else failure)
                if job == DAY_JOB:
                    left = [(job, part) for part in _without(span, failed)] + left
            bar.update(task, completed=steps, description=f"{todo[-1].job} is done")
            return failures
        finally:
            on_progress.reset(token)


def _without(span: tuple[date, date], failed: set[date]) -> list[tuple[date, date]]:
    """The other days of a run in which a stage failed on some: their later stages were skipped."""
    if not failed:
        return []
    days = [day for day in lookback(span[1], (span[1] - span[0]).days + 1) if day not in failed]
    return stretches(days)


def _is_stopped(failures: Sequence[str | None]) -> bool:
    """Whether a user stopped it, which ends the whole run."""
    from memory_pipeline.orchestration import STOPPED

    return STOPPED in failures
