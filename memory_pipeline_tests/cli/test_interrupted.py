"""Runs that were killed or started twice: the next one goes on where they ended and nothing is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cli.command import memory, memory_json

COMMAND = [sys.executable, "-m", "memory_pipeline.cli.main", "run", "--all", "--sessions", str(EXAMPLES)]


def start(home: Path) -> subprocess.Popen[bytes]:
    home.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
    return subprocess.Popen(COMMAND, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def may_be_interrupted() -> None:
    """What runs in the background of a shell inherits that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_for(found: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)


def rows(home: Path) -> dict[str, list[Any]]:
    """Every derived table but the record of vectors, which names the very index."""
    lake = Lake(home / ".memory-pipeline" / "lake")
    return {
        name: lake.read(name).rows() for name in TABLES if name not in ("files", "embeddings", "ledger", "showings")
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    home = tmp_path_factory.mktemp("whole")
    assert memory(home, "run", "--all", "--sessions", str(EXAMPLES)).returncode == 0
    return home


@pytest.mark.parametrize("table", ["messages", "observations", "embeddings", "reflections"])
def test_a_run_that_was_killed_is_finished_by_the_next(tmp_path: Path, whole: Path, table: str) -> None:
    home = tmp_path / "home"
    lake = home / ".memory-pipeline" / "lake"
    lake.mkdir(parents=True)
    shutil.copy(whole / ".memory-pipeline/lake/salt", lake / "salt")  # ids of messages that have none depend on it
    process = start(home)
    wait_for(lambda: any((home / ".memory-pipeline" / "lake" / table).glob("*.parquet")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    summary = memory_json(home, "run", "--all", "--sessions", str(EXAMPLES))
    assert summary["failure"] is None
    assert summary["checks"] == {"passed": 54, "failed": 0, "failing": {}}
    assert rows(home) == rows(whole)


@pytest.mark.parametrize("table", ["segments", "day_distillations"])
def test_ctrl_c_ends_a_run_with_130_and_what_is_finished_stays(tmp_path: Path, whole: Path, table: str) -> None:
    home = tmp_path / "home"
    lake = home / ".memory-pipeline" / "lake"
    lake.mkdir(parents=True)
    shutil.copy(whole / ".memory-pipeline/lake/salt", lake / "salt")
    process = subprocess.Popen(
        COMMAND,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=may_be_interrupted,
    )
    wait_for(lambda: any((lake / table).glob("*.parquet")))
    done = {path.name for path in (lake / table).glob("*.parquet")}
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 130, stderr
    assert "The run was stopped" in stderr and "Traceback" not in stderr
    assert done <= {path.name for path in (lake / table).glob("*.parquet")}
    assert not list(lake.rglob("*.tmp"))
    summary = memory_json(home, "run", "--all", "--sessions", str(EXAMPLES))
    assert summary["failure"] is None and summary["checks"]["failed"] == 0
    assert rows(home) == rows(whole)


def test_a_second_run_at_the_same_time_is_told_to_wait(tmp_path: Path) -> None:
    """The test holds the lock that a run holds, so that it does not depend on who is faster."""
    dagster_home = tmp_path / ".memory-pipeline" / "dagster"
    dagster_home.mkdir(parents=True)
    with FileLock(dagster_home / "run.lock"):
        told = memory(tmp_path, "run", "--all", "--sessions", str(EXAMPLES))
    assert told.returncode == 1
    assert "Another `memory run` works on" in told.stderr
    assert not (tmp_path / ".memory-pipeline" / "lake" / "sessions").exists()


def test_two_first_runs_leave_a_workspace_that_works(tmp_path: Path) -> None:
    """Whoever comes second is told to wait or finds everything done; Dagster's databases are made once."""
    codes = [process.wait(timeout=120) for process in [start(tmp_path), start(tmp_path)]]
    assert 0 in codes
    summary = memory_json(tmp_path, "run", "--all", "--sessions", str(EXAMPLES))
    assert summary["failure"] is None
    assert summary["checks"] == {"passed": 54, "failed": 0, "failing": {}}


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
