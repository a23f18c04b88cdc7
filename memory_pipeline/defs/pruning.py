"""Pruning of Dagster's history: runs that ended 90 days ago and whose materializations were all replaced by later ones.

The run of the latest materialization of each partition is kept, and so is every check result, so that nothing becomes
missing in the UI.
"""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg

KEEP_RUNS_DAYS = 90
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


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
    kind, used = dg.DagsterEventType.ASSET_MATERIALIZATION, set[str]()
    for key in instance.all_asset_keys():
        latest = instance.event_log_storage.get_latest_storage_id_by_partition(key, kind)
        if latest:
            wanted = dg.AssetRecordsFilter(asset_key=key, storage_ids=list(latest.values()))
            used |= {record.run_id for record in instance.fetch_materializations(wanted, limit=len(latest)).records}
        if newest := instance.get_latest_materialization_event(key):
            used.add(newest.run_id)
    return used
