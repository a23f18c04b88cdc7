"""The engines that several machines share, all on loopback: a lake in a bucket, Dagster's record in Postgres, and runs
that Celery workers take from Redis. moto's S3 behind a proxy, and Debian's Postgres and Redis.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from benchmarks.common import ROOT
from memory_pipeline.lake.object_storage import ObjectStorage
from memory_pipeline_tests import postgres
from memory_pipeline_tests.cli.test_celery import at_work, redis, worker
from memory_pipeline_tests.lake.object_server import BUCKET, ObjectServer, object_storage

MARKS = ("backups", "marks")
"""Folders of a bucket that are no tables."""


class Services:
    """Started once; each workspace has a prefix, a database and a queue's database of its own."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.objects: ObjectServer = stack.enter_context(object_storage())
        self.postgres = stack.enter_context(postgres.running())
        self.redis = f"redis://127.0.0.1:{postgres.free_port()}"
        stack.enter_context(redis(f"{self.redis}/0", folder))
        os.environ |= self.objects.env
        self._databases = 0

    def environment(self, name: str) -> dict[str, str]:
        """Of all that works on the workspace of this name, which has none yet."""
        return {
            **self.objects.env,
            **self.database(),
            "MEMORY_LAKE": self.url(name),
            "CELERY_BROKER_URL": f"{self.redis}/{self._databases}",
            "OMP_NUM_THREADS": "1",
        }

    def database(self) -> dict[str, str]:
        """An empty one."""
        self._databases += 1
        return self.postgres.database(f"dagster_{self._databases}")

    def url(self, name: str) -> str:
        return f"s3://{BUCKET}/{name.replace(' ', '-')}"

    def stored(self, name: str) -> dict[str, bytes]:
        """Every file of every table, by its name in a folder."""
        storage = ObjectStorage(self.url(name))
        files = [file for file in storage.all_files() if file.key.partition("/")[0] not in MARKS]
        return {file.key: storage.read(file) for file in files}


def turn_on(dagster_home: Path, *, with_celery: bool) -> None:
    """As a user does who puts both files of `deploy/` into one."""
    in_postgres, in_celery = (
        yaml.safe_load((ROOT / f"deploy/dagster.{name}.yaml").read_text("utf-8")) for name in ("postgres", "celery")
    )
    by_celery = {name: in_celery[name] for name in ("run_launcher", "run_monitoring")} if with_celery else {}
    dagster_home.mkdir(parents=True)
    (dagster_home / "dagster.yaml").write_text(yaml.safe_dump(in_postgres | by_celery), "utf-8")


class CeleryWorkers:
    """Each takes one run at a time."""

    def __init__(self, number: int, environment: dict[str, str], log: Path) -> None:
        with log.open("wb") as output:
            self._processes = {
                name: subprocess.Popen(
                    worker(name),
                    env=environment,
                    cwd=ROOT,
                    start_new_session=True,
                    stdout=output,
                    stderr=output,
                )
                for name in (f"worker{n}@127.0.0.1" for n in range(number))
            }
        self.seconds = 0.0
        """Of the processor, once they have ended."""

    def kill_one(self) -> bool:
        """One that has a run, if there is one now."""
        busy = next((name for name in at_work() if name in self._processes), None)
        if busy:
            os.killpg(self._processes[busy].pid, signal.SIGKILL)
        return busy is not None

    def end(self) -> None:
        """Those that were not killed, once they have nothing to do."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                _, process.returncode, usage = os.wait4(process.pid, 0)
                self.seconds += usage.ru_utime + usage.ru_stime


@contextmanager
def services() -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
