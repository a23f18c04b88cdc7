"""Which days are to be distilled: all that are old enough, or those that a run was over."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from memory_pipeline.distillation.stage import DistillationStage, due_days, ends_of
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline.workspace import Workspace
from memory_pipeline_tests.rows import observation, put, workspace

MONDAY, SUNDAY, MONTH_END = date(2025, 3, 3), date(2025, 3, 9), date(2025, 3, 31)
NEXT = MONDAY + timedelta(days=7)


def stage(folder: Path, now: date) -> DistillationStage:
    settings, lake = workspace(folder)
    for day in (MONDAY, NEXT):
        put(lake, "observations", observation("Never use npm here.", day=day, priority="medium"))
    return DistillationStage(Workspace(settings, lake), now)


def test_the_days_of_a_run_with_the_weeks_and_months_that_have_them(tmp_path: Path) -> None:
    made = stage(tmp_path, date(2025, 5, 1))
    assert due_days(made, [MONDAY]) == [MONDAY, SUNDAY, MONTH_END]
    assert due_days(made, [MONDAY, NEXT]) == due_days(made)
    assert due_days(made, [MONDAY + timedelta(days=1)]) == []  # nothing was observed
    assert due_days(made, []) == []


def test_what_is_too_young_or_up_to_date_is_not_due(tmp_path: Path) -> None:
    young = stage(tmp_path, MONDAY + timedelta(days=3))
    assert due_days(young, [MONDAY, NEXT]) == [MONDAY]
    bring_up_to_date(young, young.lake, MONDAY)
    assert due_days(young, [MONDAY, NEXT]) == []


def test_the_ends_of_the_periods_of_some_days() -> None:
    assert ends_of([MONDAY], SUNDAY - timedelta(days=1)) == [MONDAY]
    assert ends_of([NEXT, MONDAY], MONTH_END) == [MONDAY, SUNDAY, NEXT, NEXT + timedelta(days=6), MONTH_END]
    assert ends_of([MONDAY], MONDAY - timedelta(days=1)) == []
