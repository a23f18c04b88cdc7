"""What Dagster costs: days from their files to proposals in one run, beside the same functions called one by one.

    python -m benchmarks.orchestration [--days 100] [--sessions-per-day 1] [--runs 1] [--default-storage]

Copies of the bundled examples, so many on each day: small days, in which the share of what is done per day is large.
Each row is a process of its own with an empty home and workspace: every stage brings every day up to date, every check
judges every day, REVIEW.md is written. Both read the session files beforehand, in a process that is not counted. Then
the `memory run` that finds nothing to do, and Python that does nothing. With ``--default-storage`` a third row has
Dagster's own event storage for SQLite, with a connection for each event. Wall and processor seconds; the share is of
the latter, since other work on the machine changes it less.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from benchmarks.common import EXAMPLES, ROOT, parser
from benchmarks.copied_sessions import copy_sessions

FIRST = date(2026, 3, 2)
GOAL, GOAL_IDLE = 1.3, 2.0
PLAIN = "--plain"
DEFAULT_STORAGE = "memory run, Dagster's storage"


def plain(first: date, last: date) -> None:
    """What a run over these days does, without Dagster."""
    from memory_pipeline.days import lookback
    from memory_pipeline.defs import observations as of_observations
    from memory_pipeline.defs.embeddings import judge_parity
    from memory_pipeline.defs.sessions import judge_windows
    from memory_pipeline.embeddings.opening import indexes_kept_open, open_index
    from memory_pipeline.planning import Stages
    from memory_pipeline.proposals.review import reconcile
    from memory_pipeline.reflections import evaluation as of_reflections
    from memory_pipeline.settings import load_settings
    from memory_pipeline.stages import bring_up_to_date
    from memory_pipeline.workspace.workspace import Workspace

    settings = load_settings()
    workspace = Workspace.open(settings)
    days = list(lookback(last, (last - first).days + 1))
    stages = Stages.from_settings(settings)
    for stage in stages.all():
        with indexes_kept_open():
            for day in days:
                bring_up_to_date(stage, workspace.lake, day)
    for day in days:
        judge_windows(workspace.lake, day)
    judges: Iterable[Callable[..., object]] = (
        *of_observations.CHECKS.values(),
        of_reflections.judge_silent_zero,
        of_reflections.judge_compression,
    )
    for judge in judges:
        for day in days:
            judge(workspace, day)
    for stage in (stages.embeddings, stages.summary_embeddings, stages.message_embeddings):
        with open_index(settings, stage.encoder.dimension, stage.collection) as index:
            points = {day: index.ids(day, stage.records) for day in days}
        for day in days:
            rows = set(workspace.lake.read(stage.tables[0], [day])["point_id"])
            judge_parity(len(stage.points(day)), rows, points[day])
    reconcile(workspace, datetime.now(UTC))


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak megabytes."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            output.seek(0)
            sys.exit(output.read().decode()[-4000:])
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def events_in(workspace: Path) -> int:
    """Events of all runs, as Dagster's index has them."""
    with closing(sqlite3.connect(workspace / "dagster/history/runs/index.db")) as index:
        return int(index.execute("SELECT count(*) FROM event_logs").fetchone()[0])


def main() -> None:
    options = parser("orchestration", __doc__)
    options.add_argument("--days", type=int, default=100)
    options.add_argument("--sessions-per-day", type=int, default=1)
    options.add_argument("--runs", type=int, default=1, help="the least of so many counts")
    options.add_argument("--default-storage", action="store_true")
    options.add_argument(PLAIN, nargs=2, type=date.fromisoformat, metavar=("FIRST", "LAST"), help="what the row runs")
    chosen = options.parse_args()
    if chosen.plain:
        plain(*chosen.plain)
        return
    last = FIRST + timedelta(days=chosen.days - 1)
    rows: dict[str, tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sessions, home = folder / "sessions", folder / "home"
        home.mkdir()
        size = copy_sessions(sorted(EXAMPLES.rglob("*.jsonl")), sessions, FIRST, chosen.days, chosen.sessions_per_day)
        count = chosen.days * chosen.sessions_per_day
        print(f"{chosen.days} days, {count} sessions, {size / 1e6:.1f} MB; {chosen.runs} run(s) each, the least counts")
        environment = {"PATH": os.environ["PATH"], "HOME": f"{home}", "TZ": "UTC", "MEMORY_TIMEZONE": "UTC"}
        environment |= {"MEMORY_SESSION_DIRS": f"{sessions}", "MEMORY_START_DATE": f"{FIRST}"}
        environment["MEMORY_DISTIL_AFTER_DAYS"] = "36500"  # distilling is a run of its own
        memory = [sys.executable, "-m", "memory_pipeline.cli.main"]
        ranged = ["run", "--from", f"{FIRST}", "--to", f"{last}"]
        read = folder / "read"
        timed([*memory, "run", "--estimate", "--from", f"{FIRST}", "--to", f"{last}"], environment | at(read))
        variants = {"functions alone": [sys.executable, "-m", "benchmarks.orchestration", PLAIN, f"{FIRST}", f"{last}"]}
        variants["memory run"] = [*memory, *ranged]
        if chosen.default_storage:
            variants[DEFAULT_STORAGE] = [*memory, *ranged]
        for _ in range(chosen.runs):
            for name, command in variants.items():
                workspace = folder / "workspace"
                shutil.rmtree(workspace, ignore_errors=True)
                shutil.copytree(read, workspace)
                if name == DEFAULT_STORAGE:  # a file of the user's own is left as it is
                    (workspace / "dagster").mkdir(parents=True, exist_ok=True)
                    (workspace / "dagster/dagster.yaml").write_text("telemetry:\n  enabled: false\n")
                rows[name] = min(rows.get(name, (9e9, 9e9, 0.0)), timed(command, environment | at(workspace)))
                if name == "memory run":
                    shutil.rmtree(folder / "made", ignore_errors=True)
                    shutil.copytree(workspace, folder / "made")
        print(f"events of the run: {events_in(folder / 'made')}")
        idle = [timed([*memory, "run"], environment | at(folder / "made")) for _ in range(4)]
        rows["memory run, nothing to do"] = min(idle[1:])  # the first of them settles what the big run left
        rows["Python alone"] = min(timed([sys.executable, "-c", "pass"], environment) for _ in range(3))
    base = rows["functions alone"][1]
    for name, (wall, processor, peak) in rows.items():
        share = f"{processor / base:5.2f} x" if name.startswith("memory run") and "nothing" not in name else ""
        print(f"  {name:<32} {wall:8.2f} s {processor:8.2f} s of the processor {peak:6.0f} MB {share}")
    print(f"  goals: {GOAL} x, and {GOAL_IDLE} s with nothing to do")


def at(workspace: Path) -> dict[str, str]:
    return {"MEMORY_WORKSPACE": f"{workspace}"}


if __name__ == "__main__":
    main()
