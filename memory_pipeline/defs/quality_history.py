"""Results of checks and durations of runs, from Dagster's history."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from memory_pipeline.defs.orchestration import REBUILT
from memory_pipeline.markdown.escaping import unescaped
from memory_pipeline.quality.results import Result

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_RESULTS = 20_000
"""Maximum results read for one check, newest first."""
MAX_RUNS = 500
NOTHING_SAID = "nothing_said"
"""Metadata of results that version 0.2 stored for days without a session; nothing was checked."""


def checks_of(definitions: dg.Definitions) -> dict[str, str]:
    """The first sentence of each check's description by its name, in the order of the assets."""
    graph = definitions.resolve_asset_graph()
    order = list(graph.toposorted_asset_keys)
    keys = sorted(graph.asset_check_keys, key=lambda key: order.index(key.asset_key))
    texts = {key: (graph.get_check_spec(key).description or "").strip().split("\n\n")[0] for key in keys}
    return {f"{key.asset_key.path[-1]}/{key.name}": " ".join(text.split()) for key, text in texts.items()}


def results_of(instance: dg.DagsterInstance, definitions: dg.Definitions) -> list[Result]:
    """The latest result of each check and day with a session, without the totals of runs over a range."""
    found, graph = [], definitions.resolve_asset_graph()
    for key in graph.asset_check_keys:
        partitioned = graph.get(key).partitions_def is not None
        seen: set[str | None] = set()
        for record in instance.event_log_storage.get_asset_check_execution_history(key, MAX_RESULTS):
            evaluation = record.evaluation if record.status.value in ("SUCCEEDED", "FAILED") else None
            partition = record.partition
            if evaluation is None or partition in seen or (partition is None) == partitioned:
                continue
            seen.add(partition)
            if NOTHING_SAID in evaluation.metadata:
                continue
            found.append(_result(key, partition, evaluation))
    return sorted(found, key=lambda r: (r.day or date.min, r.name))


def seconds_by_stage(
    instance: dg.DagsterInstance, definitions: dg.Definitions, zone: ZoneInfo, days: int
) -> dict[str, dict[date, float]]:
    """The seconds of successful steps of these definitions, by step and the local day of the run."""
    steps = {node.name for job in definitions.resolve_all_job_defs() for node in job.all_node_defs}
    since = datetime.now(UTC) - timedelta(days=days)
    ended = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
    found: dict[str, dict[date, float]] = defaultdict(lambda: defaultdict(float))
    for record in instance.get_run_records(dg.RunsFilter(statuses=ended, created_after=since), limit=MAX_RUNS):
        day = record.create_timestamp.astimezone(zone).date()
        run = record.dagster_run.run_id
        for entry in instance.event_log_storage.get_logs_for_run(run, of_type=dg.DagsterEventType.STEP_SUCCESS):
            event = entry.dagster_event
            if event and event.step_key in steps:
                found[event.step_key][day] += event.step_success_data.duration_ms / 1000
    return found


def days_made(instance: dg.DagsterInstance, job: str, asset: str, most: int) -> list[tuple[set[date], float]]:
    """The days whose asset a run rebuilt and the seconds of the run, for at most ``most`` of the newest successful runs
    of the job; runs that rebuilt no day are left out."""
    found = []
    filters = dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS])
    for record in instance.get_run_records(filters, limit=most):
        if record.start_time is None or record.end_time is None:
            continue
        logs = instance.event_log_storage.get_logs_for_run(
            record.dagster_run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        )
        made = [event.dagster_event.step_materialization_data.materialization for event in logs if event.dagster_event]
        days = {
            date.fromisoformat(one.partition)
            for one in made
            if one.partition
            and one.asset_key == dg.AssetKey(asset)
            and one.metadata.get(REBUILT) == dg.MetadataValue.bool(True)
        }
        if days:
            found.append((days, record.end_time - record.start_time))
    return found


def _result(key: dg.AssetCheckKey, partition: str | None, evaluation: dg.AssetCheckEvaluation) -> Result:
    numbers = {}
    offenders: list[str] = []
    for name, value in evaluation.metadata.items():
        raw = value.value
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            numbers[name] = float(raw)
        elif isinstance(value, dg.MarkdownMetadataValue):
            offenders += [unescaped(line[2:]) for line in value.value.splitlines() if line.startswith("- ")]
    return Result(
        key.asset_key.path[-1],
        key.name,
        date.fromisoformat(partition) if partition else None,
        evaluation.passed,
        evaluation.severity is dg.AssetCheckSeverity.ERROR,
        evaluation.description or "",
        numbers,
        tuple(offenders),
    )
