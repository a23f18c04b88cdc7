"""A backfill by one process, then by two and four workers: the same tables, and how much faster.

    python -m benchmarks.parallel_backfill [--days 12] [--sessions-per-day 6] [--workers N]... [--largest KB] [--kill]

Copies of recorded sessions (`copied_sessions`), so many on each day, as a team has them; without a model. Each row is
`memory backfill` on a workspace of its own with the same random names, so that every table but those that tell when a
run was must be the same file, byte for byte. Printed are wall seconds, those of the processor (of all processes), how
many times as fast it is as by one, and Dagster's events: how many a day, and the seconds it takes to write as many
alone, as a share of the processor's seconds. Runs follow each other, so other work on the machine moves wall seconds
between them.

``--kill`` is another matter: two workers with an observer on loopback, of which one is killed once the third request is
out. The tables must be those of one process that nobody disturbed, and no request may be sent twice that was answered;
the one that was out when the kill fell may be.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from pathlib import Path

from benchmarks.common import EXAMPLES, FIXTURES, MORE, ROOT, parser
from benchmarks.copied_sessions import copy_sessions
from benchmarks.orchestration import at, events_in, timed
from memory_pipeline_tests.cli.test_model import environment, quoting
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server

FIRST = date(2026, 8, 3)
COMMAND = [sys.executable, "-m", "memory_pipeline.cli.main"]
WITH_CLOCK = ("decisions", "ledger", "showings")
KILL_AT = 3
"""The request at which a worker is killed."""


class Backfill:
    """Workspaces of the same sessions."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder, self.sessions = folder, folder / "sessions"
        (folder / "home").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": f"{folder / 'home'}", "TZ": "UTC"}
        self.environment |= {"MEMORY_TIMEZONE": "UTC", "MEMORY_SESSION_DIRS": f"{self.sessions}"} | more

    def workspace(self, name: str) -> Path:
        """One that has not been run, with the random names of the first."""
        made, first = self.folder / name, self.folder / "by 1"
        if made != first:
            (made / "lake").mkdir(parents=True)
            (made / "index").mkdir()
            shutil.copy(first / "lake/salt", made / "lake")
            for mark in (first / "index").glob("*.generation"):
                (made / "index" / mark.name).write_text(mark.read_text("utf-8").partition("\n")[0], "utf-8")
        return made

    def command(self, workers: int) -> list[str]:
        return [*COMMAND, "backfill", "--yes", *(["--workers", f"{workers}"] if workers > 1 else [])]

    def run(self, workers: int) -> tuple[Path, float, float]:
        workspace = self.workspace(f"by {workers}")
        wall, processor, _ = timed(self.command(workers), self.environment | at(workspace))
        return workspace, wall, processor


def stored(workspace: Path) -> dict[str, bytes]:
    """Every file of every table that does not tell when a run was."""
    files = {path.relative_to(workspace / "lake"): path for path in (workspace / "lake").rglob("*.parquet")}
    return {f"{name}": path.read_bytes() for name, path in files.items() if name.parts[0] not in WITH_CLOCK}


def differences(before: Path, after: Path) -> list[str]:
    one, other = stored(before), stored(after)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def seconds_of_events(workspace: Path) -> float:
    """To write the events of a workspace's runs anew, into an instance that is empty."""
    import dagster as dg

    os.environ["DAGSTER_HOME"] = f"{workspace / 'dagster'}"
    with dg.DagsterInstance.from_config(f"{workspace / 'dagster'}") as instance:
        logs = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
    with tempfile.TemporaryDirectory() as home:
        shutil.copy(workspace / "dagster/dagster.yaml", home)
        os.environ["DAGSTER_HOME"] = home
        with dg.DagsterInstance.from_config(home) as instance:
            instance.event_log_storage.get_maximum_record_id()
            start = time.process_time()
            instance.event_log_storage.store_event_batch(logs)
            return time.process_time() - start


