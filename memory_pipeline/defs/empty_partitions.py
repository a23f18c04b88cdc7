"""Partitions of days, weeks and months in which nobody said anything, reported to Dagster as materialized with no rows
and as passed by every check.

Otherwise its catalogue and its checks count each of them as missing, and what is really to be done cannot be told from
them. Nothing is stored in the lake, which alone decides what is due: a day that gets a session later is run as any
other.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.events import DagsterEvent, DagsterEventType, StepMaterializationData
from dagster._core.events.log import EventLogEntry
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.event_log import SqliteEventLogStorage

from memory_pipeline.days import lookback, today
from memory_pipeline.defs.check_results import NOTHING_SAID, evaluation_of, latest_materializations, store_evaluations
from memory_pipeline.distillation.periods import DAY, LEVELS, TABLE_OF, Period, periods_of
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.stage import EmbeddingsStage, SummaryEmbeddingsStage
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.daily_log.notes import days_with_notes
from memory_pipeline.workspace.workspace import Workspace

DAILY_STAGES = (
    SessionsStage,
    ObservationsStage,
    EmbeddingsStage,
    ReflectionsStage,
    FrictionStage,
    SummaryEmbeddingsStage,
    MessageEmbeddingsStage,
)
DAILY = (*(table for stage in DAILY_STAGES for table in stage.tables), "proposals", TABLE_OF[DAY])


def report_empty_partitions(
    instance: dg.DagsterInstance, workspace: Workspace, catalogue: Catalogue, graph: AssetGraph | None
) -> int:
    """Report what there is a partition of, is empty and was not reported yet; returns how many partitions that were.

    A year of days is about 3,500 of them: one transaction of 1 second, where one by one took minutes. After that it is
    one query per asset and check. The checks are those of ``graph``, where it is known; on Postgres, where each result
    is a transaction of its own and a year of them takes minutes, they stay missing.
    """
    periods = empty_periods(workspace, catalogue)
    events: list[EventLogEntry] = []
    empty: dict[str, list[str]] = {}
    for table in (*DAILY, *(TABLE_OF[level] for level in LEVELS if level != DAY)):
        known = instance.get_materialized_partitions(dg.AssetKey(table))
        level = next((level for level in LEVELS if TABLE_OF[level] == table), DAY)
        found = periods[level]
        if table == TABLE_OF[DAY]:  # a younger day is no partition of it
            old_enough = today(workspace.settings.zone) - timedelta(days=workspace.settings.distil_after_days)
            found = [period for period in found if period.last <= old_enough]
        events += [_materialization(table, f"{p.key}") for p in found if f"{p.key}" not in known]
        empty[table] = [f"{p.key}" for p in found]
    _store(instance, events)
    if not graph or not isinstance(instance.event_log_storage, SqliteEventLogStorage):
        return len(events)
    for check in sorted(graph.asset_check_keys, key=dg.AssetCheckKey.to_user_string):
        if keys := empty.get(check.asset_key.to_user_string()):
            _pass(instance, check, keys)
    return len(events)


def graph_of(context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext) -> AssetGraph | None:
    """Of the repository that asks; None where a tick is tried without one."""
    try:
        return context.repository_def.asset_graph if context.repository_def else None
    except dg.DagsterInvariantViolationError:
        return None


def _pass(instance: dg.DagsterInstance, check: dg.AssetCheckKey, partitions: Sequence[str]) -> None:
    """Store that the check passed these partitions, of those that it has not judged."""
    stored = instance.event_log_storage.get_asset_check_partition_info([check], partition_keys=partitions)
    judged = {record.partition_key for record in stored}
    left = [key for key in partitions if key not in judged]
    asset = check.asset_key.to_user_string()
    targets = latest_materializations(instance, asset, left)
    verdict = Verdict(True, {NOTHING_SAID: "yes"}, [], "nobody said anything")
    evaluations = [
        evaluation_of(asset, check.name, verdict, dg.AssetCheckSeverity.WARN, key, targets.get(key)) for key in left
    ]
    store_evaluations(instance, None, evaluations)


def empty_periods(workspace: Workspace, catalogue: Catalogue) -> dict[int, list[Period]]:
    """By level: those that Dagster counts by now, with neither a session nor a note nor anything stored on any of
    their days. A week that ended yesterday is one: Dagster counts it from then on, though it is not old enough to be
    distilled."""
    settings = workspace.settings
    spoken = {*catalogue.days(), *days_with_notes(workspace), *workspace.lake.days("sessions")}
    now = today(settings.zone)
    days = lookback(now, (now - settings.start_date).days + 1)
    # today has a partition as soon as it begins; a week or a month has one when it has ended
    newest = {level: now if level == DAY else now - timedelta(days=1) for level in LEVELS}
    return {
        level: [period for period in periods_of(level, days, newest[level]) if spoken.isdisjoint(period.days)]
        for level in LEVELS
    }


def _materialization(asset: str, partition: str) -> EventLogEntry:
    """What `DagsterInstance.report_runless_asset_event` stores."""
    made = dg.AssetMaterialization(asset, partition=partition, metadata={"dagster/row_count": 0})
    kind = DagsterEventType.ASSET_MATERIALIZATION.value
    event = DagsterEvent(kind, RUNLESS_JOB_NAME, event_specific_data=StepMaterializationData(made))
    return EventLogEntry(  # type: ignore[no-untyped-call]
        user_message="",
        level="INFO",
        job_name=RUNLESS_JOB_NAME,
        run_id=RUNLESS_RUN_ID,
        error_info=None,
        timestamp=time.time(),
        dagster_event=event,
    )


def _store(instance: dg.DagsterInstance, events: Sequence[EventLogEntry]) -> None:
    """As `store_event` does. On SQLite that opens three connections for each event and its batch is a loop over it, so
    there the index, which all questions about assets are asked of, gets them in one transaction."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        by_asset = defaultdict[dg.AssetKey | None, list[EventLogEntry]](list)
        for event in events:
            by_asset[event.get_dagster_event().asset_key].append(event)
        for found in by_asset.values():  # of a batch Postgres notes the asset of the last event alone
            storage.store_event_batch(found)
        return
    newest: dict[dg.AssetKey | None, tuple[EventLogEntry, int]] = {}
    with storage.index_connection() as index:
        for event in events:
            stored = index.execute(storage.prepare_insert_event(event)).inserted_primary_key
            assert stored is not None  # the table counts its rows itself
            newest[event.get_dagster_event().asset_key] = event, stored[0]
    for event, number in newest.values():
        storage.store_asset_event(event, number)
