"""`memory backfill --workers N`: what needs no other day is run over several parts of the range at once.

::

    own_day_job     part 1, part 2, part 3 …   as many at a time as there are workers
    look_back_job   month by month, the oldest day first: each day looks back on those before it
    summaries_job   part 1, part 2, part 3 …   at once again: what it indexes is of its own day

A day that an `own_day_job` did not finish is finished by the `day_job` that goes over its month in place of the
`look_back_job`: so a worker that is killed costs time, and no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime

from memory_pipeline.cli.choosing import progress, waiting
from memory_pipeline.cli.console import err
from memory_pipeline.cli.launched import Launched
from memory_pipeline.cli.running import DAY_JOB, LOOK_BACK_JOB, OWN_DAY_JOB, SUMMARIES_JOB, Running, steps_of
from memory_pipeline.cli.workers import Outcome, Run, Workers
from memory_pipeline.days import lookback, stretches
from memory_pipeline.planning import Stages
from memory_pipeline.stages import is_current
from memory_pipeline.workspace.daily_log.markers import write_markers

RUNS_PER_WORKER = 2
"""Days differ, and the last run of a round should not be long while the other workers have none; but each run costs a
second of the processor."""
MAX_DAYS_PER_RUN = 10
"""So many are left to the others at most where a worker is killed."""


@contextmanager
def workers_for(runs: Running, number: int) -> Iterator[Workers | Launched | None]:
    """Those of the run launcher that the workspace's dagster.yaml names, else processes of our own; None for one.

    Raises `TryAgainLaterError` where that launcher cannot be used.
    """
    from memory_pipeline.defs.launching import launches_elsewhere

    if number == 1:
        yield None
    elif launches_elsewhere(runs.instance):
        yield Launched(runs.settings, runs.instance, number)
    else:
        with Workers(number) as workers:
            yield workers


def parts_of(days: Iterable[date], workers: int) -> list[tuple[date, date]]:
    """The days, and no others, as ranges, each a run, so that each worker has several. What has days in between that
    one process would not have gone through leaves empty files there, which fingerprints tell from none."""
    wanted = set(days)
    per_run = max(1, min(MAX_DAYS_PER_RUN, -(-len(wanted) // (workers * RUNS_PER_WORKER))))
    parts = []
    for span in stretches(wanted):
        whole = days_of([span])
        parts += [whole[start : start + per_run] for start in range(0, len(whole), per_run)]
    return [(part[0], part[-1]) for part in parts]


def days_of(ranges: Iterable[tuple[date, date]]) -> list[date]:
    """All days of the ranges, also those without sessions."""
    return sorted({day for first, last in ranges for day in lookback(last, (last - first).days + 1)})


def read_at_once(runs: Running, months: Iterable[Sequence[date]], workers: Workers | Launched) -> None:
    """Bring up to date what the days that runs over these months go through need no other day for."""
    write_markers(runs.settings)  # of all logs, which each run would see to otherwise
    with waiting("what is out of date"):
        stages = _stages(runs)
        left = [day for days in months for day in days_of(stages.runs_for(days)) if not stages.is_read(day)]
    _at_once(runs, OWN_DAY_JOB, left, workers)


def index_summaries_at_once(runs: Running, ranges: Iterable[tuple[date, date]], workers: Workers | Launched) -> None:
    """Index what came of looking back in these ranges; what a worker leaves over is done by this process."""
    days = days_of(ranges)
    for is_last in (False, True):
        with waiting("what is out of date"):
            stages = _stages(runs)
            left = [day for day in days if not is_current(stages.summary_embeddings, stages.sessions.lake, day)]
        if is_last:
            runs.over(stretches(left), SUMMARIES_JOB)
        else:
            _at_once(runs, SUMMARIES_JOB, left, workers)


def job_for(runs: Running, ranges: Iterable[tuple[date, date]]) -> str:
    """The job that these days still need: of those that are read, only what looks back."""
    with waiting("what is out of date"):
        stages = _stages(runs)
        return LOOK_BACK_JOB if all(map(stages.is_read, days_of(ranges))) else DAY_JOB


def _stages(runs: Running) -> Stages:
    return Stages.from_settings(runs.settings, runs.catalogue, datetime.now(UTC), for_planning=True)


def _at_once(runs: Running, job: str, days: Sequence[date], workers: Workers | Launched) -> None:
    parts = parts_of(days, workers.number)
    if not parts or runs.is_stopped:
        return
    err.print(f"{len(set(days))} days in {len(parts)} runs of {job}, {workers.number} at a time.", style="dim")
    with progress() as bar:
        task = bar.add_task("starting workers", total=steps_of(job, parts))

        def show(at: str, done: int) -> None:
            bar.update(task, advance=done, description=at)

        todo = [Run(job, part) for part in parts]
        done = workers.run(todo, show, runs.is_pressed, lambda outcome: bool(outcome.unfinished.out_of_budget))
        if runs.is_pressed():
            runs.stop()
        else:
            bar.update(task, description=f"{job} is done")
    for outcome in done:
        if outcome.failure and not runs.is_stopped:
            _tell(outcome)


def _tell(outcome: Outcome) -> None:
    first, last = outcome.run.days
    when = f"{first}" if first == last else f"{first} to {last}"
    err.print(
        f"A run over {when} did not finish: {outcome.failure} What is left of these days is done after the others.",
        style="yellow",
        soft_wrap=True,
    )
