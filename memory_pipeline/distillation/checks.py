"""The check of each level that what was high can still be found."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.periods import LEVELS, TABLE_OF, ending_with
from memory_pipeline.distillation.stage import DistillationStage, Levels, recall_of
from memory_pipeline.orchestration import check_by_day
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace import Workspace

RECALL_LOSS = "recall_loss"


def distillation_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    return [check_by_day(TABLE_OF[level], RECALL_LOSS, _judge_of(TABLE_OF[level]), settings) for level in LEVELS]


def _judge_of(table: str) -> Callable[[Workspace, date], Verdict]:
    def judge(workspace: Workspace, day: date) -> Verdict:
        """What was high is found among the lines nearly as often as among the observations, by the same questions."""
        return judge_recall(DistillationStage.from_workspace(workspace), table, day)

    return judge


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
