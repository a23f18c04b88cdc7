"""What `memory run` and `memory backfill` share: days brought up to date by Dagster's jobs, and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any, NamedTuple

import typer

from memory_pipeline.cli.choosing import progress, waiting
from memory_pipeline.cli.console import FAILED, INTERRUPTED, err, fail, print_json
from memory_pipeline.cli.settled import print_settled, settled_since
from memory_pipeline.cli.summary import print_summary, summarise
from memory_pipeline.days import date_ranges, lookback
from memory_pipeline.defs.runs import Unfinished, instance_of, run_job
from memory_pipeline.defs.under_way import close_dead_runs
from memory_pipeline.distillation.periods import NAMES, Period, consecutive
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.embeddings.health import lexical_only, set_aside_files
from memory_pipeline.planning import Stages
from memory_pipeline.recall.kept_briefing import refresh_kept
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import disk_full, is_used_up
from memory_pipeline.workspace.workspace import Workspace

DAY_JOB = "day_job"


class Runs(NamedTuple):
    """Runs of one job."""

    job: str
    ranges: list[tuple[date, date]]
    """Partitions of each, first and last."""
    steps: int
    """How often they report progress."""


@dataclass
class Running:
    """Runs of jobs on a workspace, one after the other. Once a user has stopped one, the others do nothing."""

    settings: Settings
    catalogue: Catalogue
    instance: Any
    is_pressed: Callable[[], bool]
    """Whether somebody pressed Ctrl-C."""
    failures: list[str] = field(default_factory=list)
    unfinished: Unfinished = field(default_factory=Unfinished)
    """What is left of the days of the last call of `over`."""

    @property
    def is_stopped(self) -> bool:
        from memory_pipeline.defs.orchestration import STOPPED

        return STOPPED in self.failures

    @property
    def failure(self) -> str | None:
        """The one to be reported: that a user stopped it, else the first."""
        return next(iter(self.failures[-1:] if self.is_stopped else self.failures), None)

    def over(self, ranges: Sequence[tuple[date, date]]) -> None:
        """Bring these days up to date, and leave REVIEW.md and MEMORY.md to `review`."""
        self.unfinished = Unfinished()
        if ranges and not self.is_stopped:
            days = sum((last - first).days + 1 for first, last in ranges)
            self._execute([Runs(DAY_JOB, list(ranges), days * len(fields(Stages)))])

    def review(self) -> None:
        """Bring REVIEW.md and MEMORY.md up to date: after many days rather than between them, so that the best of all
        of them are offered."""
        if not self.is_stopped:
            with waiting("REVIEW.md and MEMORY.md"):
                failure = run_job(self.settings, self.instance, "review_job")
            self.failures += filter(None, [failure])

    def distil(self, days: Sequence[date] | None) -> None:
        """Distil what these days (None: all) have made due; without a model, so it costs nothing."""
        if self.is_stopped:
            return
        from memory_pipeline.defs.jobs import DISTIL_JOBS

        with waiting("what is to be distilled"):
            stages = stages_of(Workspace.open(self.settings, for_planning=True))
            due = {stage.level: due_periods(stage, days) for stage in stages}
        due = {level: periods for level, periods in due.items() if periods}
        if due:
            counts = [f"{len(periods)} {NAMES[level]}{'s' * (len(periods) != 1)}" for level, periods in due.items()]
            err.print(f"Summarizing {', '.join(counts)}.", style="dim")
            self._execute([runs_over(DISTIL_JOBS[level], periods) for level, periods in due.items()])

    def _execute(self, todo: Sequence[Runs]) -> None:
        from memory_pipeline.defs.orchestration import STOPPED, on_progress

        def show(at: str, done: int) -> None:
            bar.update(task, advance=done, description=at)
            if self.is_pressed():  # a library may have taken Ctrl-C for its own and gone on
                raise KeyboardInterrupt

        with progress() as bar:
            # one more than there are: when all are done the clock would stop, and checks are still to come
            steps = sum(runs.steps for runs in todo) + 1
            task = bar.add_task("starting Dagster", total=steps)
            token = on_progress.set(show)
            try:
                # a range that fails does not stop the others, but a user does
                left = [(runs.job, span) for runs in todo for span in runs.ranges]
                while left and not self.is_stopped:
                    job, span = left.pop(0)
                    found = Unfinished()
                    failure = run_job(self.settings, self.instance, job, span, found)
                    self.unfinished.add(found)
                    if self.is_pressed():
                        failure = STOPPED
                    if failure and found.failed and failure != STOPPED:
                        failure = f"{failure} (on {', '.join(f'{day}' for day in sorted(found.failed))})"
                    self.failures += filter(None, [failure])
                    if job == DAY_JOB:
                        left = [(job, part) for part in _without(span, found.failed)] + left
                bar.update(task, completed=steps, description=f"{todo[-1].job} is done")
            finally:
                on_progress.reset(token)


@contextmanager
def running(settings: Settings, catalogue: Catalogue, is_pressed: Callable[[], bool]) -> Iterator[Running]:
    """Runs on this workspace, after what earlier ones left behind is put in order."""
    with instance_of(settings) as instance:
        close_dead_runs(instance)
        yield Running(settings, catalogue, instance, is_pressed)


def until_whole(workspace: Workspace, work: Callable[[], str | None]) -> str | None:
    """Do the work, which returns what failed; once more where something was found damaged on the way: that read as if
    it had never been, and made anew it changes what came of it."""
    before = set_aside_files(workspace)
    failure = work()
    return work() if not failure and set_aside_files(workspace) != before else failure


def report_outcome(
    settings: Settings,
    days: Sequence[date],
    began: datetime,
    failure: str | None,
    *,
    as_json: bool,
    reviews: bool = True,
) -> dict[str, Any]:
    """Print what is stored of these days and what became of proposals since it began; returns the former. ``reviews``
    says whether they are decided on this machine. Raises `typer.Exit` where something failed or is not well."""
    if failure:
        err.print("The run did not finish; this is what is stored:", style="red")
    with instance_of(settings) as instance, waiting("what it came to"):
        summary = summarise(settings, instance, days)
    refresh_kept(settings)
    print_outcome(settings, summary, began, failure, as_json=as_json, reviews=reviews)
    if failure:
        raise _failed(settings, failure)
    by_words = lexical_only(settings)
    if by_words:  # less than there could be, but nothing that failed
        err.print(by_words, style="yellow", soft_wrap=True)
    if problems := [problem for problem in summary["problems"] if problem != by_words]:
        raise fail(f"Not all is well: {' '.join(problems)}")
    return summary


def print_outcome(
    settings: Settings,
    summary: dict[str, Any],
    began: datetime,
    failure: str | None = None,
    *,
    as_json: bool,
    reviews: bool = True,
) -> None:
    """The summary, and what became of proposals since then."""
    settled = settled_since(settings, began)
    if as_json:
        print_json(summary | {"review": settled, "failure": failure})
    else:
        print_summary(settings, summary, reviews=reviews)
        print_settled(settled)


def _failed(settings: Settings, failure: str) -> typer.Exit:
    from memory_pipeline.defs.orchestration import STOPPED

    code = INTERRUPTED if failure == STOPPED else FAILED
    if is_used_up(settings.workspace):
        failure, code = disk_full(settings.workspace), FAILED
    return fail(f"The run did not finish: {failure}", code)


def runs_over(job: str, due: Sequence[Period]) -> Runs:
    """Runs of a distillation over these periods, and no others."""
    return Runs(job, [(group[0].key, group[-1].key) for group in consecutive(due)], len(due))


def _without(span: tuple[date, date], failed: set[date]) -> list[tuple[date, date]]:
    """The other days of a run in which a stage failed on some: their later stages were skipped."""
    if not failed:
        return []
    days = [day for day in lookback(span[1], (span[1] - span[0]).days + 1) if day not in failed]
    return date_ranges(days)
