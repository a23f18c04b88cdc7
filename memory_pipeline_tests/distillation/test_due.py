"""Which days are to be distilled: all that are old enough, or those that a run was over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from memory_pipeline.distillation.periods import DAY, MONTH, WEEK, Period
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import observation, put, workspace

MONDAY, SUNDAY, MONTH_END = date(2025, 3, 3), date(2025, 3, 9), date(2025, 3, 31)
NEXT = MONDAY + timedelta(days=7)


def due_of(folder: Path, now: date) -> Callable[..., list[Period]]:
    """What is due of all levels, of a workspace with observations of two Mondays."""
    settings, lake = workspace(folder)
    for day in (MONDAY, NEXT):
        put(lake, "observations", observation("Never use npm here.", day=day, priority="medium"))
    stages = stages_of(Workspace(settings, lake), now)
    return lambda *among: [period for stage in stages for period in due_periods(stage, *among)]


def test_the_days_of_a_run_with_the_weeks_and_months_that_have_them(tmp_path: Path) -> None:
    due = due_of(tmp_path, date(2025, 5, 1))
    assert due([MONDAY]) == [Period(DAY, MONDAY), Period(WEEK, SUNDAY), Period(MONTH, MONTH_END)]
    assert due([MONDAY, NEXT]) == due()
    assert [period.level for period in due()] == [DAY, DAY, WEEK, WEEK, MONTH]
    assert due([MONDAY + timedelta(days=1)]) == []  # nothing was observed
    assert due([]) == []


def test_what_is_too_young_or_up_to_date_is_not_due(tmp_path: Path) -> None:
    now = MONDAY + timedelta(days=3)
    due = due_of(tmp_path, now)
    assert due([MONDAY, NEXT]) == [Period(DAY, MONDAY)]
    days, *_ = stages_of(Workspace(*workspace(tmp_path)), now)
    bring_up_to_date(days, days.lake, MONDAY)
    assert due([MONDAY, NEXT]) == []
