"""A backfill in parallel by Dagster's own means: the same tables as by `memory backfill`, and each answer paid once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

from memory_pipeline.days import lookback, today
from memory_pipeline.defs.orchestration import DAYS_POOL
from memory_pipeline.defs.runs import dagster_yaml, instance_of, prepare_home
from memory_pipeline.defs.web_server import MODULE
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.settings import load_settings, loading
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.cli.test_backfill import talk
from memory_pipeline_tests.cli.test_interrupted import wait_for
from memory_pipeline_tests.conftest import write_session
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.loaded import defs
from memory_pipeline_tests.postgres import YAML, free_port, is_open, running
from memory_pipeline_tests.prepared import made_once
from memory_pipeline_tests.rows import workspace

CELERY = Path(__file__).parents[2] / "deploy/dagster.celery.yaml"
DAYS = tuple(today(UTC) - timedelta(days=back) for back in (30, 20, 19))
WITH_CLOCK = ("events", "ledger")
"""Tables that tell when a run was."""
SECONDS = 900.0

needs_redis = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server; `make redis` installs it")
Variables = AbstractContextManager[dict[str, str]]


def stored(home: Path) -> dict[str, list[Any]]:
    """The rows of every table."""
    lake = Lake(home / ".memory-pipeline/lake")
    return {table: lake.read(table).rows() for table in TABLES if table not in WITH_CLOCK}


@contextmanager
def a_model(asked: Counter[str]) -> Iterator[dict[str, str]]:
    """The environment of a command that asks it; that does not change what rows are made from."""
    from memory_pipeline_tests.cli.test_model import environment, quoting

    def answer(request: Asked) -> Say:
        asked[request.prompt] += 1
        return Say(quoting(request), tokens=(3_000, 1_000))

    with openai_server(answer) as server:
        env = environment(server)
        yield env | {"OPENAI_BASE_URL": env.pop("OBSERVER_BASE_URL")}


def by_the_command(home: Path) -> None:
    for number, day in enumerate(DAYS):
        write_session(home / "sessions" / f"{day}.jsonl", *talk(day, number))
    with a_model(Counter()) as env:
        done = memory(home, "backfill", "--yes", "--sessions", f"{home / 'sessions'}", env=env)
    assert done.returncode == 0, done.stderr


def with_names_of(whole: Path, home: Path) -> None:
    """Make a workspace that has not been run, with the random names of another."""
    lake, index = home / ".memory-pipeline/lake", home / ".memory-pipeline/index"
    lake.mkdir(parents=True)
    index.mkdir()
    (lake / "salt").write_bytes((whole / ".memory-pipeline/lake/salt").read_bytes())
    for mark in (whole / ".memory-pipeline/index").glob("*.generation"):
        (index / mark.name).write_text(mark.read_text("utf-8").partition("\n")[0], "utf-8")


def backfill(instance: dg.DagsterInstance, home: Path) -> set[frozenset[str]]:
    """Materialize the range as the UI does, with the daemons in this process; the first days of runs that went at the
    same time."""
    graph = defs.get_repository_def().asset_graph
    assets = [key for key in graph.executable_asset_keys if type(graph.get(key).partitions_def) is DAILY]
    together = set[frozenset[str]]()
    with create_test_daemon_workspace_context(ModuleTarget(MODULE, None, f"{home}", None), instance) as context:
        queue, end = QueuedRunCoordinatorDaemon(interval_seconds=1), time.monotonic() + SECONDS
        request: Any = context.create_request_context()
        asked = PartitionBackfill.from_asset_partitions(
            backfill_id="ours",
            asset_graph=request.asset_graph,
            partition_names=[f"{day}" for day in lookback(DAYS[-1], (DAYS[-1] - DAYS[0]).days + 1)],
            asset_selection=assets,
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
        instance.add_backfill(asked)
        while (now := instance.get_backfill("ours")) and now.status is BulkActionStatus.REQUESTED:
            assert time.monotonic() < end, "the backfill did not end"
            list(execute_backfill_iteration(context, queue._logger))
            list(queue.run_iteration(context))
            going = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
            together.add(frozenset(run.tags["dagster/asset_partition_range_start"] for run in going))
            time.sleep(0.1)
    assert now and now.status is BulkActionStatus.COMPLETED_SUCCESS, now and now.error
    return together


DAILY = dg.DailyPartitionsDefinition


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "backfilled_by_the_command", by_the_command)


@contextmanager
def record_in_files(_: Path) -> Iterator[dict[str, str]]:
    yield {}


@contextmanager
def record_in_postgres(home: Path) -> Iterator[dict[str, str]]:
    with running() as server:
        shutil.copy(YAML, home / "dagster.yaml")
        yield server.database("dagster")


@contextmanager
def runs_on_celery(home: Path) -> Iterator[dict[str, str]]:
    """Two workers that take a run at a time from Redis on loopback."""
    shutil.copy(CELERY, home / "dagster.yaml")
    port = free_port()
    server = ["redis-server", "--bind", "127.0.0.1", "--port", f"{port}", "--save", "", "--dir", f"{home}"]
    redis = subprocess.Popen(server, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: is_open(port))
        yield {"CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/0"}
    finally:
        redis.terminate()
        redis.wait()


@contextmanager
def celery_workers(number: int) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "dagster_celery.app", "worker", "-c", "1", "-Q", "dagster"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    found = [
        subprocess.Popen([*command, "--prefetch-multiplier", "1", "-n", f"{one}@127.0.0.1"], **quiet)  # type: ignore[call-overload]
        for one in range(number)
    ]
    try:
        yield
    finally:
        for process in found:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources` is deprecated")
# dagster-celery makes its task anew for every run, of which Celery 5.7 warns
@pytest.mark.filterwarnings("ignore:Task name 'execute_job' is already registered")
@pytest.mark.parametrize(
    ("engine", "workers"),
    [pytest.param(runs_on_celery, 2, marks=needs_redis), *nightly((record_in_files, 0), (record_in_postgres, 0))],
)
def test_a_backfill_in_parallel_makes_the_same_tables(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, engine: Callable[[Path], Variables], workers: int
) -> None:
    with_names_of(whole, tmp_path)
    said, asked = f"{whole / 'sessions'}", Counter[str]()
    settings = workspace(tmp_path / ".memory-pipeline")[0]
    dagster_home = prepare_home(settings)
    with a_model(asked) as env, engine(dagster_home) as of_engine:
        told = memory(tmp_path, "backfill", "--sessions", said, env=env | of_engine)  # it finds the files
        assert "3 are left" in told.stderr, told.stderr
        own = {"HOME": f"{tmp_path}", "MEMORY_SESSION_DIRS": said, "DAGSTER_HOME": f"{dagster_home}", "TZ": "UTC"}
        own |= {"MEMORY_DEFAULT_SESSION_DIRS": "false", "MEMORY_WORKSPACE": f"{settings.workspace}"}
        for name, value in (env | of_engine | own).items():
            monkeypatch.setenv(name, value)
        with instance_of(load_settings()) as instance, celery_workers(workers) if workers else nullcontext():
            instance.event_log_storage.set_concurrency_slots(DAYS_POOL, 2)
            together = backfill(instance, dagster_home)
        assert frozenset(map(str, (DAYS[0], DAYS[0] + timedelta(days=10)))) in together
        assert len(asked) == len(DAYS) == asked.total()

        done = memory(tmp_path, "backfill", "--yes", "--sessions", said, env=env | of_engine)
        assert done.returncode == 0 and "3 are up to date, none are left" in done.stderr, done.stderr
        assert asked.total() == len(DAYS)
    assert stored(tmp_path) == stored(whole)


def test_the_file_for_celery_is_the_default_but_for_who_executes_and_watches_runs() -> None:
    mine, default = (yaml.safe_load(path.read_text("utf-8")) for path in (CELERY, dagster_yaml()))
    assert mine.pop("run_launcher")["class"] == "CeleryRunLauncher"
    assert mine == default | {"run_monitoring": {"enabled": False}}


def test_without_the_extra_it_is_said_which_one_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _ = workspace(tmp_path)
    shutil.copy(CELERY, prepare_home(settings) / "dagster.yaml")
    assert loading.missing_extras(settings) == []
    monkeypatch.setattr(loading, "find_spec", lambda module: None if module == "dagster_celery" else module)
    (sentence,) = loading.missing_extras(settings)
    assert sentence.endswith("names Celery, whose packages are not installed: `pip install 'memory-pipeline[celery]'`.")
