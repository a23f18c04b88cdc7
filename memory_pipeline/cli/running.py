"""The runs of `memory run` and `memory backfill`: execution of Dagster's jobs for days, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any

import typer

from memory_pipeline.cli.choosing import progress, waiting
from memory_pipeline.cli.console import FAILED, INTERRUPTED, counted, err, fail, print_json
from memory_pipeline.cli.dagster_state import dagster_state
from memory_pipeline.cli.summary import outcomes_since, print_outcomes, print_summary, summarise
from memory_pipeline.days import date_ranges, lookback
from memory_pipeline.defs.runs import Unfinished, instance_of, run_job
from memory_pipeline.defs.under_way import close_dead_runs
from memory_pipeline.distillation.periods import NAMES, Period, consecutive
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.embeddings.health import lexical_only, set_aside_files
from memory_pipeline.embeddings.opening import indexes_kept_open
from memory_pipeline.lake.store import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import disk_full, is_used_up
from memory_pipeline.workspace.workspace import Workspace

DAY_JOB = "day_job"


@dataclass
class Running:
    """Sequential runs of jobs on a workspace. After the user stopped one, the others do nothing."""

    settings: Settings
    catalogue: Catalogue
    instance: Any
    is_pressed: Callable[[], bool]
    """Whether Ctrl-C was pressed."""
    failures: list[str] = field(default_factory=list)
    unfinished: Unfinished = field(default_factory=Unfinished)
    """Unfinished work of the last call of `over`."""

    @property
    def is_stopped(self) -> bool:
        from memory_pipeline.defs.orchestration import STOPPED

        return STOPPED in self.failures

    @property
    def failure(self) -> str | None:
        """The failure to report: that the user stopped it, else the first one."""
        return next(iter(self.failures[-1:] if self.is_stopped else self.failures), None)

    def over(self, ranges: Sequence[tuple[date, date]]) -> None:
        """Update these days, without REVIEW.md and MEMORY.md, which `review` updates."""
        self.unfinished = Unfinished()
        if ranges:
            days = sum((last - first).days + 1 for first, last in ranges)
            self._execute(DAY_JOB, ranges, days * len(fields(Stages)))

    def review(self) -> None:
        """Update REVIEW.md and MEMORY.md, once after many days rather than in between, so that the best proposals of
        all days are offered."""
        if not self.is_stopped:
            with waiting("REVIEW.md and MEMORY.md"):
                self._run("review_job")

    def _run(self, job: str, span: tuple[date, date] | None = None) -> Unfinished:
        from memory_pipeline.defs.orchestration import STOPPED

        found = Unfinished()
        failure = run_job(self.settings, self.instance, job, span, found)
        if self.is_pressed():
            failure = STOPPED
        elif failure and found.failed:
            failure = f"{failure} (on {', '.join(f'{day}' for day in sorted(found.failed))})"
        self.failures += filter(None, [failure])
        return found

    def distil(self, days: Sequence[date] | None) -> None:
        """Distil the periods that these days (None: all) have made due; this needs no model and costs nothing."""
        if self.is_stopped:
            return
        from memory_pipeline.defs.jobs import DISTIL_JOBS

        if due := due_by_level(self.settings, days):
            counts = [counted(len(periods), NAMES[level]) for level, periods in due.items()]
            err.print(f"Summarizing {', '.join(counts)}.", style="dim")
        for level, periods in due.items():
            self._execute(DISTIL_JOBS[level], ranges_of(periods), len(periods))

    def _execute(self, job: str, ranges: Sequence[tuple[date, date]], steps: int) -> None:
        """Run the job over these ranges, and show its progress in so many steps. A failed range does not stop the
        others, but the user does."""
        if self.is_stopped:
            return
        from memory_pipeline.defs.orchestration import on_progress

        def show(at: str, done: int) -> None:
            bar.update(task, advance=done, description=at)
            if self.is_pressed():  # a library may have caught Ctrl-C and continued
                raise KeyboardInterrupt

        with progress() as bar:
            # one more than the steps: when all are done the clock would stop, but checks follow
            task = bar.add_task("starting Dagster", total=steps + 1)
            token = on_progress.set(show)
            left = list(ranges)
            try:
                while left and not self.is_stopped:
                    span = left.pop(0)
                    found = self._run(job, span)
                    self.unfinished.add(found)
                    if job == DAY_JOB:
                        left = [*_other_ranges(span, found.failed), *left]
                bar.update(task, completed=steps + 1, description=f"{job} is done")
            finally:
                on_progress.reset(token)


@contextmanager
def running(settings: Settings, catalogue: Catalogue, is_pressed: Callable[[], bool]) -> Iterator[Running]:
    """The runner of this workspace. Runs that were killed earlier are marked as failed first."""
    with instance_of(settings) as instance, indexes_kept_open():
        close_dead_runs(instance)
        yield Running(settings, catalogue, instance, is_pressed)


def due_by_level(settings: Settings, days: Sequence[date] | None) -> dict[int, list[Period]]:
    """The periods that these days (None: all) have made due, by level; levels without any are left out."""
    with waiting("what is to be distilled"):
        stages = stages_of(Workspace.open(settings, for_planning=True))
        due = {stage.level: due_periods(stage, days) for stage in stages}
    return {level: periods for level, periods in due.items() if periods}


def rerun_after_repair(workspace: Workspace, work: Callable[[], str | None]) -> str | None:
    """Do the work, which returns its failure, and repeat it if a damaged file was quarantined meanwhile: it read as
    missing, and its rebuilt rows change the results."""
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
    has_run: bool = True,
) -> None:
    """Print the stored results of these days and the decisions on proposals since the command began.

    ``reviews`` says whether proposals are decided on this machine. If no job ``has_run``, Dagster is not loaded, and
    the summary has no results of checks. Raises `typer.Exit` if something failed or is not well.
    """
    if failure:
        err.print("The run did not finish. Stored so far:", style="red")
    with instance_of(settings) if has_run else nullcontext() as instance, waiting("the summary"):
        summary = summarise(settings, instance, days)
    if has_run:  # Dagster is loaded, and the next `memory status` then need not load it
        dagster_state(settings, Catalogue(Lake.from_settings(settings), settings).days())
    refresh_kept(settings)
    settled = outcomes_since(settings, began)
    if as_json:
        print_json(summary | {"review": settled, "failure": failure})
    else:
        print_summary(settings, summary, reviews=reviews)
        print_outcomes(settled)
    if failure:
        raise _failed(settings, failure)
    by_words = lexical_only(settings)
    if by_words:  # incomplete, but not a failure
        err.print(by_words, style="yellow", soft_wrap=True)
    if problems := [problem for problem in summary["problems"] if problem != by_words]:
        raise fail(f"Problems: {' '.join(problems)}")


def _failed(settings: Settings, failure: str) -> typer.Exit:
    from memory_pipeline.defs.orchestration import STOPPED

    code = INTERRUPTED if failure == STOPPED else FAILED
    if is_used_up(settings.workspace):
        failure, code = disk_full(settings.workspace), FAILED
    return fail(f"The run did not finish: {failure}", code)


def ranges_of(due: Sequence[Period]) -> list[tuple[date, date]]:
    """The first and last partition of each run of a distillation over exactly these periods."""
    return [(group[0].key, group[-1].key) for group in consecutive(due)]


def _other_ranges(span: tuple[date, date], failed: set[date]) -> list[tuple[date, date]]:
    """The ranges of the other days of a run with failed days, as their later stages were skipped."""
    if not failed:
        return []
    days = [day for day in lookback(span[1], (span[1] - span[0]).days + 1) if day not in failed]
    return date_ranges(days)
