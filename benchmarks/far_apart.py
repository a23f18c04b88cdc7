"""What `memory run` costs by how far sessions lie apart: cost follows content, not the calendar.

    python -m benchmarks.far_apart [--checkout DIR]...

One session of two years ago, two that are six years apart, and the same two on adjacent days; each in a process of its
own with an empty home and workspace, after a run that is not counted. Seconds of the processor, Dagster's runs, events
and bytes of its record. Several checkouts are run one after the other for each case, so that other work on the machine
falls on all of them. Exit code 1 where two far apart take more than 1.3 times as long as two on adjacent days.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.common import ROOT, parser

GOAL = 1.3
TODAY = datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0)
NEWEST = TODAY - timedelta(days=70)
"""Old enough for its week and month to have ended and to be summarized."""
ADJACENT, APART, OLD = "two on adjacent days", "two six years apart", "one two years ago"
CASES = {
    ADJACENT: (NEWEST - timedelta(days=1), NEWEST),
    APART: (NEWEST - timedelta(days=6 * 365), NEWEST),
    OLD: (TODAY - timedelta(days=2 * 365),),
}
TURNS = (
    ("user", "add an endpoint that says whether the service lives, never use a framework for it"),
    ("assistant", "Added with the standard library."),
    ("user", "no, write the tests with pytest, not unittest"),
    ("assistant", "Rewritten with pytest."),
    ("user", "always run make lint before a commit"),
    ("assistant", "Understood."),
    ("user", "commit it"),
    ("assistant", "Committed."),
)


@dataclass(frozen=True)
class Cost:
    """What one run took, and what it left in Dagster's record."""

    seconds: float
    runs: int
    events: int
    size: int

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s {self.runs:4} runs {self.events:7,} events {self.size / 1e6:7.1f} MB"


def write_session(folder: Path, number: int, start: datetime) -> None:
    """A session of Claude Code with a few turns, a minute apart."""
    name, parent, lines = f"00000000-0000-4000-8000-{number:012}", None, []
    for place, (role, text) in enumerate(TURNS):
        entry = f"{name}-{place}"
        moment = start + timedelta(minutes=place)
        record = {
            "type": role,
            "uuid": entry,
            "parentUuid": parent,
            "sessionId": name,
            "cwd": "/srv/a",
            "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S.000Z}",
            "message": {"role": role, "content": text},
        }
        lines.append(json.dumps(record))
        parent = entry
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def measure(checkout: Path, sessions: Path, folder: Path) -> Cost:
    """`memory run --all` of this checkout in an empty home and workspace."""
    home, workspace = folder / "home", folder / "workspace"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": f"{home}", "TZ": "UTC", "MEMORY_TIMEZONE": "UTC"}
    env |= {"MEMORY_WORKSPACE": f"{workspace}", "PYTHONPATH": f"{checkout}"}
    command = [sys.executable, "-m", "memory_pipeline.cli.main", "run", "--all", "--sessions", f"{sessions}"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=checkout, env=env, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            output.seek(0)
            sys.exit(output.read().decode()[-4000:])
    record = workspace / "dagster"
    return Cost(
        usage.ru_utime + usage.ru_stime,
        _count(record / "history/runs.db", "runs"),
        _count(record / "history/runs/index.db", "event_logs"),
        sum(path.stat().st_size for path in record.rglob("*") if path.is_file()),
    )


def _count(database: Path, table: str) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def main() -> None:
    options = parser("far_apart", __doc__)
    options.add_argument("--checkout", type=Path, action="append", help="may be given again; this one if none is named")
    checkouts = [path.resolve() for path in options.parse_args().checkout or [ROOT]]
    costs: dict[tuple[Path, str], Cost] = {}
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary)
        for case, starts in CASES.items():
            sessions = top / case
            for number, start in enumerate(starts):
                write_session(sessions, number, start)
        for case in (ADJACENT, *CASES):  # the first one warms the disk's cache and is not counted
            for checkout in checkouts:
                with tempfile.TemporaryDirectory(dir=top) as folder:
                    costs[checkout, case] = measure(checkout, top / case, Path(folder))
    for checkout in checkouts:
        print(checkout)
        for case in CASES:
            print(f"  {case:<22} {costs[checkout, case]}")
        share = costs[checkout, APART].seconds / costs[checkout, ADJACENT].seconds
        print(f"  far apart beside adjacent: {share:.2f} times as long (goal {GOAL})")
    sys.exit(share > GOAL)


if __name__ == "__main__":
    main()
