"""The asset `quality_report`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from memory_pipeline.defs.orchestration import other_asset
from memory_pipeline.defs.placement import Placement
from memory_pipeline.defs.quality_history import checks_of, results_of
from memory_pipeline.markdown.blocks import escaped
from memory_pipeline.quality.page import write_report
from memory_pipeline.quality.report import Report, make_report
from memory_pipeline.workspace.workspace import Workspace

FAILURES_SHOWN = 40


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
