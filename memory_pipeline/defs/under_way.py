"""What works on days right now, and runs that died while they did. Dagster is imported where it is asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

PROCESS_TAG = ".dagster/memory_process"
"""The process of a run of the command line. Not shown in the UI, which leaves out what begins so."""
_BEFORE = "memory/process"


def runs_over_days(instance: dg.DagsterInstance) -> list[str]:
    """The runs and backfills over days that wait or work, each as a person would call it."""
    import dagster as dg
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
    from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
    from dagster._core.storage.tags import ASSET_PARTITION_RANGE_START_TAG, BACKFILL_ID_TAG, PARTITION_NAME_TAG

    from memory_pipeline.defs.partitions import DAYS_TAG

    close_dead_runs(instance)
    found = [
        f"backfill {backfill.backfill_id}"
        for backfill in instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED]))
    ]
    for run in instance.get_runs(dg.RunsFilter(statuses=[*NOT_FINISHED_STATUSES])):
        days = (
            run.tags.get(DAYS_TAG) or run.tags.get(PARTITION_NAME_TAG) or run.tags.get(ASSET_PARTITION_RANGE_START_TAG)
        )
        if days and BACKFILL_ID_TAG not in run.tags:
            found.append(f"{run.job_name} of {days}")
    return found


def close_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of the command line whose process is gone as failed: nobody else can tell that they were killed."""
    for run in _dead(instance):
        instance.report_run_failed(run, "The process of this run ended before the run did.")


def dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Jobs of the command line that are recorded as running and whose process is gone."""
    return [run.job_name for run in _dead(instance)]


def _dead(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    import dagster as dg

    status = dg.DagsterRunStatus
    unfinished = [status.NOT_STARTED, status.STARTING, status.STARTED, status.CANCELING]
    found = []
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        process = run.tags.get(PROCESS_TAG) or run.tags.get(_BEFORE)
        is_ours = not run.parent_run_id  # one that the UI executed again has the tags of the first
        if process and is_ours and not _is_alive(int(process)):
            found.append(run)
    return found


def unfinished_runs(instance: dg.DagsterInstance) -> list[str]:
    """Jobs that run now or are about to, also those that the UI started."""
    import dagster as dg

    status = dg.DagsterRunStatus
    unfinished = [status.STARTING, status.STARTED, status.CANCELING]
    return [run.job_name for run in instance.get_runs(dg.RunsFilter(statuses=unfinished))]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
