"""What commands take on a workspace that has grown, whether its many small files cost anything, and what ages free.

    python -m benchmarks.after_a_year WORKSPACE SESSIONS [--keep-days 180]

On a copy of a workspace, such as `simulated_year --keep DIR` leaves in `DIR/workspace`, with the session files that it
was made from. First each command in a process of its own: wall seconds, those of the processor, the peak of memory.
Then all tables read whole, from a file per day and from one file per table, which is what putting them together would
gain at most. At the end what ages of so many days take out of the index, as the weekly job does it, and a run after it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import parser
from benchmarks.orchestration import at, timed
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.operations.retention import PASSING, retire
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import size_on_disk

COMMAND = [sys.executable, "-m", "memory_pipeline.cli.main"]
COMMANDS = ("status", "doctor", "admin report", "context", "search cursor", "friction", "sql 'select 1'", "run", "run")


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and of the processor."""
    wall, processor = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - wall, time.process_time() - processor


def say(what: str, taken: tuple[float, ...], more: str = "") -> None:
    print(f"  {what:<48} {taken[0]:8.2f} s {taken[1]:8.2f} s of the processor {more}", flush=True)


def read_whole(lake: Lake, folder: Path) -> None:
    """Every table, from its files and from one."""
    daily = [name for name, table in TABLES.items() if table.daily]
    files = sum(len(lake.files(table)) for table in daily)
    rows = 0

    def whole() -> None:
        nonlocal rows
        rows = sum(lake.read(table).height for table in daily)

    whole()  # from the disk, not counted
    say(f"{len(daily)} tables in {files:,} files", seconds(whole), f"({rows:,} rows)")
    for table in daily:
        lake.read(table).write_parquet(folder / f"{table}.parquet")
    say(f"{len(daily)} tables in as many files", seconds(lambda: [pl.read_parquet(f) for f in folder.iterdir()]))


def main() -> None:
    options = parser("after_a_year", __doc__)
    options.add_argument("workspace", type=Path)
    options.add_argument("sessions", type=Path)
    options.add_argument("--keep-days", type=int, default=180)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace, home, single = (Path(folder).resolve() / name for name in ("workspace", "home", "single"))
        subprocess.run(["cp", "-a", f"{chosen.workspace}", f"{workspace}"], check=True)  # the index has holes
        home.mkdir()
        single.mkdir()
        environment: dict[str, Any] = {"PATH": os.environ["PATH"], "HOME": f"{home}", "TZ": "UTC"} | at(workspace)
        environment |= {"MEMORY_TIMEZONE": "UTC", "MEMORY_SESSION_DIRS": f"{chosen.sessions.resolve()}"}
        for command in COMMANDS:
            wall, processor, peak = timed([*COMMAND, *command.replace("'", "").split(" ", 1)], environment)
            say(f"memory {command}", (wall, processor), f"{peak:6.0f} MB")
        settings = Settings(workspace=workspace, timezone="UTC", session_dirs=(chosen.sessions.resolve(),))
        read_whole(Lake.from_settings(settings), single)
        aged = Settings(
            workspace=workspace,
            timezone="UTC",
            session_dirs=(chosen.sessions.resolve(),),
            retention=dict.fromkeys(PASSING, chosen.keep_days),
        )
        before = size_on_disk(settings.index_dir)
        done: dict[str, Any] = {}
        say(
            f"rows older than {chosen.keep_days} days let go of",
            seconds(lambda: done.update(retire(aged, datetime.now(UTC).date()))),
            f"index {before / 1e6:,.0f} MB to {size_on_disk(settings.index_dir) / 1e6:,.0f} MB",
        )
        print("    " + ", ".join(f"{table} {len(days.days)} days" for table, days in done.items()))
        wall, processor, peak = timed([*COMMAND, "run", "--all"], environment)
        say("memory run --all after it", (wall, processor), f"{peak:6.0f} MB")


if __name__ == "__main__":
    main()
