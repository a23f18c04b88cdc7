"""Runs that were killed or started twice: the next one goes on where they ended and nothing is lost."""

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from filelock import FileLock

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.cli.command import Command, memory, memory_json
from memory_pipeline_tests.prepared import made_once

RUN = ("run", "--all", "--sessions", str(EXAMPLES / "pi"))


def wait_for(found: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)


def rows(home: Path) -> dict[str, list[Any]]:
    """Every derived table but the record of vectors, which names the very index; without when things were decided."""
    lake = Lake(home / ".memory-pipeline" / "lake")
    return {"events": lake.read("events").filter(pl.col("kind") != "shown").drop("happened_at").rows()} | {
        name: lake.read(name).rows() for name in TABLES if name not in ("files", "embeddings", "ledger", "events")
    }


def undisturbed(home: Path) -> None:
    assert memory(home, *RUN).returncode == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    return made_once(tmp_path_factory, "whole", undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["observations", *nightly("messages", "embeddings", "reflections")])
def test_a_run_that_was_killed_is_finished_by_the_next(tmp_path: Path, whole: Path, table: str) -> None:
    home = tmp_path / "home"
    lake = home / ".memory-pipeline" / "lake"
    lake.mkdir(parents=True)
    shutil.copy(whole / ".memory-pipeline/lake/salt", lake / "salt")  # ids of messages that have none depend on it
    run = Command(home, *RUN)
    wait_for(lambda: any((home / ".memory-pipeline" / "lake" / table).glob("*.parquet")))
    run.send_signal(signal.SIGKILL)
    assert run.result().returncode == -signal.SIGKILL
    summary = memory_json(home, *RUN)
    assert summary["failure"] is None
    assert summary["checks"] == {"passed": 58, "failed": 0, "failing": {}}
    assert rows(home) == rows(whole)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["segments", *nightly("day_distillations")])
def test_ctrl_c_ends_a_run_with_130_and_what_is_finished_stays(tmp_path: Path, whole: Path, table: str) -> None:
    home = tmp_path / "home"
    lake = home / ".memory-pipeline" / "lake"
    lake.mkdir(parents=True)
    shutil.copy(whole / ".memory-pipeline/lake/salt", lake / "salt")
    run = Command(home, *RUN)
    wait_for(lambda: any((lake / table).glob("*.parquet")))
    done = {path.name for path in (lake / table).glob("*.parquet")}
    run.send_signal(signal.SIGINT)
    ended = run.result()
    assert ended.returncode == 130, ended.stderr
    assert "The run was stopped" in ended.stderr and "Traceback" not in ended.stderr
    assert done <= {path.name for path in (lake / table).glob("*.parquet")}
    assert not list(lake.rglob("*.tmp"))
    summary = memory_json(home, *RUN)
    assert summary["failure"] is None and summary["checks"]["failed"] == 0
    assert rows(home) == rows(whole)


def test_a_second_run_at_the_same_time_is_told_to_wait(tmp_path: Path) -> None:
    """The test holds the lock that a run holds, so that it does not depend on who is faster."""
    dagster_home = tmp_path / ".memory-pipeline" / "dagster"
    dagster_home.mkdir(parents=True)
    with FileLock(dagster_home / "run.lock"):
        told = memory(tmp_path, *RUN)
    assert told.returncode == 1
    assert "Another `memory run` is using" in told.stderr
    assert not (tmp_path / ".memory-pipeline" / "lake" / "sessions").exists()


@pytest.mark.slow
def test_two_first_runs_leave_a_workspace_that_works(tmp_path: Path) -> None:
    """Whoever comes second is told to wait or finds everything done; Dagster's databases are made once."""
    codes = [run.result().returncode for run in [Command(tmp_path, *RUN), Command(tmp_path, *RUN)]]
    assert 0 in codes
    summary = memory_json(tmp_path, *RUN)
    assert summary["failure"] is None
    assert memory_json(tmp_path, "status")["failing_checks"] == {}


@pytest.mark.nightly
@pytest.mark.slow
def test_what_a_session_says_later_is_there_after_the_next_run(tmp_path: Path) -> None:
    """A file grows, and shrinks again: each time its day is built anew and its checks are stored anew."""
    home, sessions = tmp_path / "home", tmp_path / "sessions"
    sessions.mkdir()
    path = sessions / "a.jsonl"
    source = next(EXAMPLES.glob("pi/2026-03-05*.jsonl")).read_text("utf-8")
    line = next(line for line in reversed(source.splitlines()) if '"role":"user"' in line)
    text = line[line.index('"text":"') + 8 : line.index('"', line.index('"text":"') + 8)]
    later = line.replace(text, "from now on every release must also be announced in the status channel")
    later = later.replace("2026-03-05T10:", "2026-03-05T11:")
    for content, expected in ((source, 0), (source + later + "\n", 1), (source, 0)):
        path.write_text(content, "utf-8")
        summary = memory_json(home, "run", "--sessions", str(sessions))
        assert summary["failure"] is None
        assert summary["checks"]["failed"] == 0
        query = "select count(*) n from observations where contains(text, 'announced in the status channel')"
        assert memory_json(home, "sql", query) == [{"n": expected}]
