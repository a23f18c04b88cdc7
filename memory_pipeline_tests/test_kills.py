"""A run that is killed at any moment is made good by the next: nothing is lost, nothing is done twice.

CI tries each a few times, `make test-nightly` often; `benchmarks/kills.py` does the same two hundred times over real
sessions.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from memory_pipeline_tests.killing.chain import Trial, trials
from memory_pipeline_tests.killing.month import PARTS, model_of
from memory_pipeline_tests.killing.month_kills import Month, MonthTrial
from memory_pipeline_tests.rows import day_after

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")]
DAYS = [day_after(number) for number in range(6)]
KILLS, MANY_KILLS, IN_PLACE, MONTH_KILLS, MANY_MONTH_KILLS = 6, 34, 24, 3, 8
SOME_DAYS = 12
"""Of the month that CI kills: each stage has something to do in each of the three runs."""
STEPS = {"reflect", "propose", "review", "promote"}


@pytest.fixture
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A fresh process: the threads that polars has started in this one do not survive a fork."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def told(found: list[Trial]) -> str:
    return "\n".join(f"{trial}" for trial in found)


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.nightly)])
def test_the_next_run_ends_where_one_without_a_kill_ends(
    elsewhere: ProcessPoolExecutor, tmp_path: Path, kills: int
) -> None:
    found = elsewhere.submit(trials, tmp_path, DAYS, kills).result()
    wrong = [trial for trial in found if trial.wrong]
    assert not wrong, told(wrong)
    steps = {trial.step for trial in found}
    assert steps <= STEPS and len(steps) > 1
    assert kills < MANY_KILLS or steps == STEPS
    left_behind = [trial for trial in found if trial.temporary_files]
    assert not left_behind, told(left_behind)


@pytest.mark.nightly
def test_a_file_that_is_written_in_place_is_found_out(elsewhere: ProcessPoolExecutor, tmp_path: Path) -> None:
    """Else the test above would see nothing."""
    found = elsewhere.submit(trials, tmp_path, DAYS, IN_PLACE, plain=True).result()
    assert any("MEMORY.md" in line or "REVIEW.md" in line or "memory/" in line for t in found for line in t.wrong)


def test_some_days_with_a_model_outlast_some_kills_and_power_cuts(
    elsewhere: ProcessPoolExecutor, tmp_path: Path
) -> None:
    killed, cut = elsewhere.submit(some_days, tmp_path).result()
    assert not killed.wrong, f"{killed}"
    assert not cut.wrong, f"{cut}"
    assert killed.steps and cut.cuts >= PARTS, "after each run at least"


@pytest.mark.nightly
def test_a_month_with_a_model_comes_out_the_same_and_pays_nothing_twice(
    elsewhere: ProcessPoolExecutor, tmp_path: Path
) -> None:
    found, baseline = elsewhere.submit(months, tmp_path).result()
    assert not found.wrong, f"{found}"
    assert len(found.steps) >= MANY_MONTH_KILLS / 2
    assert baseline.wrong, "files that are written in place and answers that nobody keeps went unnoticed"


@pytest.mark.nightly
def test_a_month_outlasts_power_cuts(elsewhere: ProcessPoolExecutor, tmp_path: Path) -> None:
    found, baseline = elsewhere.submit(months, tmp_path, power=True).result()
    assert not found.wrong, f"{found}"
    assert found.cuts >= PARTS, "after each run at least"
    assert baseline.wrong, "folders that nobody flushes went unnoticed"


def some_days(folder: Path) -> tuple[MonthTrial, MonthTrial]:
    """Killed, and with the power cut."""
    with model_of(folder, SOME_DAYS) as place:
        month = Month.begun(place)
        return month.trial("1", MONTH_KILLS), month.trial("2", MONTH_KILLS, power=True)


def months(folder: Path, *, power: bool = False) -> tuple[MonthTrial, MonthTrial]:
    """As it is, and as what must be found out."""
    with model_of(folder) as place:
        month = Month.begun(place)
        kills = MANY_MONTH_KILLS
        return month.trial("1", kills, power=power), month.trial("2", kills, power=power, plain=True)
