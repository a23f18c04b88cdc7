"""The asset `quality_report`, from the results of checks in Dagster's history."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg

from memory_pipeline.defs.orchestration import other_asset
from memory_pipeline.defs.placement import Placement
from memory_pipeline.markdown.blocks import escaped, unescaped
from memory_pipeline.quality.page import write_report
from memory_pipeline.quality.report import Report, make_report
from memory_pipeline.quality.results import Result
from memory_pipeline.workspace.workspace import Workspace

FAILURES_SHOWN = 40
MAX_RESULTS = 20_000
"""Maximum results read for one check, newest first."""
NOTHING_SAID = "nothing_said"
"""Metadata of results that version 0.2 stored for days without a session; nothing was checked."""


def quality_assets(definitions: Callable[[], dg.Definitions], placement: Placement) -> dg.AssetsDefinition:
    """The asset `quality_report`. The definitions contain every check; they are built when the asset is materialized,
    as they contain the asset itself."""

    @other_asset(placement, "quality_report", deps=["memory_file", "friction_clusters"], kinds={"html"})
    def quality_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        """One page with the results of every check by day, quality figures over time, and fixes of failures.

        It runs no checks: the results are those of their last runs. `memory admin report` writes the same report.
        """
        opened = placement.open(context)
        report = report_of(opened, context.instance, definitions())
        page = write_report(report, opened.settings.report_dir)
        context.log.info(report.sentence)
        return dg.MaterializeResult(metadata=describe(report) | {"page": dg.MetadataValue.url(page.as_uri())})

    return quality_report


def report_of(workspace: Workspace, instance: dg.DagsterInstance, definitions: dg.Definitions) -> Report:
    """The report from the stored results of the checks of these definitions."""
    return make_report(
        workspace,
        results_of(instance, definitions),
        checks_of(definitions),
        datetime.now(UTC).astimezone(workspace.settings.zone),
    )


def describe(report: Report) -> dict[str, Any]:
    """The report's metadata for the UI: numbers for plots, and the reasons of failures."""
    means = {
        f"{figure.key}_last_7_days": mean
        for figure in report.figures
        if report.last and (mean := figure.mean(report.last)) is not None
    }
    return {
        "summary": report.sentence,
        "results": report.judged,
        "results_failed": len(report.failed),
        "errors": sum(result.severe for result in report.failed),
        "days_failed": len(report.days_failed),
        "why": dg.MetadataValue.md(_reasons_of(report)),
        "changes_since_last_week": dg.MetadataValue.md("\n".join(f"* {escaped(line)}" for line in report.changes)),
        **means,
    }


def _reasons_of(report: Report) -> str:
    newest = sorted(report.failed, key=lambda r: (r.day is None, f"{r.day}"), reverse=True)
    lines = [
        f"* **{result.day or 'all days'}** {escaped(result.name)}: "
        f"{escaped(result.sentence or '; '.join(result.offenders[:1]) or 'failed')}"
        for result in newest[:FAILURES_SHOWN]
    ]
    more = len(newest) - FAILURES_SHOWN
    return "\n".join([*lines, *([f"* … and {more} more, in the page"] if more > 0 else [])]) or "Nothing failed."


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
