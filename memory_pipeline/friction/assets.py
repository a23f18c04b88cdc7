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
    PARTITIONS,
    LakeResource,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.reflections.assets import lookback_dep


@dg.multi_asset(
    name="find_friction",
    specs=[
        table_spec(
            "friction_clusters",
            deps=[lookback_dep("messages"), lookback_dep("observations"), lookback_dep("embeddings")],
            version=VERSION,
            description="Corrections and tool failures of the last days that say the same and span sessions, with "
            "every place where they happened; a changed mind is none. Severity is occurrences times what one costs. A "
            "day has the patterns that it added to.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
)
def find_friction(
    context: dg.AssetExecutionContext, lake: LakeResource, duckdb: DuckDBResource
) -> Iterator[dg.MaterializeResult[Any]]:
    tables = lake.open()
    stage = FrictionStage.of(lake.settings(), tables)
    stage.connect = duckdb.get_connection
    yield from run_stage(context, tables, stage, lambda table, day: describe(tables, day))


def describe(lake: Lake, day: date) -> Mapping[str, Any]:
    frame = lake.read("friction_clusters", [day])
    return {
        "worst_severity": float(frame["severity"].max() or 0.0),  # type: ignore[arg-type]
        "preview": markdown_table(frame.select("pattern_id", "kind", "title", "sessions", "occurrences", "severity")),
    }
