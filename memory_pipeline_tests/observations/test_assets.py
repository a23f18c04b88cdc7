"""What the UI is told of a day's observations."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl

from memory_pipeline.days import today
from memory_pipeline.defs.observations import calls_by_day
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, workspace


def test_calls_made_before_today_are_read_once_and_those_of_today_for_each_day(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    now = today(settings.zone)
    yesterday = now - timedelta(days=1)

    def made(day: object, call: str, cost: float) -> None:
        row = {"day": day, "call_id": call, "stage": "observations", "for_day": DAY, "cached": False, "cost_usd": cost}
        lake.replace("ledger", pl.DataFrame([row], schema=TABLES["ledger"].columns), [day])  # type: ignore[list-item]

    made(yesterday, "a", 0.5)
    calls_for = calls_by_day(Workspace(settings, lake))
    lake.path("ledger", yesterday).write_bytes(b"not read again")
    assert calls_for(DAY)["cost_usd"].to_list() == [0.5]
    made(now, "b", 0.25)
    assert calls_for(DAY)["cost_usd"].sum() == 0.75
    assert calls_for(now).is_empty()
