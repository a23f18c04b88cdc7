"""Unfinished runs and backfills, and runs of the command line whose process is gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

    from memory_pipeline.defs.placement import Placement

PROCESS_TAG = ".dagster/memory_process"
"""The tag with the process of a run of the command line; the UI hides tags that begin with `.dagster/`."""
BACKFILLS_SEEN = 20
"""Number of newest backfills that are searched for unfinished ones."""


def work_under_way(instance: dg.DagsterInstance, placement: Placement) -> list[str]:
    """The queued and running backfills and runs of this pipeline, by id and by job."""
    close_dead_runs(instance)
    backfills = instance.get_backfills(limit=BACKFILLS_SEEN)
    asked = [
        f"backfill {backfill.backfill_id}"
        for backfill in backfills
        if backfill.status.value == "REQUESTED" and placement.includes(backfill.asset_selection or ())
    ]
    return asked + [run.job_name for run in unfinished_runs(instance) if placement.owns(run)]


def unfinished_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """The queued and running runs, including those started in the UI."""
    import dagster as dg

    ended = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    statuses = [status for status in dg.DagsterRunStatus if status not in ended]
    return list(instance.get_runs(dg.RunsFilter(statuses=statuses)))


def close_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs of the command line whose process is gone as failed; Dagster's run monitoring watches only runs that
    its daemon launched."""
    for run in dead_runs(instance):
        instance.report_run_failed(run, "The process of this run ended before the run did.")


def dead_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """The runs of the command line that are recorded as running but whose process is gone."""
    # a run that was re-executed in the UI has the tags of the first one, and a parent
    ours = [run for run in unfinished_runs(instance) if PROCESS_TAG in run.tags and not run.parent_run_id]
    return [run for run in ours if not _is_alive(int(run.tags[PROCESS_TAG]))]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
