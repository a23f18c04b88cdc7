"""The assets `day_distillations`, `week_distillations` and `month_distillations`."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.defs.distillation_checks import judge_recall, last_day_in, partitions_of
from memory_pipeline.defs.orchestration import LOOKS_BACK, WorkspaceResource, markdown_table, run_stage, table_spec
from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.lines import count_words
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, NAMES, TABLE_OF, WEEK, Period
from memory_pipeline.distillation.stage import SHARE, VERSIONS, DistillationStage
from memory_pipeline.settings import Settings

KEPT = "The rows below stay as they are, and each line names those that it was made from."
DESCRIPTIONS = {
    DAY: "Facts and narratives of a day, whole, once it is MEMORY_DISTIL_AFTER_DAYS old: all highs, and of the others "
    f"the best, up to 85 % of the words that were observed. {KEPT}",
    WEEK: "Lines of the days of a week from Monday to Sunday: all highs, and of the others the best, up to 55 % of "
    f"the words that were observed in it. The partition is its Monday, the rows carry its Sunday. {KEPT}",
    MONTH: "Lines of the weeks that end in a month: all highs, and of the others the best, up to 35 % of the words "
    f"that were observed in them. The rows carry the month's last day. {KEPT}",
}
OVERLAPPING = dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)
"""Dagster's own, as the UI knows nothing of others. Days that a week has before the workspace's first are no error. For
a month it also names the week that begins in it and ends in the next one, which only that one is made of."""


def distillation_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One per level, each with partitions of its own."""
    return [_asset_of(settings, level) for level in LEVELS]


def _asset_of(settings: Settings, level: int) -> dg.AssetsDefinition:
    deps = ["windows", "segments", "observations"]
    below = [dg.AssetDep(TABLE_OF[level - 1], partition_mapping=OVERLAPPING)] if level != DAY else deps

    @dg.multi_asset(
        name=f"distil_{NAMES[level]}s",
        specs=[table_spec(TABLE_OF[level], deps=below, version=VERSIONS[level], description=DESCRIPTIONS[level])],
        partitions_def=partitions_of(settings, level),
        **LOOKS_BACK,
    )
    def distil(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = DistillationStage.from_workspace(opened, level)
        yield from run_stage(context, opened, stage, lambda _, day: describe(stage, day), last_day_in(level))

    return distil


def describe(stage: DistillationStage, day: date) -> Mapping[str, Any]:
    """Of the period that ends with the day."""
    rows, of = stage.lake.read(stage.table, [day]), facts_of(stage.lake, Period(stage.level, day).days).words
    words = sum(map(count_words, rows["text"]))
    found: dict[str, Any] = {"words": words, "of_words": of, "compression_ratio": round(words / of, 4) if of else 0.0}
    found |= {"share": SHARE[stage.level]} | judge_recall(stage, day).numbers
    return found | {"preview": markdown_table(rows.select("priority", "kind", "text", "last_seen"))}