def told(backfill: Backfill, counts: list[int], days: int) -> int:
    """Print a row for each number of workers; returns how many files differ."""
    first, base, _ = (row := backfill.run(1))
    wrong = 0
    for workers in [1, *(count for count in counts if count > 1)]:
        workspace, wall, processor = row if workers == 1 else backfill.run(workers)
        differ = differences(first, workspace)
        wrong += len(differ)
        events, writing = events_in(workspace), seconds_of_events(workspace)
        name = "process" if workers == 1 else "workers"
        print(
            f"  {workers} {name}  {wall:8.1f} s  {processor:8.1f} s of the processor"
            f"  {base / wall:5.2f} times as fast  {events / days:6.1f} events a day, {writing:.2f} s to write, "
            f"{100 * writing / processor:.1f} % of it  {len(differ)} of {len(stored(workspace))} files differ",
            flush=True,
        )
        for name in differ[:5]:
            print(f"      {name}")
    return wrong


def killed(folder: Path, sources: list[Path], days: int, per_day: int) -> int:
    """Kill one of two workers in the middle; returns how much is wrong."""
    asked: Counter[str] = Counter()
    state: dict[str, subprocess.Popen[bytes] | None] = {"victim of": None}

    def answer(request: Asked) -> Say:
        asked[request.prompt] += 1
        if (command := state["victim of"]) and sum(asked.values()) >= KILL_AT and (pids := workers_of(command.pid)):
            state["victim of"] = None
            os.kill(pids[0], signal.SIGKILL)
        return Say(quoting(request), tokens=(3_000, 1_000))

    with openai_server(answer) as server:
        backfill = Backfill(folder, **environment(server))
        copy_sessions(sources, backfill.sessions, FIRST, days, per_day)
        first, seconds, _ = backfill.run(1)
        once = Counter(asked)
        print(f"  1 process, {seconds:.0f} s, {sum(once.values())} requests", flush=True)
        asked.clear()
        workspace = backfill.workspace("killed")
        with tempfile.TemporaryFile() as output:
            state["victim of"] = command = subprocess.Popen(
                backfill.command(2), env=backfill.environment | at(workspace), cwd=ROOT, stdout=output, stderr=output
            )
            code = command.wait()
            output.seek(0)
            sentence = [line for line in output.read().decode().splitlines() if "did not finish" in line]
    again = sum(asked.values()) - len(asked)
    differ = differences(first, workspace)
    said = sentence[0] if sentence else "no word of it"
    print(f"  2 workers, one killed at request {KILL_AT}: exit code {code}; {said}")
    print(f"  {len(asked)} requests, {again} of them sent again that was out; {len(differ)} files of tables differ")
    for name in differ[:5]:
        print(f"      {name}")
    return code + len(differ) + max(0, again - 1) + (asked.keys() != once.keys()) + (not sentence)


def workers_of(pid: int) -> list[int]:
    """The worker processes of a command (Linux)."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def main() -> None:
    options = parser("parallel_backfill", __doc__)
    options.add_argument("--days", type=int, default=12)
    options.add_argument("--sessions-per-day", type=int, default=6)
    options.add_argument("--workers", type=int, action="append")
    options.add_argument("--largest", type=int, default=300, metavar="KB", help="leave out larger sessions")
    options.add_argument("--kill", action="store_true", help="one of two workers, with a model on loopback")
    chosen = options.parse_args()
    found = sorted(path for place in (EXAMPLES, FIXTURES, MORE) if place.is_dir() for path in place.rglob("*.jsonl"))
    sources = [path for path in found if path.stat().st_size <= chosen.largest * 1000]
    print(f"{chosen.days} days of {chosen.sessions_per_day}, from {len(sources)} sessions; {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        if chosen.kill:
            sys.exit(1 if killed(folder, sources, chosen.days, chosen.sessions_per_day) else 0)
        backfill = Backfill(folder)
        copy_sessions(sources, backfill.sessions, FIRST, chosen.days, chosen.sessions_per_day)
        sys.exit(1 if told(backfill, chosen.workers or [2, 4], chosen.days) else 0)


if __name__ == "__main__":
    main()
