"""Results of checks by day, as Dagster's UI reads them: what was judged of each day, and of which materialization.

Dagster 1.13 stores one result without a partition when a run has a range, even of one day, and the days then read as
skipped; of a day that was reported without its materialization it says that the check is missing.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)
from dagster._core.events import DagsterEvent
from dagster._core.events.log import EventLogEntry
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable

from memory_pipeline.defs.orchestration import DayOfKey, days_of, on_progress
from memory_pipeline.defs.partitions import daily_partitions
from memory_pipeline.defs.resources import WorkspaceResource
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.escaping import escaped
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

Judged = Any
"""An iterator of what a check yields; the types of Dagster 1.13 know only of a result that is returned."""
OTHERS_FAILED = "other_days_that_failed"
SHOWN = 10
"""Offenders that stand in the metadata; one that matters is among the first of each day."""


def check_by_day(
    asset: str,
    name: str,
    judge: Callable[[Workspace, date], Verdict],
    settings: Settings,
    *,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    blocking: bool = False,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    day_of_key: DayOfKey = date.fromisoformat,
) -> dg.AssetChecksDefinition:
    """A check that judges each day of a run, and all stored ones in a run without days; the judge's docstring is its
    description in the UI. One with other partitions than days judges the last day of each."""
    partitions = partitions_def or daily_partitions(settings)

    @dg.asset_check(
        asset=asset,
        name=name,
        description=description_of(judge),
        partitions_def=partitions,
        blocking=blocking,
    )
    def check(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> Judged:
        opened = workspace.open()
        days = days_to_judge(context, opened.lake, asset, partitions, day_of_key)
        yield from report_by_day(context, asset, name, lambda day: judge(opened, day), severity, days)

    return check


def description_of(judge: Callable[..., Any]) -> str:
    """Its docstring as Markdown: a paragraph is one line, since indented ones would be shown as code."""
    paragraphs = (judge.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def days_to_judge(
    context: dg.AssetCheckExecutionContext,
    lake: Lake,
    asset: str,
    partitions: dg.PartitionsDefinition[Any],
    day_of_key: DayOfKey = date.fromisoformat,
) -> dict[date, str]:
    """The days of the run with their partitions, oldest first. A run without any ("Execute all" in the UI) judges
    whatever is stored of the asset."""
    if context.has_partition_key or context.has_partition_key_range:
        return days_of(context, day_of_key)
    stored = set(lake.days(asset))
    days = sorted((day_of_key(key), key) for key in partitions.get_partition_keys())
    return {day: key for day, key in days if day in stored}


def report_by_day(
    context: dg.AssetCheckExecutionContext,
    asset: str,
    check: str,
    judge: Callable[[date], Verdict],
    severity: dg.AssetCheckSeverity,
    days: Mapping[date, str],
) -> Iterator[dg.AssetCheckResult | dg.Output[None] | dg.AssetCheckEvaluation]:
    """Judge these days, store a result of each, and yield what they come to."""
    if report := on_progress.get():
        report(f"checks of {asset}", 0)
    verdicts = {day: judge(day) for day in days}
    # the list of checks counts all days, but shows the result of this run beside it
    failed = failed_before(context.instance, asset, check, days.values())
    if context.has_partition_key:
        (total,) = verdicts.values()
        if failed:
            total = replace(total, numbers=total.numbers | {OTHERS_FAILED: ", ".join(failed[-SHOWN:])})
    else:
        targets = latest_materializations(context.instance, asset, list(days.values()))
        evaluations = [
            evaluation_of(asset, check, verdict, severity, days[day], targets.get(days[day]))
            for day, verdict in verdicts.items()
        ]
        store_evaluations(context.instance, context.run, evaluations)
        total = over_days(verdicts)
        if failed:
            total = replace(total, also=f" {_failed_as_well(failed)}")
    if context.has_partition_key or context.has_partition_key_range:
        yield dg.AssetCheckResult(
            passed=total.passed, severity=severity, description=total.sentence, metadata=verdict_metadata(total)
        )
        return
    # of an AssetCheckResult without a partition Dagster 1.13 asks for the one of its asset, and fails
    yield dg.Output(None)
    yield evaluation_of(asset, check, total, severity)


def evaluation_of(
    asset: str,
    check: str,
    verdict: Verdict,
    severity: dg.AssetCheckSeverity,
    partition: str | None = None,
    target: Target | None = None,
) -> dg.AssetCheckEvaluation:
    """As Dagster stores it; of a partition it counts only with the materialization that was judged."""
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(asset),
        check_name=check,
        passed=verdict.passed,
        partition=partition,
        description=verdict.sentence,
        metadata=verdict_metadata(verdict),
        severity=severity,
        target_materialization_data=target,
    )


def over_days(verdicts: Mapping[date, Verdict]) -> Verdict:
    """What the verdicts of several days come to: the days that failed are its offenders, each with its reason."""
    failed = {day: verdict for day, verdict in verdicts.items() if not verdict.passed}
    offenders = [f"{day}: {verdict.sentence}" for day, verdict in failed.items()]
    # as texts: numbers would be plotted, one point for each run, beside those of each day
    numbers: dict[str, float | int | str] = {"days": f"{len(verdicts)}", "days_failed": f"{len(failed)}"}
    few = f"{len(verdicts)} days" if len(verdicts) != 1 else "1 day"
    return Verdict(not failed, numbers, offenders, f"{few}, {len(failed)} of them failed" if failed else few)


def failed_before(instance: dg.DagsterInstance, asset: str, check: str, judged: Iterable[str]) -> list[str]:
    """The partitions, beside those that are judged now, of which the latest result of the check is a failure."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    known = instance.event_log_storage.get_asset_check_partition_info([key])
    failed = {i.partition_key for i in known if i.latest_execution_status is AssetCheckExecutionRecordStatus.FAILED}
    return sorted(key for key in failed.difference(judged) if key)


