"""The partitions of each level, and its checks: what was high is still said, and no line was altered."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import daily_partitions, monthly_partitions, weekly_partitions
from memory_pipeline.distillation.facts import facts_of
from memory_pipeline.distillation.periods import DAY, LEVELS, TABLE_OF, WEEK, Period
from memory_pipeline.distillation.stage import MAX_RECALL_LOSS, DistillationStage, Levels, altered, recall_of
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

NOT_YET = "It is not old enough to be distilled"
RECALL_LOSS, LINES_ARE_WHOLE = "recall_loss", "lines_are_whole"


def partitions_of(settings: Settings, level: int) -> dg.TimeWindowPartitionsDefinition:
    """One per period, from the one that has the workspace's first day in it."""
    if level == DAY:
        return daily_partitions(settings, youngest=settings.distil_after_days)
    first = Period.containing(settings.start_date, level).key
    return weekly_partitions(settings, first) if level == WEEK else monthly_partitions(settings, first)


def last_day_in(level: int) -> Callable[[str], date]:
    """The `day` of the rows of a partition of this level."""
    return lambda key: Period.from_key(level, date.fromisoformat(key)).last


def distillation_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    return [
        check_by_day(
            TABLE_OF[level],
            name,
            _of_level(judge, level),
            settings,
            partitions_def=partitions_of(settings, level),
            day_of_key=last_day_in(level),
        )
        for level in LEVELS
        for name, judge in ((RECALL_LOSS, judge_recall), (LINES_ARE_WHOLE, judge_lines))
    ]


def _of_level(judge: Callable[[DistillationStage, date], Verdict], level: int) -> Callable[[Workspace, date], Verdict]:
    def of_level(workspace: Workspace, day: date) -> Verdict:
        return judge(DistillationStage.from_workspace(workspace, level), day)

    of_level.__doc__ = judge.__doc__
    return of_level


def judge_recall(stage: DistillationStage, day: date) -> Verdict:
    """What was high is still said: in a line made from it that is whole and has all of its words in their order.

    Fails when highs of the period have no line any more, or only one that lost words, a "never" or a number.
    """
    if day > stage.newest:
        return Verdict(True, {"highs": 0}, judged=NOT_YET)
    period = Period(stage.level, day)
    found = recall_of(Levels(stage.lake), period, facts_of(stage.lake, period.days))
    numbers: dict[str, float | int | str] = {
        "highs": found.highs,
        "highs_kept": found.kept,
        "recall_loss": round(found.loss, 4),
    }
    passed = found.loss <= MAX_RECALL_LOSS
    judged = f"{found.kept} of {found.highs} highs are still said, word for word"
    return Verdict(passed, numbers, [] if passed else [f"{period}: {found}"], judged)


def judge_lines(stage: DistillationStage, day: date) -> Verdict:
    """Every line is, character for character, the text of a row that it was made from.

    Fails when a line lost, gained or changed a character, or leads to no row of the level below.
    """
    if day > stage.newest:
        return Verdict(True, {"lines": 0}, judged=NOT_YET)
    period, levels = Period(stage.level, day), Levels(stage.lake)
    bad = altered(levels, period, facts_of(stage.lake, period.days))
    numbers: dict[str, float | int | str] = {"lines": len(levels.rows(period)), "altered": len(bad)}
    offenders = [f"{row['distillation_id']} is no line of the level below: {row['text']}" for row in bad]
    return Verdict(not bad, numbers, offenders, f"{numbers['lines']} lines and what they were made from")
