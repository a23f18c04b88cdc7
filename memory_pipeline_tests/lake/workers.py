"""What workers that share a lake do, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from memory_pipeline.cli.push import push
from memory_pipeline.lake.object_storage import ObjectStorage
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.llm.errors import BudgetReachedError
from memory_pipeline.llm.ledger import Ledger, Usage
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, Row, at, decision, observation

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


def started(env: Mapping[str, str], work: Callable[..., None], *args: Any) -> BaseProcess:
    """A process that does the work with these variables."""
    process = _CONTEXT.Process(target=_work, args=(dict(env), work, args))
    process.start()
    return process


def _work(env: dict[str, str], work: Callable[..., None], args: tuple[Any, ...]) -> None:
    os.environ.update(env)
    work(*args)


def frame(table: str, *rows: Row) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES[table].columns)


def write_days(url: str, number: int, times: int) -> None:
    """The same day again and again, with rows that name the writer."""
    lake = Lake(ObjectStorage(url))
    for _ in range(times):
        rows = [observation(f"Writer {number}, line {line}.") for line in range(40)]
        lake.replace("observations", frame("observations", *rows), [DAY])


def spend(url: str, workspace: Path) -> None:
    """Make calls until the budget is used up; every other one is settled."""
    settings = Settings(workspace=workspace, lake=url, daily_budget_tokens=1000)
    ledger = Ledger(Workspace(settings, Lake.from_settings(settings)), now=at)
    try:
        for number in range(30):
            place = ledger.reserve("observations", "m", DAY, f"{number}", Usage(30, 20, None))
            if number % 2:
                ledger.settle(place, Usage(30, 20, None), 0.1)
    except BudgetReachedError:
        return
    raise AssertionError("the budget was never used up")


def push_from(workspace: Path, url: str, folder: Path) -> None:
    """What a laptop with this workspace and these sessions does."""
    with patch.dict(os.environ, {"MEMORY_WORKSPACE": f"{workspace}"}):  # pushing sets more variables
        push(url, [folder])


def a_run(url: str) -> None:
    """Writes as stages and a review do: a day of a table, events that are added, a table that is one file."""
    lake = Lake(ObjectStorage(url))
    lake.replace("observations", frame("observations", observation("Never use npm.")), [DAY], {DAY: "f"})
    new = frame("events", decision("p-20250305-001"), decision("p-20250305-002"))
    lake.update("events", lambda rows: pl.concat([rows, new]).unique("proposal_id"), DAY)
    lake.replace_all("files", pl.DataFrame({"path": ["/a"]}))
