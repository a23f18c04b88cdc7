"""Imported by each process of the tests, so that it does not wait for the disk.

What a killed process wrote is there without flushing; only a power cut could lose it, and `killing.power` stands in for
that. Tests that count or fail the calls of `os.fsync` patch it themselves. The engine of the index flushes by itself:
the folders of tests are in memory where there is room for them, which takes a third of the time.
"""

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

IN_MEMORY = Path("/dev/shm")
ROOM = 12_000_000_000
"""Bytes that have to be available; three workers with an index of 0.1 to 0.2 GB in each workspace take half of it."""


@event.listens_for(Engine, "connect")
def _without_waiting(connection: Any, _: object) -> None:
    """Dagster commits a thousand times in a run."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def _available() -> int:
    """Bytes of memory that programs may take."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # another system
        return 0


os.fsync = lambda _: None
if IN_MEMORY.is_dir() and min(_available(), shutil.disk_usage(IN_MEMORY).free) > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", f"{IN_MEMORY}")
