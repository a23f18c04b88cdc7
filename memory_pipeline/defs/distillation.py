"""The assets `day_distillations`, `week_distillations` and `month_distillations`, with their partitions and checks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import LOOKS_BACK, markdown_table, run_stage, stage_asset, table_spec
from memory_pipeline.defs.placement import Placement
from memory_pipeline.distillation.lines import count_words, facts_of
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, NAMES, TABLE_OF, WEEK, Period
from memory_pipeline.distillation.stage import (
    MAX_RECALL_LOSS,
    SHARE,
    VERSIONS,
    DistillationStage,
    altered,
    recall_of,
    rows_in,
)
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

NOT_YET = "It is not old enough to be distilled"


def distillation_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    return [
        check_by_day(placement, TABLE_OF[level], name, _for_level(judge, level))
        for level in LEVELS
        for name, judge in (("recall_loss", judge_recall), ("lines_are_whole", judge_lines))
    ]


def _for_level(judge: Callable[[DistillationStage, date], Verdict], level: int) -> Callable[[Workspace, date], Verdict]:
    def of_level(workspace: Workspace, day: date) -> Verdict:
        return judge(DistillationStage.from_workspace(workspace, level), day)

    of_level.__doc__ = judge.__doc__
    return of_level


def judge_recall(stage: DistillationStage, day: date) -> Verdict:
    """High facts are retained: each in an intact line made from it, with all of its words in order.

    Fails when high facts of the period have no line, or only one that lost words, a "never" or a number.
    """
    if day > stage.newest:
        return Verdict(True, {"highs": 0}, judged=NOT_YET)
    period = Period(stage.level, day)
    found = recall_of(stage.lake, period, facts_of(stage.lake, period.days), rows_in(stage.lake, period))
    numbers: dict[str, float | int | str] = {
        "highs": found.highs,
        "highs_kept": found.kept,
        "recall_loss": round(found.loss, 4),
    }
    passed = found.loss <= MAX_RECALL_LOSS
    judged = f"{found.kept} of {found.highs} high observations are still contained, word for word"
    return Verdict(passed, numbers, [] if passed else [f"{period}: {found}"], judged)


def judge_lines(stage: DistillationStage, day: date) -> Verdict:
    """Every line is exactly the text of a row from which it was made.

    Fails when a line lost, gained or changed a character, or leads to no row of the level below.
    """
    if day > stage.newest:
        return Verdict(True, {"lines": 0}, judged=NOT_YET)
    period = Period(stage.level, day)
    rows = rows_in(stage.lake, period)
    bad = altered(stage.lake, period, facts_of(stage.lake, period.days), rows)
    numbers: dict[str, float | int | str] = {"lines": len(rows), "altered": len(bad)}
    offenders = [f"{row['distillation_id']} is not a line of the level below: {row['text']}" for row in bad]
    return Verdict(not bad, numbers, offenders, f"{numbers['lines']} lines and their sources")


KEPT = "Rows of the level below are not changed, and each line names its sources."
DESCRIPTIONS = {
    DAY: "The unshortened facts and narratives of a day, once it is MEMORY_DISTIL_AFTER_DAYS old: all high ones and "
    f"the best of the others, up to 85 % of the observed words. {KEPT}",
    WEEK: "Lines of the days of a week from Monday to Sunday: all high ones and the best of the others, up to 55 % of "
    "the words observed in the week. The partition is the Monday; the rows have the day of the Sunday. " + KEPT,
    MONTH: "Lines of the weeks that end in a month: all high ones and the best of the others, up to 35 % of the words "
    f"observed in them. The rows have the month's last day. {KEPT}",
}
OVERLAPPING = dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)
"""Dagster's own mapping, as the UI supports no other. Days of a week before the workspace's first day are no error. For
a month it also includes the week that begins in it and ends in the next one, to which that week belongs."""


def distillation_assets(placement: Placement) -> list[dg.AssetsDefinition]:
    """One asset per level, each with its own partitions."""
    return [_asset_of(placement, level) for level in LEVELS]


def _asset_of(placement: Placement, level: int) -> dg.AssetsDefinition:
    deps: Sequence[str | dg.AssetDep] = ["windows", "segments", "observations"]
    if level != DAY:
        deps = [dg.AssetDep(placement.key(TABLE_OF[level - 1]), partition_mapping=OVERLAPPING)]
    spec = table_spec(placement, TABLE_OF[level], deps=deps, version=VERSIONS[level], description=DESCRIPTIONS[level])

    @stage_asset(placement, f"distil_{NAMES[level]}s", LOOKS_BACK, [spec])
    def distil(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = DistillationStage.from_workspace(opened, level)
        yield from run_stage(context, opened, stage, lambda _, day: describe(stage, day))

    return distil


def describe(stage: DistillationStage, day: date) -> Mapping[str, Any]:
    """Metadata of the period that ends with the day."""
    rows, of = stage.lake.read(stage.table, [day]), facts_of(stage.lake, Period(stage.level, day).days).words
    words = sum(map(count_words, rows["text"]))
    found: dict[str, Any] = {"words": words, "of_words": of, "compression_ratio": round(words / of, 4) if of else 0.0}
    found |= {"share": SHARE[stage.level]} | judge_recall(stage, day).numbers
    return found | {"preview": markdown_table(rows.select("priority", "kind", "text", "last_seen"))}