def _failed_as_well(partitions: Sequence[str]) -> str:
    newest, many = ", ".join(partitions[-SHOWN:]), len(partitions)
    if many == 1:
        return f"1 other day failed when it was judged last: {newest}."
    named = newest if many <= SHOWN else f"{newest} and {many - SHOWN} before"
    return f"{many} other days failed when they were judged last: {named}."


def verdict_metadata(verdict: Verdict, offenders_as: str = "first_offenders") -> dict[str, Any]:
    """What a check found, for the UI."""
    offenders = "\n".join(f"- {escaped(line)}" for line in verdict.offenders[:SHOWN])
    return verdict.numbers | ({offenders_as: dg.MetadataValue.md(offenders)} if offenders else {})


def latest_materializations(instance: dg.DagsterInstance, asset: str, partitions: Sequence[str]) -> dict[str, Target]:
    """By partition. A result that does not name it does not count as being about what is there now."""
    if not partitions:
        return {}
    storage, key = instance.event_log_storage, dg.AssetKey(asset)
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    numbers = storage.get_latest_storage_id_by_partition(key, kind, partitions=set(partitions))
    if isinstance(storage, SqliteEventLogStorage):  # its columns say it; to read the events takes 20 times as long
        events = SqlEventLogStorageTable.c
        with storage.index_connection() as index:
            found = index.execute(
                SqlEventLogStorageTable.select()
                .with_only_columns(events.id, events.run_id, events.timestamp)
                .where(events.id.in_(numbers.values()))
            ).all()
        by_number = {
            number: Target(storage_id=number, run_id=run, timestamp=at.replace(tzinfo=UTC).timestamp())
            for number, run, at in found
        }
    else:
        records = storage.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=key, storage_ids=list(numbers.values())), limit=len(numbers)
        ).records
        by_number = {
            r.storage_id: Target(storage_id=r.storage_id, run_id=r.run_id, timestamp=r.timestamp) for r in records
        }
    return {partition: by_number[number] for partition, number in numbers.items() if number in by_number}


def store_evaluations(
    instance: dg.DagsterInstance, run: dg.DagsterRun | None, evaluations: Sequence[dg.AssetCheckEvaluation]
) -> None:
    """Store results of one check under this run's id: a runless one can be stored only once per day for ever.

    As `store_event` does. On SQLite that opens about five connections for each event, so there the index, which all
    questions about checks are asked of, gets them in one transaction. The run's own log has only their sum.
    """
    kind, storage = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value, instance.event_log_storage
    job, run_id = (run.job_name, run.run_id) if run else (RUNLESS_JOB_NAME, RUNLESS_RUN_ID)
    events = [DagsterEvent(kind, job, event_specific_data=evaluation) for evaluation in evaluations]
    if not isinstance(storage, SqliteEventLogStorage):
        for event in events:
            instance.report_dagster_event(event, run_id)
        return
    if not events:
        return
    table, now, rows = AssetCheckExecutionsTable, time.time(), []
    with storage.index_connection() as index:
        for event, evaluation in zip(events, evaluations, strict=True):
            entry = _entry(event, job, run_id, now)
            stored = index.execute(storage.prepare_insert_event(entry)).inserted_primary_key
            assert stored is not None  # the table counts its rows itself
            target = evaluation.target_materialization_data
            rows.append(
                {
                    "asset_key": evaluation.asset_key.to_string(),
                    "check_name": evaluation.check_name,
                    "run_id": run_id,
                    "execution_status": "SUCCEEDED" if evaluation.passed else "FAILED",
                    "evaluation_event": dg.serialize_value(entry),
                    "evaluation_event_timestamp": datetime.fromtimestamp(now, UTC).replace(tzinfo=None),
                    "evaluation_event_storage_id": stored[0],
                    "materialization_event_storage_id": target.storage_id if target else None,
                    "partition": evaluation.partition,
                }
            )
        # what a run had planned; of one without days also its own row, so that the sum, stored after, is the latest
        if run:
            columns = ("asset_key", "check_name", "run_id")
            index.execute(table.delete().where(*(table.c[column] == rows[0][column] for column in columns)))
        index.execute(table.insert(), rows)


def _entry(event: DagsterEvent, job: str, run_id: str, timestamp: float) -> EventLogEntry:
    return EventLogEntry(  # type: ignore[no-untyped-call]
        user_message="",
        level="INFO",
        job_name=job,
        run_id=run_id,
        error_info=None,
        timestamp=timestamp,
        dagster_event=event,
    )
