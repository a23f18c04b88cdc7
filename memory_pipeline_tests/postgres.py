"""A real Postgres for tests: Debian's programs, in a temporary directory, on 127.0.0.1 and a free port.

Its programs refuse to run as root, so root starts them as the user of the package, `postgres`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memory_pipeline.defs.runs import prepare_home
from memory_pipeline.settings import Settings

YAML = Path(__file__).parents[1] / "deploy" / "dagster.postgres.yaml"
_SECONDS = 30.0
_STOP_FAST = signal.SIGINT
"""Ends connections instead of waiting for them."""


class Postgres:
    """A server that can be stopped and started again, with a password that it does ask for."""

    user, password = "memory", "pass/word@1"

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None
        secret = folder / "password"
        secret.write_text(self.password, "utf-8")
        _owned(folder)
        self._run("initdb", "-D", f"{folder}/data", "-U", self.user, "-A", "scram-sha-256", f"--pwfile={secret}")

    def start(self) -> None:
        """Returns once it answers."""
        options = [*("-D", f"{self.folder}/data", "-k", f"{self.folder}"), *("-h", "127.0.0.1", "-p", f"{self.port}")]
        command = [*_as_another(), _program("postgres"), *options, "-c", "fsync=off"]
        self._process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
        )
        until = time.monotonic() + _SECONDS
        while True:
            try:
                self.execute("SELECT 1")
                return
            except Exception:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        if self._process:
            self._process.send_signal(_STOP_FAST)
            self._process.wait(_SECONDS)
            self._process = None

    def database(self, name: str) -> dict[str, str]:
        """An empty database of that name; the variables that deploy/dagster.postgres.yaml names."""
        self.execute(f"CREATE DATABASE {name}")
        return {
            "DAGSTER_POSTGRES_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_PORT": f"{self.port}",
            "DAGSTER_POSTGRES_USER": self.user,
            "DAGSTER_POSTGRES_PASSWORD": self.password,
            "DAGSTER_POSTGRES_DB": name,
        }

    def execute(self, query: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg2

        place = {"host": "127.0.0.1", "port": self.port, "user": self.user, "password": self.password}
        with closing(psycopg2.connect(dbname=database, **place)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(query)
                return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *args: str) -> None:
        command = [*_as_another(), _program(program), *args]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, env=_environment())


@contextmanager
def running() -> Iterator[Postgres]:
    """Skips with a reason where it is not installed."""
    if reason := _missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def record_in_postgres(settings: Settings) -> None:
    """As a user turns it on."""
    shutil.copyfile(YAML, prepare_home(settings) / "dagster.yaml")


def _missing() -> str:
    if not (_program("initdb") and _program("postgres")):
        return "Postgres is not installed: `make postgres` does it on Debian"
    if os.geteuid() == 0 and not (shutil.which("setpriv") and _user()):
        return "Postgres refuses to run as root, and there is no user postgres or no setpriv"
    return ""


def _program(name: str) -> str:
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return f"{places[-1]}" if places else shutil.which(name) or ""


def _user() -> int:
    import pwd

    try:
        return pwd.getpwnam("postgres").pw_uid
    except KeyError:
        return 0


def _as_another() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _owned(folder: Path) -> None:
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "postgres", "postgres")


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}


def is_open(port: int) -> bool:
    """Whether a server on loopback takes connections there."""
    with closing(socket.socket()) as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
