"""The jobs, each with the assets that it updates or with its own ops."""

import shutil
from collections.abc import Callable, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from memory_pipeline.days import today
from memory_pipeline.defs.check_results import latest_materializations
from memory_pipeline.defs.placement import Placement
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, TABLE_OF, WEEK
from memory_pipeline.operations.retention import retire
from memory_pipeline.proposals.todoist.client import Todoist, TodoistBusyError, TodoistRefusedError
from memory_pipeline.proposals.todoist.review import sync
from memory_pipeline.reflections.stage import ReflectionsStage, why_not_reflected
from memory_pipeline.workspace.daily_log.archive import archive_logs
from memory_pipeline.workspace.workspace import Workspace

DAY_JOB, REFLECT_JOB, POOL_REFLECT_JOB, DISTIL_JOB = "day_job", "reflect_job", "pool_reflect_job", "distil_job"
DISTIL_WEEKS_JOB, DISTIL_MONTHS_JOB = "distil_weeks_job", "distil_months_job"
FRICTION_JOB, REVIEW_JOB, TODOIST_JOB, ARCHIVE_JOB = "friction_job", "review_job", "todoist_job", "archive_job"
QUALITY_JOB, PRUNE_JOB, EFFECT_JOB = "quality_job", "prune_job", "effect_job"
DISTIL_JOBS = {DAY: DISTIL_JOB, WEEK: DISTIL_WEEKS_JOB, MONTH: DISTIL_MONTHS_JOB}
"""One job per level: Dagster does not allow assets with different partitions in a job."""
SHOWN = 10
"""Maximum days that a log lists individually."""
TODOIST_IS_OFF = "Todoist is off; MEMORY_TODOIST=true and TODOIST_API_TOKEN switch it on."
ARCHIVING_IS_OFF = "Archiving is off; MEMORY_ARCHIVE_AFTER_DAYS=30 archives logs that are 30 days old."
KEEP_RUNS_DAYS = 90
"""Days after which ended runs are deleted, if all of their materializations were replaced by later ones. Results of
checks are kept, so that nothing becomes missing in the UI."""
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def _asset_jobs(tables: Set[str]) -> dict[str, tuple[Set[str], str]]:
    """The assets and the description of each job over assets, of all assets."""
    # they look back over weeks, and a failing one must not stop a day
    own_job = {"memory_effect", "pool_reflections", "quality_report", *(TABLE_OF[level] for level in LEVELS)}
    of_a_day = tables - own_job
    proposed = of_a_day - {"friction_clusters", "summary_embeddings", "message_embeddings"}
    return {
        DAY_JOB: (of_a_day, "Process a day from its session files to MEMORY.md and friction."),
        REFLECT_JOB: (proposed, "Process a day from its session files to its proposals, and write these to REVIEW.md."),
        POOL_REFLECT_JOB: ({"pool_reflections"}, "Condense the reflections of all days but the last three for good."),
        DISTIL_JOB: ({TABLE_OF[DAY]}, "Distil days."),
        DISTIL_WEEKS_JOB: ({TABLE_OF[WEEK]}, "Distil weeks, after updating their days."),
        DISTIL_MONTHS_JOB: ({TABLE_OF[MONTH]}, "Distil months, after updating their weeks and days."),
        FRICTION_JOB: ({"friction_clusters"}, "Find friction in the days up to the partition."),
        REVIEW_JOB: ({"memory_file"}, "Apply the decisions in REVIEW.md to MEMORY.md."),
        EFFECT_JOB: ({"memory_effect"}, "Count what users repeated although the memory held it."),
        QUALITY_JOB: ({"quality_report"}, "Write the quality report: results of checks and quality over time."),
    }


def sync_todoist(context: dg.OpExecutionContext, opened: Workspace) -> None:
    """Read decisions from Todoist and write proposals to it."""
    if not opened.settings.todoist.enabled:
        raise dg.Failure(TODOIST_IS_OFF, allow_retries=False)
    try:
        done = sync(opened, Todoist(opened.settings.todoist.api_token), datetime.now(UTC))
    except (TodoistBusyError, TodoistRefusedError) as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    context.add_output_metadata({name: len(ids) for name, ids in vars(done).items()})
    context.log.info("; ".join(f"{name}: {', '.join(ids) or 'none'}" for name, ids in vars(done).items()))


