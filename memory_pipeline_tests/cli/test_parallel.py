"""`memory backfill --workers`: the same tables as by one process, also when a worker is killed or a user stops it."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cli import running
from memory_pipeline.cli.parallel import MAX_DAYS_PER_RUN, days_of, parts_of
from memory_pipeline.definitions import defs
from memory_pipeline.planning import Stages
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cli.command import Command, memory
from memory_pipeline_tests.cli.test_backfill import DAYS, write
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.prepared import made_once

WITH_CLOCK = ("decisions", "ledger", "showings")
"""Tables that tell when a run was."""


def like(whole: Path, home: Path) -> Path:
    """A workspace that has not been run, with the random names of another."""
    lake, index = home / ".memory-pipeline/lake", home / ".memory-pipeline/index"
    lake.mkdir(parents=True)
    index.mkdir()
    (lake / "salt").write_bytes((whole / ".memory-pipeline/lake/salt").read_bytes())
    for mark in (whole / ".memory-pipeline/index").glob("*.generation"):
        (index / mark.name).write_text(mark.read_text("utf-8").partition("\n")[0], "utf-8")
    return lake


def stored(home: Path) -> dict[str, bytes]:
    """Every file of every table, as it is on the disk."""
    lake = home / ".memory-pipeline/lake"
    files = {path.relative_to(lake): path for path in lake.rglob("*.parquet")}
    return {f"{name}": path.read_bytes() for name, path in files.items() if name.parts[0] not in WITH_CLOCK}


def by_one(home: Path) -> None:
    write(home / "sessions")
    assert memory(home, "backfill", "--yes", "--sessions", f"{home / 'sessions'}").returncode == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By one process, as without the option."""
    return made_once(tmp_path_factory, "backfilled_by_one", by_one)


def workers_of(command: Command) -> list[int]:
    """The process ids of its workers that are there now."""
    pid = command.process.pid
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return [int(child) for child in found if b"spawn_main" in _called(child)]


def _called(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_for(found: Callable[[], object]) -> None:
    end = time.monotonic() + 300
    while not found():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)


@given(st.sets(st.dates(date(2025, 1, 1), date(2025, 12, 31)), min_size=1), st.integers(2, 8))
def test_each_day_is_in_one_part_and_no_other_day_is(days: set[date], workers: int) -> None:
    parts = parts_of(sorted(days), workers)
    assert parts == sorted(parts)
    assert [day for part in parts for day in days_of([part])] == sorted(days)
    assert all((last - first).days < MAX_DAYS_PER_RUN for first, last in parts)


def test_the_jobs_of_a_parallel_backfill_are_there_and_have_the_stages_that_report() -> None:
    names = (running.DAY_JOB, running.OWN_DAY_JOB, running.LOOK_BACK_JOB, running.SUMMARIES_JOB)
    jobs = {name: defs().resolve_job_def(name).asset_layer.executable_asset_keys for name in names}
    stages = {stage.tables: stage for stage in Stages.from_settings(load_settings()).all()}
    for name in names:
        made = {key.to_user_string() for key in jobs[name]}
        assert sum(not made.isdisjoint(tables) for tables in stages) == running.STAGES_WITH_PROGRESS[name]
    own = Stages.from_settings(load_settings()).of_own_day()
    of_own_day = {table for stage in own for table in stage.tables}
    assert {key.to_user_string() for key in jobs[running.OWN_DAY_JOB]} == of_own_day


def test_a_number_of_workers_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    refused = memory(tmp_path, "backfill", "--workers", "0")
    assert refused.returncode == 2 and "--workers" in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.slow
def test_two_workers_make_the_same_bytes_as_one_process_also_when_one_is_killed(tmp_path: Path, whole: Path) -> None:
    lake = like(whole, tmp_path)
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
    command = Command(tmp_path, *call)
    wait_for(lambda: any((lake / "messages").glob("*.parquet")))
    os.kill(workers_of(command)[0], signal.SIGKILL)
    done = command.result()
    assert done.returncode == 0, done.stderr
    assert "6 days in 5 runs of own_day_job, 2 at a time." in done.stderr
    assert "Its process ended by signal 9 before the run did." in done.stderr
    assert stored(tmp_path) == stored(whole)
    again = memory(tmp_path, *call)
    assert "5 are up to date, none are left" in again.stderr and " runs of " not in again.stderr


@pytest.mark.slow
def test_ctrl_c_stops_all_workers_and_the_next_call_goes_on(tmp_path: Path, whole: Path) -> None:
    lake = like(whole, tmp_path)
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
    command = Command(tmp_path, *call)
    wait_for(lambda: any((lake / "messages").glob("*.parquet")))
    workers = workers_of(command)
    assert len(workers) == 2
    command.send_signal(signal.SIGINT)
    stopped = command.result()
    assert stopped.returncode == 130 and "The run was stopped" in stopped.stderr, stopped.stderr
    assert "Traceback" not in stopped.stderr and not list(lake.rglob("*.tmp"))
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert not any((lake / "reflections").glob("*.parquet"))
    assert memory(tmp_path, *call).returncode == 0
    assert stored(tmp_path) == stored(whole)


@pytest.mark.slow
def test_a_killed_worker_pays_for_no_answer_twice(tmp_path: Path) -> None:
    from memory_pipeline_tests.cli.test_model import environment, quoting

    asked: Counter[str] = Counter()
    home = tmp_path / "home"

    def answer(request: Asked) -> Say:
        asked[request.prompt] += 1
        if sum(asked.values()) == 2:  # this one is out when its worker is killed, or its neighbour is
            os.kill(workers_of(command)[0], signal.SIGKILL)
        return Say(quoting(request), tokens=(3_000, 1_000))

    with openai_server(answer) as server:
        env = environment(server)
        call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{write(tmp_path / 'sessions')}")
        command = Command(home, *call, env=env)
        done = command.result()
        assert done.returncode == 0, done.stderr
        assert "ended by signal 9" in done.stderr
        assert len(asked) == len(DAYS)
        assert sum(asked.values()) <= len(DAYS) + 1  # nobody has the answer of the one that was out
        assert memory(home, *call, env=env).returncode == 0
        assert sum(asked.values()) <= len(DAYS) + 1
