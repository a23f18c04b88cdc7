"""The assets `reflections` and `pool_reflections`, and their checks."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import (
    LOOKS_BACK,
    MODEL_RETRY,
    STOPPED,
    calls_today,
    markdown_table,
    other_asset,
    run_stage,
    stage_asset,
    table_schema,
    table_spec,
)
from memory_pipeline.defs.partitions import lookback_dep
from memory_pipeline.defs.placement import Placement
from memory_pipeline.errors import CannotGoOnError
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.reflections import evaluation
from memory_pipeline.reflections.pool import reflect_pool
from memory_pipeline.reflections.stage import VERSION, ReflectionsStage, reflector_of
from memory_pipeline.reflections.types import UnusableAnswerError
from memory_pipeline.text.encoder import encoder_of
from memory_pipeline.workspace.workspace import Workspace

_BACKFILL = "dagster/backfill"
NOT_ALONE = (
    "Nothing was added, because this run includes other assets or is part of a backfill: materialize pool_reflections "
    "alone or launch pool_reflect_job."
)


def reflection_assets(placement: Placement) -> dg.AssetsDefinition:
    """The asset `reflections`. Model and prompts are part of its version: an edited prompt shows it as stale."""
    spec = table_spec(
        placement,
        "reflections",
        deps=[lookback_dep(table, placement) for table in ("segments", "observations", "embeddings")],
        version=f"{VERSION} {reflector_of(Workspace.open(placement.settings)).version}",
        description="Over a lookback of days that ends with the partition, observations that say the same become one "
        "line with its support. Lines older than a day are condensed; after three days only explicit or repeated ones "
        "remain. Newer state replaces older. With REFLECTOR_MODEL a model writes the lines, and only those that their "
        "observations support are kept. Notes that a user wrote into a daily log are included (`notes`). A day without "
        "observations or notes has no rows.",
    )

    @stage_asset(placement, "reflect", LOOKS_BACK, [spec], retry_policy=MODEL_RETRY)
    def reflect(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = ReflectionsStage.from_workspace(opened)
        yield from run_stage(context, opened, stage, lambda _, day: describe(opened, day))

    return reflect


def pool_asset(placement: Placement) -> dg.AssetsDefinition:
    """The asset `pool_reflections`."""

    @other_asset(
        placement,
        "pool_reflections",
        deps=["reflections"],
        kinds={"parquet", "polars"},
        metadata={"dagster/column_schema": table_schema("pool_reflections")},
        retry_policy=MODEL_RETRY,
    )
    def pool_reflections(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        """The reflections of all days but the last three, condensed, in rows of 150 to 600 tokens.

        Materialize it by hand and alone, about once a week, or launch `pool_reflect_job`: together with other assets
        and in a backfill it does nothing and says so, as a model may have to be paid. Each run adds the reflections
        since the last one, all of them or, if a model fails, none. Existing rows are never reflected on again, and
        `reflections` stays unchanged. A section with few lines waits for more.
        """
        opened = placement.open(context)
        if not is_alone(context):
            context.log.info(NOT_ALONE)
            return dg.MaterializeResult(metadata=pool_of(opened.lake) | {"added": 0, "left_alone": NOT_ALONE})
        encoder = encoder_of(opened.settings.embedding_model)
        try:
            done = reflect_pool(opened, reflector_of(opened), encoder, datetime.now(UTC))
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            # the retry policy would count it as a failure and restart the step
            raise dg.Failure(STOPPED, allow_retries=False) from None
        except (UnusableAnswerError, BudgetReachedError, CannotGoOnError) as error:
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
            | pool_of(opened.lake)
        )

    return pool_reflections


def is_alone(context: dg.AssetExecutionContext) -> bool:
    """Whether a user started the run for this asset only."""
    return not (context.run.asset_selection or set()) - {context.asset_key} and _BACKFILL not in context.run.tags


def pool_of(lake: Lake) -> dict[str, Any]:
    """Row count and preview of the pool, the newest row first."""
    frame = lake.read("pool_reflections")
    preview = markdown_table(frame.reverse().select("section", "priority", "support", "text"))
    return {"dagster/row_count": frame.height, "preview": preview}


def describe(workspace: Workspace, day: date) -> dict[str, Any]:
    frame = workspace.lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    tokens = int(frame["tokens"].sum())
    shown = frame.sort("support", "last_seen", descending=True).select("section", "priority", "support", "text")
    return calls_today(workspace, "reflections", day) | {
        "input_tokens": spent,
        "output_tokens": tokens,
        "compression_ratio": round(tokens / spent, 4) if spent else 0.0,
        "superseded": int(frame["superseded"].list.len().sum() or 0),
        "reflectors": ", ".join(sorted(frame["reflector"].unique())),
        "preview": markdown_table(shown),
    }


def reflection_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    warn, on = dg.AssetCheckSeverity.WARN, "reflections"
    return [
        check_by_day(placement, on, "no_silent_zero", evaluation.judge_silent_zero),
        check_by_day(placement, on, "compression_ratio", evaluation.judge_compression, warn),
    ]
