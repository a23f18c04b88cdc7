"""The assets `day_distillations`, `week_distillations` and `month_distillations`."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.distillation.checks import judge_recall
from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.lines import count_words
from memory_pipeline.distillation.periods import ending_with
from memory_pipeline.distillation.stage import SHARE, VERSION, DistillationStage
from memory_pipeline.orchestration import (
    ONE_RUN,
    WorkspaceResource,
    daily_partitions,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.settings import Settings

KEPT = "The rows below stay as they are, and each line names those that it was made from."


def distillation_assets(settings: Settings) -> dg.AssetsDefinition:
    """The three levels."""

    @dg.multi_asset(
        name="distil",
        specs=[
            table_spec(
                "day_distillations",
                deps=["windows", "segments", "observations"],
                version=VERSION,
                description="A line of each fact and narrative, once the day is MEMORY_DISTIL_AFTER_DAYS old: highs "
                f"first, of the others their rare words. {KEPT}",
            ),
            table_spec(
                "week_distillations",
                deps=["day_distillations"],
                version=VERSION,
                description="In the partition of a Sunday: the lines of its week, with a quarter of the words that "
                f"were observed in it. {KEPT}",
            ),
            table_spec(
                "month_distillations",
                deps=["week_distillations"],
                version=VERSION,
                description="In the partition of a month's last day: the lines of the weeks that end in it, with a "
                f"fifth of the words that were observed in them. {KEPT}",
            ),
        ],
        partitions_def=daily_partitions(settings),
        backfill_policy=ONE_RUN,
        can_subset=True,
    )
    def distil(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = DistillationStage.from_workspace(opened)
        yield from run_stage(context, opened, stage, lambda table, day: describe(stage, table, day))

    return distil


def describe(stage: DistillationStage, table: str, day: date) -> Mapping[str, Any]:
    """Nothing on a day with which no such period ends."""
    found: dict[str, Any] = {}
    for period in ending_with(day):
        if period.table == table:
            rows = stage.lake.read(table, [day])
            words, of = sum(map(count_words, rows["text"])), facts_of(stage.lake, period.days).words
            found = {"words": words, "of_words": of, "compression_ratio": round(words / of, 4) if of else 0.0}
            found |= {"share": SHARE[period.level]} | judge_recall(stage, table, day).numbers
            found["preview"] = markdown_table(rows.select("priority", "kind", "text", "last_seen"))
    return found
