"""The ledger: a row a call, on the day on which it was made; safe against others who write it at the same time."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import pytest

from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.llm.ledger import Ledger, Usage
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.conftest import utc

FOR_DAY = date(2025, 3, 5)
KEY = "0123456789abcdef" * 4


class Clock:
    def __init__(self, at: str) -> None:
        self.at = utc(at)

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def settings() -> Settings:
    return Settings(timezone="America/New_York", daily_budget_tokens=1000)


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return Lake(settings.lake_dir)


@pytest.fixture
def clock() -> Clock:
    return Clock("2026-01-02T03:00:00")


@pytest.fixture
def ledger(lake: Lake, settings: Settings, clock: Clock) -> Ledger:
    return Ledger(Workspace(settings, lake), now=clock)


def worst(tokens: int, usd: float | None = None) -> Usage:
    return Usage(tokens // 2, tokens - tokens // 2, usd)


def test_a_call_belongs_to_the_local_day_on_which_it_was_made(ledger: Ledger, lake: Lake) -> None:
    ledger.reserve("observations", "m", FOR_DAY, KEY, worst(10))
    assert lake.days("ledger") == [date(2026, 1, 1)]  # ten in the evening in New York
    [row] = lake.read("ledger").to_dicts()
    assert (row["for_day"], row["asked_at"], row["state"]) == (FOR_DAY, utc("2026-01-02T03:00:00"), "reserved")


def test_a_call_over_midnight_is_settled_on_the_day_on_which_it_was_made(
    ledger: Ledger, lake: Lake, clock: Clock
) -> None:
    place = ledger.reserve("observations", "m", FOR_DAY, KEY, worst(10))
    clock.at = utc("2026-01-02T06:00:00")
    ledger.settle(place, Usage(3, 2, None), 9.5)
    assert lake.days("ledger") == [date(2026, 1, 1)]
    [row] = lake.read("ledger").to_dicts()
    assert (row["state"], row["input_tokens"], row["output_tokens"], row["seconds"]) == ("done", 3, 2, 9.5)


def test_every_day_has_a_budget_of_its_own(ledger: Ledger, clock: Clock) -> None:
    ledger.reserve("observations", "m", FOR_DAY, KEY, worst(900))
    with pytest.raises(BudgetReachedError, match=r"budget of 2026-01-01 .* 900 tokens .* may take 101 tokens"):
        ledger.reserve("observations", "m", FOR_DAY, KEY, worst(101))
    ledger.reserve("observations", "m", FOR_DAY, KEY, worst(100))  # just what is left
    clock.at = utc("2026-01-02T05:00:00")
    ledger.reserve("observations", "m", FOR_DAY, KEY, worst(1000))


def test_what_is_not_made_is_not_written_down(ledger: Ledger, lake: Lake) -> None:
    with pytest.raises(
        BudgetReachedError, match=r"One call may take 1,001 tokens, but .* raise it, or .* MEMORY_CHUNK_TOKENS"
    ):
        ledger.reserve("observations", "m", FOR_DAY, KEY, worst(1001))
    with pytest.raises(
        BudgetReachedError, match=r"One call may take 2\.00 USD, but MEMORY_DAILY_BUDGET_USD allows 1\.00 USD"
    ):
        ledger.reserve("observations", "m", FOR_DAY, KEY, worst(1, 2.0))
    assert lake.read("ledger").is_empty()


def test_all_stages_share_the_budget(lake: Lake, settings: Settings, clock: Clock) -> None:
    Ledger(Workspace(settings, lake), now=clock).reserve("observations", "m", FOR_DAY, KEY, worst(600))
    with pytest.raises(BudgetReachedError):
        Ledger(Workspace(settings, lake), now=clock).reserve("reflections", "other", FOR_DAY, KEY, worst(600))


def test_kept_answers_are_noted_once_a_day_and_count_nothing(
    ledger: Ledger, lake: Lake, settings: Settings, clock: Clock
) -> None:
    for each in (ledger, ledger, Ledger(Workspace(settings, lake), now=clock)):
        each.note_cached("observations", "m", FOR_DAY, KEY, Usage(5000, 5000, 1.0))
    assert lake.read("ledger").select("cached", "state", "cost_usd", "input_tokens").rows() == [
        (True, "done", 0.0, 5000)
    ]
    ledger.reserve("observations", "m", FOR_DAY, KEY, worst(1000))  # the whole budget is left
    clock.at = utc("2026-01-03T12:00:00")
    ledger.note_cached("observations", "m", FOR_DAY, KEY, Usage(5000, 5000, 1.0))
    assert lake.read("ledger").height == 3


def test_rows_from_before_the_columns_of_state_count(ledger: Ledger, lake: Lake) -> None:
    import polars as pl

    day = date(2026, 1, 1)
    old = {"day": [day], "call_id": ["old"], "input_tokens": [990], "output_tokens": [5], "cached": [None]}
    lake.replace("ledger", pl.DataFrame(old, schema_overrides={"cached": pl.Boolean()}), [day])
    with pytest.raises(BudgetReachedError):
        ledger.reserve("observations", "m", FOR_DAY, KEY, worst(6))


def test_a_damaged_day_stops_before_it_costs(ledger: Ledger, lake: Lake) -> None:
    path = lake.path("ledger", date(2026, 1, 1))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half")
    with pytest.raises(
        DamagedTableError, match=r"2026-01-01\.parquet cannot be read\. Delete it, or restore a copy of it"
    ):
        ledger.reserve("observations", "m", FOR_DAY, KEY, worst(10))


def test_processes_never_pass_the_budget_together(settings: Settings) -> None:
    """Three processes ask for 100 at a time until 1,000 are reserved."""
    code = """
from datetime import date
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.llm.ledger import (Ledger, Usage)
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
settings = Settings(daily_budget_tokens=1000)
ledger = Ledger(Workspace.open(settings))
try:
    while True:
        ledger.reserve("observations", "m", date(2025, 3, 5), "0123", Usage(50, 50, None))
except BudgetReachedError:
    pass
"""
    command = [sys.executable, "-c", code]
    runs = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(3)]
    assert [run.wait(60) for run in runs] == [0, 0, 0]
    found = Lake(settings.lake_dir).read("ledger")
    assert (found.height, found["input_tokens"].sum() + found["output_tokens"].sum()) == (10, 1000)
    assert found["call_id"].n_unique() == 10
