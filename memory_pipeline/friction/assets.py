"""The asset `friction_clusters`."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg
from dagster_duckdb import DuckDBResource

from memory_pipeline.friction.stage import VERSION, FrictionStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.orchestration import (
    MODEL_RETRY,
    ONE_RUN,
    WorkspaceResource,
    daily_partitions,
    lookback_dep,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.settings import Settings


def friction_assets(settings: Settings) -> dg.AssetsDefinition:
    """`friction_clusters`."""

    @dg.multi_asset(
        name="find_friction",
        specs=[
            table_spec(
                "friction_clusters",
                deps=[
                    lookback_dep(table, settings) for table in ("sessions", "messages", "observations", "embeddings")
                ],
                version=VERSION,
                description="Corrections and tool failures of the last days that say the same and span sessions, "
                "with every place where they happened; a changed mind is none. Severity is occurrences "
                "times what one costs. A day has the patterns that it added to.",
            )
        ],
        partitions_def=daily_partitions(settings),
        backfill_policy=ONE_RUN,
        retry_policy=MODEL_RETRY,
    )
    def find_friction(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, duckdb: DuckDBResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = FrictionStage.from_workspace(opened, duckdb.get_connection)
        yield from run_stage(context, opened, stage, lambda _, day: describe(opened.lake, day))

    return find_friction


def describe(lake: Lake, day: date) -> Mapping[str, Any]:
    frame = lake.read("friction_clusters", [day])
    return {
        "worst_severity": float(frame["severity"].max() or 0.0),  # type: ignore[arg-type]
        "preview": markdown_table(frame.select("pattern_id", "kind", "title", "sessions", "occurrences", "severity")),
    }
