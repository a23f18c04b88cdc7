"""What Dagster's record of old runs need not keep: so that years of runs stay small and the UI quick.

Of each partition of each asset the last materialization stays, of each check and day the last result, and of these
their runs; so nothing turns grey or missing. What goes, once it is 90 days old: runs whose results were
all replaced by later ones, the log of every step of every run, and what steps printed.

In SQLite the events of a run lie in a file of its own beside the index of all; in Postgres they are rows of one table,
whose room is used again after its own vacuum.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import sqlalchemy as db
from dagster._core.storage.event_log import SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)

from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import size_on_disk

KEEP_RUNS_DAYS = 90
PAGE = 500
"""Runs that are looked at together; SQLite takes no more than some thousands of names in a statement."""
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_BUSY_SECONDS = 5


@dataclass(frozen=True)
class Pruned:
    """What went: runs, logs of runs that stay, and bytes."""

    runs: int = 0
    logs: int = 0
    bytes: int = 0


def prune(instance: dg.DagsterInstance, settings: Settings, now: datetime) -> Pruned:
    """Remove what is older than `KEEP_RUNS_DAYS`; nothing where the record is in no SQL database.

    Bytes are those of files: what becomes free in Postgres is the server's to give back.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return Pruned()
    shards = storage if isinstance(storage, SqliteEventLogStorage) else None
    before = size_on_disk(settings.dagster_home)
    oldest = now - timedelta(days=KEEP_RUNS_DAYS)
    with storage.index_connection() as index:
        with_logs = set() if shards else _with_logs(index, oldest)
        _forget_replaced(index, oldest)
        used = {run for (run,) in index.execute(db.select(SqlEventLogStorageTable.c.run_id).distinct())}
        used |= {run for (run,) in index.execute(db.select(AssetCheckExecutionsTable.c.run_id).distinct())}
    runs = logs = 0
    for run in list(_ended_before(instance, oldest)):
        has_log = _without_events(shards, run) if shards else run in with_logs
        logs += _without_prints(settings, run) | has_log
        if run not in used:
            instance.delete_run(run)
            if shards:
                Path(shards.path_for_shard(run)).unlink(missing_ok=True)
            runs += 1
    if shards:
        _shrink(Path(shards.path_for_shard("index")))
    return Pruned(runs, logs, max(0, before - size_on_disk(settings.dagster_home)))


def _forget_replaced(index: db.engine.Connection, oldest: datetime) -> None:
    """Events of the index that a later one of the same partition has replaced, and those that tell of a run alone."""
    events, checks, tags = SqlEventLogStorageTable.c, AssetCheckExecutionsTable.c, AssetEventTagsTable
    about_assets = ("ASSET_MATERIALIZATION", "ASSET_MATERIALIZATION_PLANNED")
    newest = db.select(db.func.max(events.id)).where(events.dagster_event_type.in_(about_assets))
    newest = newest.group_by(events.asset_key, events.partition, events.dagster_event_type)
    newest_checks = db.select(db.func.max(checks.id)).group_by(checks.asset_key, checks.check_name, checks.partition)
    old = events.timestamp < oldest.replace(tzinfo=None)
    replaced = db.select(checks.evaluation_event_storage_id).where(
        checks.create_timestamp < oldest.replace(tzinfo=None), checks.id.not_in(newest_checks)
    )
    gone = db.or_(
        db.and_(old, events.dagster_event_type.in_(about_assets), events.id.not_in(newest)),
        db.and_(old, events.id.in_(replaced)),
        db.and_(old, events.asset_key.is_(None)),
        db.and_(old, events.dagster_event_type == "ASSET_CHECK_EVALUATION_PLANNED"),
    )
    index.execute(tags.delete().where(tags.c.event_id.in_(db.select(events.id).where(gone))))
    index.execute(SqlEventLogStorageTable.delete().where(gone))
    index.execute(
        AssetCheckExecutionsTable.delete().where(
            checks.create_timestamp < oldest.replace(tzinfo=None), checks.id.not_in(newest_checks)
        )
    )


def _with_logs(index: db.engine.Connection, oldest: datetime) -> set[str]:
    """Runs that have older events about no asset, where all events lie in one table."""
    events = SqlEventLogStorageTable.c
    found = db.select(events.run_id).where(events.asset_key.is_(None), events.timestamp < oldest.replace(tzinfo=None))
    return {run for (run,) in index.execute(found.distinct())}


def _ended_before(instance: dg.DagsterInstance, oldest: datetime) -> Iterator[str]:
    filters, cursor = dg.RunsFilter(statuses=ENDED, updated_before=oldest), None
    while records := instance.get_run_records(filters, limit=PAGE, cursor=cursor):
        yield from (record.dagster_run.run_id for record in records)
        cursor = records[-1].dagster_run.run_id


def _without_prints(settings: Settings, run: str) -> bool:
    """Remove what the run's steps printed; whether there was any."""
    printed = settings.dagster_home / "storage" / run
    found = printed.exists()
    shutil.rmtree(printed, ignore_errors=True)
    return found


def _without_events(storage: SqliteEventLogStorage, run: str) -> bool:
    """Empty the run's own database; whether there was anything. The file stays: a UI that has it open expects it."""
    file = Path(storage.path_for_shard(run))
    if not file.exists():
        return False
    with storage.run_connection(run) as events:
        found = events.execute(SqlEventLogStorageTable.delete()).rowcount > 0
    if found:
        _shrink(file)
    return bool(found)


def _shrink(database: Path) -> None:
    """Give freed pages back to the disk; not where a process is writing, or the disk has no room for a copy."""
    with suppress(sqlite3.OperationalError):
        connection = sqlite3.connect(database, timeout=_BUSY_SECONDS)
        try:
            connection.execute("VACUUM")
        finally:
            connection.close()