def archive_daily_logs(context: dg.OpExecutionContext, opened: Workspace) -> None:
    """Move old daily logs to memory/archive/ once they are reflected on."""
    settings = opened.settings
    if not settings.archive_after_days:
        raise dg.Failure(ARCHIVING_IS_OFF, allow_retries=False)
    stage = ReflectionsStage.from_workspace(opened)
    done = archive_logs(settings, today(settings.zone), lambda day: why_not_reflected(stage, day))
    context.add_output_metadata({"moved": len(done.moved), "waiting": len(done.waiting), "stuck": len(done.stuck)})
    context.log.info(f"{len(done.moved)} logs were archived: {', '.join(map(str, done.moved)) or 'none'}")
    for day, reason in sorted((done.waiting | done.stuck).items()):
        context.log.warning(f"The log of {day} was not moved: {reason}")
    if done.stuck:
        first, reason = next(iter(done.stuck.items()))
        raise dg.Failure(f"{len(done.stuck)} logs could not be moved, first {first}: {reason}", allow_retries=False)


def prune_runs(context: dg.OpExecutionContext, opened: Workspace) -> None:
    """Delete old runs from Dagster's record if all of their results were replaced."""
    runs = prune(context.instance, opened.settings.dagster_home, datetime.now(UTC))
    context.add_output_metadata({"runs": runs})
    context.log.info(f"{runs} runs were deleted.")


def prune(instance: dg.DagsterInstance, home: Path, now: datetime) -> int:
    """Delete the runs that are no longer needed from the instance and from DAGSTER_HOME; returns their number."""
    filters = dg.RunsFilter(statuses=ENDED, updated_before=now - timedelta(days=KEEP_RUNS_DAYS))
    used = _runs_in_use(instance)
    gone = [run.run_id for run in instance.get_runs(filters) if run.run_id not in used]
    for run in gone:
        instance.delete_run(run)
        # Dagster leaves the empty SQLite database of a run
        for file in (home / "history/runs").glob(f"{run}.db*"):
            file.unlink(missing_ok=True)
        shutil.rmtree(home / "storage" / run, ignore_errors=True)
    return len(gone)


def _runs_in_use(instance: dg.DagsterInstance) -> set[str]:
    """The runs with the latest materialization of a partition, or of an asset without partitions."""
    used = set[str]()
    for key in instance.all_asset_keys():
        used |= {latest.run_id for latest in latest_materializations(instance, key).values()}
        if newest := instance.get_latest_materialization_event(key):
            used.add(newest.run_id)
    return used


def retire_rows(context: dg.OpExecutionContext, opened: Workspace) -> None:
    """Delete rows that are older than `[retention]` in settings.toml allows."""
    settings = opened.settings
    done = retire(settings, today(settings.zone))
    context.add_output_metadata({f"days of {table}": len(retired.days) for table, retired in done.items()})
    for table, retired in done.items():
        if retired.days:
            context.log.info(f"{table}: {len(retired.days)} days are no longer kept: {_list_days(retired.days)}.")
        if retired.waiting:
            context.log.warning(
                f"{table}: not up to date, so these days are kept until they are: {_list_days(retired.waiting)}."
            )


def _list_days(days: Sequence[date]) -> str:
    return ", ".join(map(str, days)) if len(days) <= SHOWN else f"from {days[0]} to {days[-1]}"


def jobs(tables: Set[str], placement: Placement) -> list[Any]:
    """All jobs. The runs of another project are not ours to delete, so there `prune_job` deletes rows only."""
    chosen = [
        dg.define_asset_job(
            placement.name(name),
            dg.AssetSelection.assets(*sorted(map(placement.key, names))),
            description=description,
            executor_def=dg.in_process_executor,
        )
        for name, (names, description) in _asset_jobs(tables).items()
    ]
    pruning = _job_of(placement, PRUNE_JOB, retire_rows)
    if not placement.prefix:
        description = (
            "Delete old, replaced runs from Dagster's record, and rows that are older than `[retention]` in "
            "settings.toml allows; rows behind your decisions are kept."
        )
        pruning = _job_of(placement, PRUNE_JOB, prune_runs, retire_rows, description=description)
    return [
        *chosen,
        _job_of(placement, TODOIST_JOB, sync_todoist),
        _job_of(placement, ARCHIVE_JOB, archive_daily_logs),
        pruning,
    ]


Work = Callable[[dg.OpExecutionContext, Workspace], None]


def _job_of(placement: Placement, name: str, *works: Work, description: str = "") -> dg.JobDefinition:
    """A job with an op for each of these functions, which do not depend on each other."""
    ops = [_op_of(placement, work) for work in works]
    return dg.GraphDefinition(name=placement.name(name), node_defs=ops).to_job(
        description=description or works[0].__doc__, executor_def=dg.in_process_executor
    )


def _op_of(placement: Placement, work: Work) -> dg.OpDefinition:
    @dg.op(name=placement.name(work.__name__), description=work.__doc__, required_resource_keys=placement.needs)
    def op(context: dg.OpExecutionContext) -> None:
        work(context, placement.open(context))

    return op
