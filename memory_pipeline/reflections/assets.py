"""The assets `reflections` and `pool_reflections`."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.days import today
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.errors import BudgetReached
from memory_pipeline.orchestration import (
    GROUP,
    MODEL_RETRY,
    ONE_RUN,
    PARTITIONS,
    STOPPED,
    LakeResource,
    markdown_table,
    run_stage,
    table_schema,
    table_spec,
)
from memory_pipeline.reflections.model import Unusable
from memory_pipeline.reflections.pool import reflect_pool
from memory_pipeline.reflections.stage import VERSION, ReflectionsStage, reflector_of
from memory_pipeline.settings import load_settings
from memory_pipeline.stage import CannotGoOn
from memory_pipeline.text.encoder import encoder_of

_SETTINGS = load_settings()
_VERSION = f"{VERSION} {reflector_of(_SETTINGS, Lake(_SETTINGS.lake_dir)).version}"
"""Model and prompts are part of it, so that an edited prompt shows its assets as stale."""
_BACKFILL = "dagster/backfill"
NOT_ALONE = (
    "Nothing was added, as this run is about other assets too or part of a backfill: materialize pool_reflections "
    "alone or launch pool_reflect_job."
)


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
            version=_VERSION,
            description="Over a lookback of days that ends with the partition, what says the same is one line with its "
            "support; what is older than a day is condensed, from three days on to what was laid down or said again. "
            "Newer state replaces older. With REFLECTOR_MODEL a model writes the lines, and those stay that their "
            "observations carry. What a person wrote into a day's log is reflected on with it (`notes`). A day without "
            "observations or notes has no rows.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
)
def reflect(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables = lake.open()
    stage = ReflectionsStage.of(lake.settings(), tables)
    yield from run_stage(context, tables, stage, lambda _, day: describe(tables, day) | told_of(stage, day))
    for day, reason in stage.left.items():
        context.log.warning(f"The model's lines of {day} are missing: {reason}")


@dg.asset(
    deps=["reflections"],
    group_name=GROUP,
    kinds={"parquet", "polars"},
    metadata={"dagster/column_schema": table_schema("pool_reflections")},
    retry_policy=MODEL_RETRY,
)
def pool_reflections(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[Any]:
    """What the reflections of all days but the last three come down to, in rows of 150 to 600 tokens.

    Materialize it by hand and alone, about once a week, or launch `pool_reflect_job`: together with other assets and in
    a backfill it does nothing and says so, as a model may have to be paid. Each time adds what was reflected on since,
    all of it or, where a model fails on the way, nothing. Rows that are there are never reflected on again, and
    `reflections` stays as it is. A section with little to say waits for more.
    """
    tables, settings = lake.open(), lake.settings()
    if not is_alone(context):
        context.log.info(NOT_ALONE)
        return dg.MaterializeResult(metadata=pool_of(tables) | {"added": 0, "left_alone": NOT_ALONE})
    reflector = reflector_of(settings, tables)
    try:
        done = reflect_pool(settings, tables, reflector, encoder_of(settings.embedding_model), datetime.now(UTC))
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        # the retry policy would count it as a failure and begin the step again
        raise dg.Failure(STOPPED, allow_retries=False) from None
    except (Unusable, BudgetReached, CannotGoOn) as error:
        raise dg.Failure(f"Nothing was added: {error}", allow_retries=False) from error
    context.log.info(f"{done.rows} rows of {done.lines} lines were added; {done.waiting} lines wait")
    return dg.MaterializeResult(
        metadata={
            "added": done.rows,
            "lines": done.lines,
            "waiting": done.waiting,
            "dropped_lines": done.dropped,
            "input_tokens": done.input_tokens,
            "output_tokens": done.output_tokens,
            "compression_ratio": round(done.output_tokens / done.input_tokens, 4) if done.input_tokens else 0.0,
        }
        | pool_of(tables)
    )


def is_alone(context: dg.AssetExecutionContext) -> bool:
    """Whether the run was started for this asset and no other, by a person."""
    return not (context.run.asset_selection or set()) - {context.asset_key} and _BACKFILL not in context.run.tags


def pool_of(lake: Lake) -> dict[str, Any]:
    """All that is in the pool, the newest first."""
    frame = lake.read("pool_reflections")
    preview = markdown_table(frame.reverse().select("section", "priority", "support", "text"))
    return {"dagster/row_count": frame.height, "preview": preview}


def told_of(stage: ReflectionsStage, day: date) -> dict[str, Any]:
    """What a model took for the day in this run, or why its lines are not there."""
    left = {"left_for_later": stage.left[day]} if day in stage.left else {}
    if day not in stage.numbers:
        return left
    made = stage.lake.read("ledger", [today(stage.settings.zone)])
    calls = made.filter((pl.col("for_day") == day) & (pl.col("stage") == "reflections") & ~pl.col("cached"))
    return left | stage.numbers[day] | {"model_calls": calls.height, "spent_usd": float(calls["cost_usd"].sum())}


def describe(lake: Lake, day: date) -> dict[str, Any]:
    frame = lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    tokens = int(frame["tokens"].sum())
    shown = frame.sort("support", "last_seen", descending=True).select("section", "priority", "support", "text")
    return {
        "input_tokens": spent,
        "output_tokens": tokens,
        "compression_ratio": round(tokens / spent, 4) if spent else 0.0,
        "superseded": int(frame["superseded"].list.len().sum() or 0),
        "reflectors": ", ".join(sorted(frame["reflector"].unique())),
        "preview": markdown_table(shown),
    }
