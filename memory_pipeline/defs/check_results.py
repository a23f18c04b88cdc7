"""Results of checks by day, each with the checked materialization.

For a run over a range, even of one day, Dagster 1.13 stores one result without a partition and shows the days as
skipped; a day's result without its materialization is shown as missing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)

from memory_pipeline.defs.orchestration import on_progress
from memory_pipeline.defs.partitions import days_of, partitions_of
from memory_pipeline.defs.placement import Placement
from memory_pipeline.embeddings.opening import indexes_kept_open
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import escaped
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

Judged = Any
"""An iterator of the events that a check yields; the types of Dagster 1.13 only cover a returned result."""
SHOWN = 10
"""Maximum offenders in the metadata; the important ones are among the first of each day."""


def check_by_day(
    placement: Placement,
    asset: str,
    name: str,
    judge: Callable[[Workspace, date], Verdict],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    *,
    blocking: bool = False,
) -> dg.AssetChecksDefinition:
    """A check that judges each day of a run, or all stored days in a run without days; the judge's docstring is its
    description in the UI. With other partitions than days the last day of each is judged."""
    partitions = partitions_of(placement.settings, asset)

    @dg.asset_check(
        asset=placement.key(asset),
        name=name,
        description=description_of(judge),
        partitions_def=partitions,
        blocking=blocking,
        required_resource_keys=placement.needs,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Judged:
        opened = placement.open(context)
        days = days_to_judge(context, opened.lake, asset, partitions)
        if report := on_progress.get():
            report(f"checks of {asset}", 0)
        with indexes_kept_open():
            verdicts = {day: judge(opened, day) for day in days}
        if context.has_partition_key:
            (verdict,) = verdicts.values()
            yield dg.AssetCheckResult(**_finding(verdict, severity))
            return
        (key,) = (spec.key for spec in context.check_specs)
        evaluation = partial(dg.AssetCheckEvaluation, asset_key=key.asset_key, check_name=key.name)
        targets = latest_materializations(context.instance, key.asset_key, list(days.values()))
        for day, verdict in verdicts.items():
            of_day = evaluation(
                partition=days[day], target_materialization_data=targets.get(days[day]), **_finding(verdict, severity)
            )
            context.op_execution_context.log_event(of_day)  # type: ignore[arg-type] # it accepts results of checks
        # for an AssetCheckResult without a partition, Dagster 1.13 reads the versions of all partitions of the run, and
        # fails if the run has none
        yield dg.Output(None)
        newest = max(targets.values(), key=lambda target: target.storage_id, default=None)
        # if it is blocking and failed, the step fails
        yield evaluation(
            target_materialization_data=newest, blocking=blocking, **_finding(over_days(verdicts), severity)
        )

    return check


def check_of_all_days(
    placement: Placement,
    asset: str,
    name: str,
    judge: Callable[[Workspace], Verdict],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetChecksDefinition:
    """A check of an asset without partitions; the judge's docstring is its description in the UI."""

    @dg.asset_check(
        asset=placement.key(asset),
        name=name,
        description=description_of(judge),
        required_resource_keys=placement.needs,
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return dg.AssetCheckResult(**_finding(judge(placement.open(context)), severity))

    return check


def description_of(judge: Callable[..., Any]) -> str:
    """The judge's docstring as Markdown, with each paragraph on one line, as indented lines would be shown as code."""
    paragraphs = (judge.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def days_to_judge(
    context: dg.AssetCheckExecutionContext,
    lake: Lake,
    asset: str,
    partitions: dg.PartitionsDefinition[Any],
) -> dict[date, str]:
    """The days of the run with their partitions, oldest first. A run without any ("Execute all" in the UI) judges all
    stored days of the asset."""
    if context.has_partition_key or context.has_partition_key_range:
        return days_of(asset, context.partition_keys)
    stored = set(lake.days(asset))
    return {day: key for day, key in days_of(asset, partitions.get_partition_keys()).items() if day in stored}


def over_days(verdicts: Mapping[date, Verdict]) -> Verdict:
    """One verdict over several days: the failed days are its offenders, each with its reason."""
    failed = {day: verdict for day, verdict in verdicts.items() if not verdict.passed}
    offenders = [f"{day}: {verdict.sentence}" for day, verdict in failed.items()]
    # as text: numbers would be plotted, one point for each run, next to those of each day
    numbers: dict[str, float | int | str] = {"days": f"{len(verdicts)}", "days_failed": f"{len(failed)}"}
    few = f"{len(verdicts)} days" if len(verdicts) != 1 else "1 day"
    return Verdict(not failed, numbers, offenders, f"{few}, {len(failed)} of them failed" if failed else few)


def _finding(verdict: Verdict, severity: dg.AssetCheckSeverity) -> dict[str, Any]:
    """The fields of a result as Dagster stores it, with the numbers and first offenders of the verdict."""
    offenders = "\n".join(f"- {escaped(line)}" for line in verdict.offenders[:SHOWN])
    metadata = verdict.numbers | ({"first_offenders": dg.MetadataValue.md(offenders)} if offenders else {})
    return {
        "passed": verdict.passed,
        "severity": severity,
        "description": verdict.sentence,
        "metadata": metadata,
    }


def latest_materializations(
    instance: dg.DagsterInstance, key: dg.AssetKey, partitions: Sequence[str] | None = None
) -> dict[str, Target]:
    """The latest materialization of each partition; Dagster treats a result as current only if it names it."""
    storage = instance.event_log_storage
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    wanted = None if partitions is None else set(partitions)
    numbers = {} if wanted == set() else storage.get_latest_storage_id_by_partition(key, kind, partitions=wanted)
    if not numbers:
        return {}
    latest = dg.AssetRecordsFilter(asset_key=key, storage_ids=list(numbers.values()))
    return {
        record.partition_key: Target(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)
        for record in instance.fetch_materializations(latest, limit=len(numbers)).records
        if record.partition_key
    }
