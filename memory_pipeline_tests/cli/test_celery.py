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
from typing import Any

import pytest
import yaml

from memory_pipeline.cli.launched import Launched
from memory_pipeline.cli.running import OWN_DAY_JOB
from memory_pipeline.cli.workers import Run
from memory_pipeline.defs.launching import LauncherGoneError, launches_elsewhere
from memory_pipeline.defs.runs import instance_of, prepare_home
from memory_pipeline.settings import extras
from memory_pipeline_tests.cli.command import Command
from memory_pipeline_tests.cli.test_parallel import a_model, by_one, like, stored, wait_for
from memory_pipeline_tests.prepared import made_once
from memory_pipeline_tests.rows import DAY, workspace

DEPLOY = Path(__file__).parents[2] / "deploy/dagster.celery.yaml"
needs_redis = pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server; `make redis` installs it")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "backfilled_by_one", by_one)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of one that is not there yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{free.getsockname()[1]}/0"
    monkeypatch.setenv("CELERY_BROKER_URL", url)
    return url


@contextmanager
def redis(url: str, folder: Path) -> Iterator[None]:
    port = int(url.split(":")[-1].split("/")[0])
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


def worker(name: str) -> list[str]:
    """The command of one that takes a run at a time."""
    command = [sys.executable, "-m", "celery", "-A", "dagster_celery.app", "worker", "-c", "1", "-Q", "dagster"]
    return [*command, "--prefetch-multiplier", "1", "-n", name]


@contextmanager
def celery_workers(names: tuple[str, ...], env: dict[str, str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """By name; each with one process for runs, in a group of its own."""
    found = {
        name: subprocess.Popen(
            worker(name),
            env=env,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in names
    }
    try:
        yield found
    finally:
        for process in found.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def at_work() -> list[str]:
    """The names of the workers that have a run now."""
    from dagster_celery.make_app import make_app

    app: Any = make_app({"broker": os.environ["CELERY_BROKER_URL"]})
    return [name for name, tasks in (app.control.inspect(timeout=1).active() or {}).items() if tasks]


@needs_redis
@pytest.mark.slow
def test_workers_of_celery_make_the_same_bytes_and_pay_once_also_when_one_is_killed(
    tmp_path: Path, whole: Path, broker: str
) -> None:
    home = tmp_path / "home"
    like(whole, home)
    dagster_home = home / ".memory-pipeline/dagster"
    dagster_home.mkdir()
    shutil.copy(DEPLOY, dagster_home / "dagster.yaml")
    with a_model() as (model, env):
        env |= {"CELERY_BROKER_URL": broker}
        of_workers = env | {
            "PATH": os.environ["PATH"],
            "HOME": f"{home}",
            "TZ": "UTC",
            "DAGSTER_HOME": f"{dagster_home}",
            "MEMORY_SESSION_DIRS": f"{whole / 'sessions'}",
            "MEMORY_DEFAULT_SESSION_DIRS": "false",
        }
        with redis(broker, tmp_path), celery_workers(("one@127.0.0.1", "two@127.0.0.1"), of_workers) as workers:
            call = ("backfill", "--yes", "--workers", "2", "--sessions", f"{whole / 'sessions'}")
            command = Command(home, *call, env=env)
            wait_for(lambda: model.asked)
            os.killpg(workers[at_work()[0]].pid, signal.SIGKILL)
            done = command.result()
    assert done.returncode == 0, done.stderr
    assert "3 days in 3 runs of own_day_job, 2 at a time." in done.stderr and "Warning" not in done.stderr
    assert "did not finish: The worker of this run ended before the run did." in done.stderr
    assert model.again <= 1  # nobody has the answer of the one that was out
    assert stored(home) == stored(whole)


def test_a_broker_that_is_away_is_one_sentence(tmp_path: Path, broker: str) -> None:
    settings, _ = workspace(tmp_path)
    shutil.copy(DEPLOY, prepare_home(settings) / "dagster.yaml")
    with instance_of(settings) as instance:
        with pytest.raises(LauncherGoneError, match=r"handed to CeleryRunLauncher .* Is its broker"):
            Launched(settings, instance, 2).run([Run(OWN_DAY_JOB, (DAY, DAY))], lambda *_: None, lambda: False)
        (run,) = instance.get_runs()
        assert run.is_failure  # and nobody waits for it


def test_the_file_for_celery_is_the_default_but_for_who_executes_and_watches_runs() -> None:
    mine, default = (yaml.safe_load(path.read_text("utf-8")) for path in (DEPLOY, DEPLOY.parents[1] / "dagster.yaml"))
    assert mine.pop("run_launcher")["class"] == "CeleryRunLauncher"
    assert mine == default | {"run_monitoring": {"enabled": False}}


def test_without_the_extra_it_is_said_which_one_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _ = workspace(tmp_path)
    shutil.copy(DEPLOY, prepare_home(settings) / "dagster.yaml")
    assert extras.missing_extras(settings) == []
    monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "dagster_celery" else module)
    (sentence,) = extras.missing_extras(settings)
    assert sentence.endswith("names Celery, whose packages are not installed: `pip install 'memory-pipeline[celery]'`.")


def test_a_launcher_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    text = DEPLOY.read_text("utf-8").replace("dagster_celery.launcher", "dagster_celery.not_there")
    (prepare_home(settings) / "dagster.yaml").write_text(text, "utf-8")
    with (
        instance_of(settings) as instance,
        pytest.raises(LauncherGoneError, match=r"dagster\.yaml names cannot be"),
    ):
        launches_elsewhere(instance)
