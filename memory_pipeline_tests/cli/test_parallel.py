"""`memory backfill --workers`: the same tables as by one process, also when a worker is killed or a user stops it."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.cli import running
from memory_pipeline.cli.parallel import MAX_DAYS_PER_RUN, days_of, parts_of
from memory_pipeline.days import today
from memory_pipeline.definitions import defs
from memory_pipeline.lake.object_storage import ObjectStorage
from memory_pipeline.planning import Stages
from memory_pipeline.settings import load_settings
from memory_pipeline_tests import postgres
from memory_pipeline_tests.cli.command import Command, memory
from memory_pipeline_tests.cli.test_backfill import talk
from memory_pipeline_tests.conftest import write_session
from memory_pipeline_tests.lake.object_server import BUCKET, object_storage
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.prepared import made_once
from memory_pipeline_tests.rows import workspace

DAYS = tuple(today(UTC) - timedelta(days=back) for back in (30, 20, 19))
"""Not long ago: each call reports the days since then on which nothing was said."""
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


class Model:
    """What was asked of one on loopback, and what is to happen when it is asked next."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.then: Callable[[], None] = lambda: None

    def answer(self, request: Asked) -> Say:
        from memory_pipeline_tests.cli.test_model import quoting

        self.asked[request.prompt] += 1
        then, self.then = self.then, lambda: None
        then()
        return Say(quoting(request), tokens=(3_000, 1_000))

    @property
    def again(self) -> int:
        """How many requests were sent that had been sent before."""
        return sum(self.asked.values()) - len(self.asked)


@contextmanager
def a_model() -> Iterator[tuple[Model, dict[str, str]]]:
    """A model, and the environment of a command that asks it; that does not change what rows are made from."""
    from memory_pipeline_tests.cli.test_model import environment

    model = Model()
    with openai_server(model.answer) as server:
        env = environment(server)
        yield model, env | {"OPENAI_BASE_URL": env.pop("OBSERVER_BASE_URL")}


def by_one(home: Path) -> None:
    for number, day in enumerate(DAYS):
        write_session(home / "sessions" / f"{day}.jsonl", *talk(day, number))
    with a_model() as (model, env):
        done = memory(home, "backfill", "--yes", "--sessions", f"{home / 'sessions'}", env=env)
    assert done.returncode == 0, done.stderr
    assert len(model.asked) == len(DAYS) and not model.again


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
def test_two_workers_make_the_same_bytes_and_pay_once_also_when_they_are_stopped_and_one_is_killed(
    tmp_path: Path, whole: Path
) -> None:
    lake = like(whole, tmp_path)
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
    with a_model() as (model, env):
        command = Command(tmp_path, *call, env=env)
        wait_for(lambda: model.asked)
        workers = workers_of(command)
        assert len(workers) == 2
        command.send_signal(signal.SIGINT)
        stopped = command.result()
        assert stopped.returncode == 130 and "The run was stopped" in stopped.stderr, stopped.stderr
        assert "3 days in 3 runs of own_day_job, 2 at a time." in stopped.stderr and "Traceback" not in stopped.stderr
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
        assert not list(lake.rglob("*.tmp")) and not any((lake / "reflections").glob("*.parquet"))

        model.asked.clear()
        model.then = lambda: os.kill(workers_of(command)[0], signal.SIGKILL)  # its request is out, or its neighbour's
        command = Command(tmp_path, *call, env=env)
        done = command.result()
        assert done.returncode == 0, done.stderr
        assert "Its process ended by signal 9 before the run did." in done.stderr
        assert model.again <= 1  # nobody has the answer of the one that was out
        assert stored(tmp_path) == stored(whole)

        model.asked.clear()
        again = memory(tmp_path, *call, env=env)
        assert "3 are up to date, none are left" in again.stderr and " runs of " not in again.stderr
        assert not model.asked


def stored_in(storage: ObjectStorage) -> dict[str, bytes]:
    """Every file of every table, as it is in the bucket."""
    left_out = (*WITH_CLOCK, "backups", "marks")
    files = [file for file in storage.all_files() if file.key.partition("/")[0] not in left_out]
    return {file.key: storage.read(file) for file in files}


def record_in_files(_: Path) -> AbstractContextManager[dict[str, str]]:
    return nullcontext({})


@contextmanager
def record_of_postgres(home: Path) -> Iterator[dict[str, str]]:
    with postgres.running() as server:
        postgres.record_in_postgres(workspace(home / ".memory-pipeline")[0])
        yield server.database("dagster")


@pytest.mark.slow
@pytest.mark.parametrize("record", [record_in_files, record_of_postgres])
def test_two_workers_over_a_lake_in_a_bucket_make_the_same_bytes_and_pay_once(
    tmp_path: Path,
    whole: Path,
    monkeypatch: pytest.MonkeyPatch,
    record: Callable[[Path], AbstractContextManager[dict[str, str]]],
) -> None:
    lake = like(whole, tmp_path)
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
    with a_model() as (model, env), object_storage() as server, record(tmp_path) as of_record:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        url = f"s3://{BUCKET}/{tmp_path.name}"  # the storage of a process outlives its servers
        done = memory(tmp_path, *call, env=env | server.env | of_record | {"MEMORY_LAKE": url})
        assert done.returncode == 0, done.stderr
        assert "3 days in 3 runs of own_day_job, 2 at a time." in done.stderr
        assert len(model.asked) == len(DAYS) and not model.again
        assert stored_in(ObjectStorage(url)) == stored(whole)
    assert not list(lake.rglob("*.parquet"))
