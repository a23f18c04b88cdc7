"""`memory backfill --workers` with dagster-celery: real workers and a real Redis on loopback, killed and away."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from memory_pipeline_tests.cli.command import Command, memory
from memory_pipeline_tests.cli.test_parallel import by_one, like, stored, wait_for
from memory_pipeline_tests.prepared import made_once

DEPLOY = Path(__file__).parents[2] / "deploy/dagster.celery.yaml"
needs_redis = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server; `make redis` installs it")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "backfilled_by_one", by_one)


@contextmanager
def redis(port: int, folder: Path) -> Iterator[None]:
    command = ["redis-server", "--bind", "127.0.0.1", "--port", f"{port}", "--save", "", "--dir", f"{folder}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: is_open(port))
        yield
    finally:
        process.terminate()
        process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def celery_workers(names: tuple[str, ...], env: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Each with one process for runs, in a group of its own."""
    worker = [sys.executable, "-m", "celery", "-A", "dagster_celery.app", "worker", "-c", "1", "-Q", "dagster"]
    with_names = [[*worker, "--prefetch-multiplier", "1", "-n", f"{name}@127.0.0.1"] for name in names]
    found = [
        subprocess.Popen(command, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in with_names
    ]
    try:
        yield found
    finally:
        for process in found:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@needs_redis
@pytest.mark.slow
def test_workers_of_celery_make_the_same_bytes_also_when_the_broker_was_away_and_one_is_killed(
    tmp_path: Path, whole: Path
) -> None:
    home = tmp_path / "home"
    lake = like(whole, home)
    dagster_home = home / ".memory-pipeline/dagster"
    dagster_home.mkdir()
    shutil.copy(DEPLOY, dagster_home / "dagster.yaml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"redis://127.0.0.1:{port}"
    env = {"CELERY_BROKER_URL": f"{url}/0", "CELERY_RESULT_BACKEND": f"{url}/1"}
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
    away = memory(home, *call, env=env)
    assert away.returncode == 1 and "Traceback" not in away.stderr
    assert "could not be handed to CeleryRunLauncher" in away.stderr and "Is its broker running?" in away.stderr
    assert not any((lake / "messages").glob("*.parquet"))
    of_workers = env | {
        "PATH": os.environ["PATH"],
        "HOME": f"{home}",
        "TZ": "UTC",
        "DAGSTER_HOME": f"{dagster_home}",
        "MEMORY_SESSION_DIRS": f"{whole / 'sessions'}",
        "MEMORY_DEFAULT_SESSION_DIRS": "false",
    }
    with redis(port, tmp_path), celery_workers(("one", "two"), of_workers) as workers:
        command = Command(home, *call, env=env)
        wait_for(lambda: any((lake / "messages").glob("*.parquet")))
        os.killpg(workers[0].pid, signal.SIGKILL)
        done = command.result()
    assert done.returncode == 0, done.stderr
    assert "6 days in 5 runs of own_day_job, 2 at a time." in done.stderr and "Warning" not in done.stderr
    assert stored(home) == stored(whole)


def test_the_file_for_celery_is_the_default_with_a_launcher() -> None:
    mine, default = (yaml.safe_load(path.read_text("utf-8")) for path in (DEPLOY, DEPLOY.parents[1] / "dagster.yaml"))
    assert mine.pop("run_launcher")["class"] == "CeleryRunLauncher"
    assert mine == default


def test_a_launcher_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    from memory_pipeline_tests.cli.test_backfill import write

    dagster_home = tmp_path / ".memory-pipeline/dagster"
    dagster_home.mkdir(parents=True)
    missing = DEPLOY.read_text("utf-8").replace("dagster_celery.launcher", "dagster_celery_that_is_not_there")
    (dagster_home / "dagster.yaml").write_text(missing, "utf-8")
    call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{write(tmp_path / 'sessions')}")
    told = memory(tmp_path, *call)
    assert told.returncode == 1 and "Traceback" not in told.stderr, told.stderr
    assert "The run launcher that dagster.yaml names cannot be loaded" in told.stderr
    assert "pip install 'memory-pipeline[celery]'" in told.stderr
