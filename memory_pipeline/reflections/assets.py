"""The asset `reflections`."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.lake import Lake
from memory_pipeline.orchestration import (
    MODEL_RETRY,
    ONE_RUN,
    PARTITIONS,
    LakeResource,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.reflections.stage import VERSION, ReflectionsStage
from memory_pipeline.settings import load_settings


def lookback_dep(asset: str) -> dg.AssetDep:
    """A dependency on the days of the lookback; days before the first partition are no error."""
    return dg.AssetDep(
        asset,
        partition_mapping=dg.TimeWindowPartitionMapping(
            start_offset=1 - load_settings().lookback_days, allow_nonexistent_upstream_partitions=True
        ),
    )


@dg.multi_asset(
    name="reflect",
    specs=[
        table_spec(
            "reflections",
            deps=[lookback_dep("observations"), lookback_dep("embeddings")],
            version=VERSION,
            description="Over a lookback of days that ends with the partition, what says the same is one line with its "
            "support; what is older than a day is condensed, from three days on to what was laid down or said again. "
            "A day without observations has no rows.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
)
def reflect(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables = lake.open()
    stage = ReflectionsStage.of(lake.settings(), tables)
    yield from run_stage(context, tables, stage, lambda table, day: describe(tables, day))


def describe(lake: Lake, day: date) -> Mapping[str, Any]:
    frame = lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    tokens = int(frame["tokens"].sum())
    shown = frame.sort("support", "last_seen", descending=True).select("section", "priority", "support", "text")
    return {
        "input_tokens": spent,
        "output_tokens": tokens,
        "compression_ratio": round(tokens / spent, 4) if spent else 0.0,
        "preview": markdown_table(shown),
    }
