"""The partitions of each level, and its check that what was high can still be found."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.periods import DAY, LEVELS, TABLE_OF, WEEK, Period
from memory_pipeline.distillation.stage import DistillationStage, Levels, recall_of
from memory_pipeline.orchestration import check_by_day, daily_partitions, monthly_partitions, weekly_partitions
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace import Workspace

RECALL_LOSS = "recall_loss"


def partitions_of(settings: Settings, level: int) -> dg.TimeWindowPartitionsDefinition:
    """One per period, from the one that has the workspace's first day in it."""
    if level == DAY:
        return daily_partitions(settings)
    first = Period.containing(settings.start_date, level).key
    return weekly_partitions(settings, first) if level == WEEK else monthly_partitions(settings, first)


def last_day_in(level: int) -> Callable[[str], date]:
    """The `day` of the rows of a partition of this level."""
    return lambda key: Period.from_key(level, date.fromisoformat(key)).last


def distillation_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    return [
        check_by_day(
            TABLE_OF[level],
            RECALL_LOSS,
            _judge_of(level),
            settings,
            partitions_def=partitions_of(settings, level),
            day_of_key=last_day_in(level),
        )
        for level in LEVELS
    ]


def _judge_of(level: int) -> Callable[[Workspace, date], Verdict]:
    def judge(workspace: Workspace, day: date) -> Verdict:
        """What was high is found among the lines nearly as often as among the observations, by the same questions.

        Fails when lines of the period were lost, or its highs come to say more than they said when it was distilled.
        """
        return judge_recall(DistillationStage.from_workspace(workspace, level), day)

    return judge


def judge_recall(stage: DistillationStage, day: date) -> Verdict:
    """Of the period of the stage's level that ends with the day, as its rows are now. One that is too young has
    nothing to lose."""
    if day > stage.newest:
        return Verdict(True, {"questions": 0})
    period = Period(stage.level, day)
    found = recall_of(Levels(stage.lake), period, facts_of(stage.lake, period.days))
    numbers: dict[str, float | int | str] = {
        "questions": found.questions,
        "recall_before": round(found.before, 4),
        "recall_after": round(found.after, 4),
        "recall_loss": round(found.loss, 4),
    }
    passed = found.loss <= stage.settings.max_recall_loss
    return Verdict(passed, numbers, [] if passed else [f"{period}: {found}"])
