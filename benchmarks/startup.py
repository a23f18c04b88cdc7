"""How long the command takes to start: `--help`, `--version`, `status` of the bundled examples, and `context`.

    python -m benchmarks.startup [--runs N] [CHECKOUT ...]

Each checkout (this one when none is named) runs with this Python and its packages, in a home of its own; `status`
shows the examples, which are run once before. The checkouts take turns, so that a busy minute falls on all of them.
Wall seconds, minimum and median, and the least processor seconds, which other work on the machine changes less. The
floor is Python doing nothing. Name an older checkout first to have a baseline.

`context` is asked in a workspace of 200 days with 100,000 messages that this checkout writes: as a hook does it when
nothing has changed since (`context`), and when the briefing has to be rendered (`context anew`).
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import parser
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES

COMMANDS = (("--help",), ("--version",), ("status",), ("context",), ("context", "anew"))
DAYS, OF_DAY = 200, 500
PROJECT = "kiln"
HERE = Path(__file__).resolve().parents[1]


def call(checkout: Path, home: Path, *args: str, **more: str) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and exit code of one call."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(checkout), "MEMORY_TIMEZONE": "UTC"}
    environment |= more
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *args], env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, status


def write_history(workspace: Path) -> None:
    """A workspace with `DAYS` days of `OF_DAY` messages, in eight projects of which one is `PROJECT`, and MEMORY.md."""
    lake = Lake(workspace / "lake")
    for number in range(DAYS):
        day = date(2025, 1, 1) + timedelta(days=number)
        at = datetime.combine(day, time_of_day(9), UTC)
        sessions = [f"s-{number}-{n}" for n in range(5)]
        messages = [
            {"day": day, "session_id": sessions[n % 5], "message_id": f"m-{number}-{n}", "role": "user", "said_at": at}
            | {"text": f"Please look at part {n} of the parcel service, and never use npm for it.", "source_line": n}
            for n in range(OF_DAY)
        ]
        rows: dict[str, list[dict[str, Any]]] = {"messages": messages, "sessions": [], "windows": [], "segments": []}
        rows |= {"observations": [], "proposals": [], "reflections": []}
        for n, session in enumerate(sessions):
            project = PROJECT if n == 0 else f"other-{n}"
            common = {"day": day, "session_id": session, "dedupe_key": f"k-{session}"}
            own = {
                "day": day,
                "session_id": session,
                "harness": "pi",
                "project": project,
                "cwd": f"/home/ada/{project}",
            }
            rows["sessions"].append(own | {"started_at": at, "ended_at": at, "source_file": f"/{session}"})
            told = {"current_task": f"Mend part {n} of the parcel service.", "suggested_response": "Which part?"}
            rows["windows"].append(common | told | {"user_messages": 9, "started_at": at, "ended_at": at})
            narrative = f"Asked: Mend part {number} of it. Ended with: Part {number} of {session} holds."
            rows["segments"].append(common | {"segment_id": f"s-{session}", "position": 0, "narrative": narrative})
            rows["observations"] += [
                common
                | {"observation_id": f"o-{session}-{k}", "priority": "high", "kind": "decision", "observed_at": at}
                | {"text": f"Part {k} of {session} is kept in the cellar.", "trust": "user", "project": project}
                | {"observer": "gpt", "flags": []}
                for k in range(10)
            ]
            line = {"day": day, "text": f"Always keep part {number} of {session} dry.", "priority": "high"}
            line |= {"section": "Hard Rules", "sources": [f"o-{session}-1"], "support": 1, "projects": [project]}
            if n < 2:
                rows["proposals"].append(line | {"proposal_id": f"p-{day:%Y%m%d}-{n + 1:03d}", "content_hash": session})
            rows["reflections"].append(line | {"reflection_id": f"r-{session}", "last_seen": at, "superseded": []})
        for table, found in rows.items():
            schema = {k: v for k, v in TABLES[table].columns.items() if k in found[0]}
            lake.replace(table, pl.DataFrame(found, schema=schema), [day])
    lines = [f"- (2025-01-01) Always answer question {n} in plain English." for n in range(100)]
    (workspace / "MEMORY.md").write_text("\n".join(["# Memory", "", "## Hard Rules", *lines, ""]))


def main() -> None:
    options = parser("startup", __doc__)
    options.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    options.add_argument("--runs", type=int, default=10)
    chosen = options.parse_args()
    checkouts = [checkout.resolve() for checkout in chosen.checkouts]
    seconds: dict[tuple[Path, tuple[str, ...]], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "history"
        write_history(history)
        kiln = Path(folder) / PROJECT
        kiln.mkdir()
        homes = {checkout: Path(folder) / f"{number}" for number, checkout in enumerate(checkouts)}
        for checkout, home in homes.items():
            home.mkdir()
            if call(checkout, home, "-m", "memory_pipeline.cli.main", "run")[-1]:
                sys.exit(f"{checkout}: `memory run` on the examples failed.")
        for turn in range(chosen.runs + 1):  # the first turn fills caches and does not count
            for checkout, home in homes.items():
                for command in (("-c", "pass"), *COMMANDS):
                    module = () if command[0] == "-c" else ("-m", "memory_pipeline.cli.main")
                    args, variables = list(command), {}
                    if command[0] == "context":
                        args, variables = ["context", "--project", str(kiln)], {"MEMORY_WORKSPACE": str(history)}
                    if command[-1] == "anew":
                        shutil.rmtree(history / "briefings", ignore_errors=True)
                    wall, processor, failed = call(checkout, home, *module, *args, **variables)
                    if turn and not failed:
                        seconds.setdefault((checkout, command), []).append((wall, processor))
    width = max(len(str(checkout)) for checkout in checkouts)
    print(f"{'checkout':<{width}}  {'command':<12}  minimum   median  processor")
    for command in (("-c", "pass"), *COMMANDS):
        for checkout in checkouts:
            name = "floor" if command[0] == "-c" else " ".join(command)
            if found := seconds.get((checkout, command)):
                walls, processors = zip(*found, strict=True)
                figures = f"{min(walls):7.3f}  {statistics.median(walls):7.3f}  {min(processors):9.3f}"
                print(f"{checkout!s:<{width}}  {name:<12}  {figures}")
            else:
                print(f"{checkout!s:<{width}}  {name:<12}  {'fails':>7}")


if __name__ == "__main__":
    main()
