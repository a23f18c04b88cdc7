"""A year of days: how long a backfill takes, and what the daily run of day 365 costs beside that of day 30.

    python -m benchmarks.simulated_year [--days 365] [--sessions-per-day 25] [--sessions DIR]... [--largest KB]
                                        [--keep DIR] [--no-ui]

Copies of recorded sessions (`copied_sessions`), so many on each day up to yesterday. The first 30 days are brought up
to date by `memory backfill`, then the 31st by `memory run`, as a schedule does each morning; then the rest of the year
but its last day likewise, and the last day. Printed are seconds of each, wall and of the processor, the peak of memory,
and after each part what lies on the disk: tables and their files, the index, Dagster's record and its events. At the
end the run that finds nothing to do, and how long the UI takes for an asset's page, the graph and the list of runs. A
daily run on day 365 should take at most 1.3 times that of day 31; other work on the machine changes wall seconds more
than those of the processor.

``--largest`` leaves out sessions above so many kilobytes: 25 of all sizes on each day are 9,125 sessions, 5.6 GB, and a
day of computing on two cores. What is printed says how many messages a day had.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from benchmarks.common import EXAMPLES, FIXTURES, MORE, parser
from benchmarks.copied_sessions import copy_sessions
from benchmarks.orchestration import at, events_in, timed
from memory_pipeline.lake.store import Lake
from memory_pipeline.workspace.free_space import size_on_disk

EARLY = 30
"""Days before the first daily run that is measured."""
GOAL = 1.3
COMMAND = [sys.executable, "-m", "memory_pipeline.cli.main"]
_QUESTIONS = {
    "an asset's page": '{ assetNodeOrError(assetKey: {path: ["observations"]}) { ... on AssetNode { '
    "assetPartitionStatuses { ... on TimePartitionStatuses { ranges { status startKey endKey } } } "
    "assetMaterializations(limit: 100) { runId metadataEntries { label } } } } }",
    "the graph of all": "{ assetNodes { assetKey { path } partitionStats { "
    "numMaterialized numPartitions numFailed } } }",
    "the list of runs": "{ runsOrError(limit: 50) { ... on Runs { results { runId status tags { key value } } } } }",
}


def sizes(workspace: Path) -> str:
    """What lies on the disk, in a sentence; holes in files take no room."""
    told = [f"{name} {size_on_disk(workspace / name) / 1e6:,.1f} MB" for name in ("lake", "index", "dagster")]
    files = len(list((workspace / "lake").rglob("*.parquet")))
    return f"{', '.join(told)}; {files:,} files of tables, {events_in(workspace):,} events"


class Year:
    """A workspace, and the commands that are run on it."""

    def __init__(self, folder: Path, sources: list[Path], days: int, per_day: int) -> None:
        self.workspace, self.sessions = folder / "workspace", folder / "sessions"
        self.first = datetime.now(UTC).date() - timedelta(days=days)
        self.sources, self.per_day, self.days = sources, per_day, range(days)
        (folder / "home").mkdir(exist_ok=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": f"{folder / 'home'}", "TZ": "UTC"}
        self.environment |= at(self.workspace) | {"MEMORY_TIMEZONE": "UTC", "MEMORY_SESSION_DIRS": f"{self.sessions}"}

    def day(self, number: int) -> date:
        return self.first + timedelta(days=number)

    def write(self, first: int, last: int) -> float:
        """The sessions of these days; megabytes."""
        days = last - first + 1
        return copy_sessions(self.sources, self.sessions, self.day(first), days, self.per_day, seed=first) / 1e6

    def backfill(self, first: int, last: int) -> None:
        written = self.write(first, last)
        self.told(
            f"backfill of days {first + 1} to {last + 1}, {written:,.0f} MB",
            ["backfill", "--from", f"{self.day(first)}", "--to", f"{self.day(last)}", "--yes"],
        )
        print(f"    {sizes(self.workspace)}", flush=True)

    def daily(self, number: int) -> float:
        """The run on the morning after this day; seconds of the processor."""
        self.write(number, number)
        return self.told(f"daily run of day {number + 1}", ["run"])

    def messages(self) -> float:
        """A day."""
        return float(Lake(self.workspace / "lake").read("messages", columns=["day"]).height / len(self.days))

    def told(self, what: str, arguments: list[str]) -> float:
        wall, processor, peak = timed([*COMMAND, *arguments], self.environment)
        print(f"  {what:<48} {wall:8.1f} s {processor:8.1f} s of the processor {peak:6.0f} MB", flush=True)
        return processor


@contextmanager
def ui_of(year: Year) -> Iterator[str]:
    """The address of the workspace's UI, once it answers and while it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [*COMMAND, "ui", "--port", f"{port}"],
        env=year.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while process.poll() is None:
                with suppress(OSError), urllib.request.urlopen(f"{url}/server_info", timeout=5):
                    break
                time.sleep(0.2)
            yield url
        finally:
            process.send_signal(signal.SIGINT)


def ask(url: str, query: str) -> float:
    """Seconds of one answer."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    start = time.monotonic()
    with urllib.request.urlopen(request, timeout=600) as answer:
        told = json.load(answer)
    if told.get("errors"):
        sys.exit(f"The UI says: {told['errors'][0]['message']}")
    return time.monotonic() - start


def main() -> None:
    options = parser("simulated_year", __doc__)
    options.add_argument("--days", type=int, default=365)
    options.add_argument("--sessions-per-day", type=int, default=25)
    options.add_argument("--sessions", type=Path, action="append")
    options.add_argument("--largest", type=int, default=10_000, metavar="KB")
    options.add_argument("--keep", type=Path, metavar="DIR")
    options.add_argument("--no-ui", action="store_true")
    chosen = options.parse_args()
    places = chosen.sessions or [place for place in (EXAMPLES, FIXTURES, MORE) if place.is_dir()]
    found = sorted(path for place in places for path in place.rglob("*.jsonl"))
    sources = [path for path in found if path.stat().st_size <= chosen.largest * 1000]
    if not sources or chosen.days <= EARLY + 1:
        options.error(f"{len(sources)} sessions of at most {chosen.largest} kB; more than {EARLY + 1} days are needed.")
    print(f"{chosen.days} days of {chosen.sessions_per_day}, from {len(sources)} of {len(found)} sessions")
    with nullcontext(chosen.keep) if chosen.keep else tempfile.TemporaryDirectory() as folder:
        year = Year(Path(folder).resolve(), sources, chosen.days, chosen.sessions_per_day)
        year.backfill(0, EARLY - 1)
        early = year.daily(EARLY)
        year.backfill(EARLY + 1, chosen.days - 2)
        late = year.daily(chosen.days - 1)
        print(f"    {sizes(year.workspace)}; {year.messages():,.0f} messages a day")
        print(
            f"  the daily run of day {chosen.days} takes {late / early:.2f} times that of day {EARLY + 1}; goal {GOAL}"
        )
        year.told("nothing to do, looked for", ["run"])
        year.told("nothing to do", ["run"])
        year.told("memory status", ["status"])
        if not chosen.no_ui:
            with ui_of(year) as url:
                for name, query in _QUESTIONS.items():
                    first, *more = (ask(url, query) for _ in range(4))
                    print(f"  the UI, {name:<40} {first:8.2f} s, then {min(more):.2f}")


if __name__ == "__main__":
    main()
