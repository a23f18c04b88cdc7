"""The check of each level that what was high can still be found."""

from datetime import date

import dagster as dg

from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.periods import LEVELS, TABLE_OF, ending_with
from memory_pipeline.distillation.stage import DistillationStage, Levels, recall_of
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.verdict import Verdict

RECALL_LOSS = "recall_loss"


def _check(table: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=table, name=RECALL_LOSS, partitions_def=PARTITIONS)
    def recall_loss(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
        """What was high is found among the lines nearly as often as among the observations, by the same questions."""
        stage = DistillationStage.of(lake.settings(), lake.open())
        return report_by_day(
            context, table, RECALL_LOSS, lambda day: judge_recall(stage, table, day), dg.AssetCheckSeverity.ERROR
        )

    return recall_loss


DISTILLATION_CHECKS = [_check(TABLE_OF[level]) for level in LEVELS]


def judge_recall(stage: DistillationStage, table: str, day: date) -> Verdict:
    """Of the period of this table that ends with the day, as its rows are now. A day that is too young, or with which
    none ends, has nothing to lose."""
    period = next((p for p in ending_with(day) if p.table == table), None)
    if period is None or day > stage.newest:
        return Verdict(True, {"questions": 0})
    found = recall_of(Levels(stage.lake), period, facts_of(stage.lake, period.days))
    numbers: dict[str, float | int | str] = {
        "questions": found.questions,
        "recall_before": round(found.before, 4),
        "recall_after": round(found.after, 4),
        "recall_loss": round(found.loss, 4),
    }
    passed = found.loss <= stage.settings.max_recall_loss
    return Verdict(passed, numbers, [] if passed else [f"{period}: {found}"])
