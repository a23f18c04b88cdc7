"""A backfill by one process, then by two and four workers: the same tables, and how much faster.

    python -m benchmarks.parallel_backfill [--days 12] [--sessions-per-day 6] [--workers N]... [--largest KB]
                                           [--services] [--kill] [--waits SECONDS]

Copies of recorded sessions (`copied_sessions`), so many on each day, as a team has them; without a model, or with
``--waits`` with an observer on loopback that takes so many seconds for each answer, as a provider's does. Each row is
`memory backfill` on a workspace of its own with the same random names, so that every table but those that tell when a
run was must be the same file, byte for byte. Printed are wall seconds, those of the processor (of all processes), how
many times as fast it is as by one, and Dagster's events: how many a day, and the seconds it takes to write as many
alone, as a share of the processor's seconds. Runs follow each other, so other work on the machine moves wall seconds
between them.

With ``--services`` the first row is one process with all in files, as on one machine; the others have their lake in a
bucket, Dagster's record in Postgres, and runs taken by Celery workers from Redis (`over_services`). Their tables must
be the same files too. The requests to the bucket are printed; of its server's seconds none are counted.

``--kill`` is another matter: two workers with an observer on loopback, of which one is killed once the third request is
out. The tables must be those of one process that nobody disturbed, and no request may be sent twice that was answered;
those that were out when the kill fell may be, of which a worker has several.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import EXAMPLES, FIXTURES, MORE, ROOT, parser
from benchmarks.copied_sessions import copy_sessions
from benchmarks.orchestration import at, timed
from benchmarks.over_services import CeleryWorkers, Services, services, turn_on
from memory_pipeline_tests.cli.test_model import environment, quoting
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server

FIRST = date(2026, 8, 3)
COMMAND = [sys.executable, "-m", "memory_pipeline.cli.main"]
WITH_CLOCK = ("decisions", "ledger", "showings")
KILL_AT = 3
"""The request at which a worker is killed."""
BY_ONE = "by 1"
"""The workspace that the others are compared with."""


class Made(NamedTuple):
    """A workspace after its backfill."""

    name: str
    wall: float
    processor: float
    requests: int
    """To the bucket."""


class Backfill:
    """Workspaces of the same sessions."""

    def __init__(self, folder: Path, services: Services | None = None, **more: str) -> None:
        self.folder, self.sessions, self.services = folder, folder / "sessions", services
        (folder / "home").mkdir()
        self._environment = {"PATH": os.environ["PATH"], "HOME": f"{folder / 'home'}", "TZ": "UTC"}
        self._environment |= {"MEMORY_TIMEZONE": "UTC", "MEMORY_SESSION_DIRS": f"{self.sessions}"} | more

    def begin(self, name: str, workers: int) -> dict[str, str]:
        """Make a workspace that has not been run, with the random names of the first; its environment."""
        made, first = self.folder / name, self.folder / BY_ONE
        if made != first:
            (made / "lake").mkdir(parents=True)
            (made / "index").mkdir()
            shutil.copy(first / "lake/salt", made / "lake")
            for mark in (first / "index").glob("*.generation"):
                (made / "index" / mark.name).write_text(mark.read_text("utf-8").partition("\n")[0], "utf-8")
        if self.is_elsewhere(name):
            turn_on(made / "dagster", with_celery=workers > 1)
        of_services = self.services.environment(name) if self.services and self.is_elsewhere(name) else {}
        return self._environment | at(made) | {"DAGSTER_HOME": f"{made / 'dagster'}"} | of_services

    def is_elsewhere(self, name: str) -> bool:
        """Whether it works over the services."""
        return self.services is not None and name != BY_ONE

    def command(self, workers: int) -> list[str]:
        return [*COMMAND, "backfill", "--yes", *(["--workers", f"{workers}"] if workers > 1 else [])]

    def run(self, workers: int, name: str = "") -> tuple[Made, dict[str, str]]:
        name = name or f"by {workers}"
        env = self.begin(name, workers)
        if self.services:
            self.services.objects.counts.clear()
        by_celery = self.celery(name, env, workers) if self.is_elsewhere(name) and workers > 1 else None
        try:
            wall, processor, _ = timed(self.command(workers), env)
        finally:
            if by_celery:
                by_celery.end()
        processor += by_celery.seconds if by_celery else 0
        return Made(name, wall, processor, self.services.objects.counts.total() if self.services else 0), env

    def celery(self, name: str, env: dict[str, str], workers: int) -> CeleryWorkers:
        os.environ["CELERY_BROKER_URL"] = env["CELERY_BROKER_URL"]  # for who asks what they are at
        return CeleryWorkers(workers, env, self.folder / f"{name}.log")

    def stored(self, name: str) -> dict[str, bytes]:
        """Every file of every table that does not tell when a run was."""
        if self.services and self.is_elsewhere(name):
            files = self.services.stored(name)
        else:
            lake = self.folder / name / "lake"
            files = {f"{path.relative_to(lake)}": path.read_bytes() for path in lake.rglob("*.parquet")}
        return {key: data for key, data in files.items() if key.partition("/")[0] not in WITH_CLOCK}

    def differences(self, name: str) -> list[str]:
        """From what one process made."""
        one, other = self.stored(BY_ONE), self.stored(name)
        return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))

    def events(self, name: str, env: dict[str, str]) -> tuple[int, float]:
        """How many a workspace's runs have, and seconds of the processor to write them into a record that is empty."""
        import dagster as dg

        os.environ |= env
        with dg.DagsterInstance.from_config(f"{self.folder / name / 'dagster'}") as instance:
            logs = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
        with tempfile.TemporaryDirectory() as home:
            shutil.copy(self.folder / name / "dagster/dagster.yaml", home)
            os.environ["DAGSTER_HOME"] = home
            if self.services and self.is_elsewhere(name):
                os.environ |= self.services.database()
            with dg.DagsterInstance.from_config(home) as instance:
                instance.event_log_storage.get_maximum_record_id()
                start = time.process_time()
                for entry in logs:  # one by one, as runs do
                    instance.event_log_storage.store_event(entry)
                return len(logs), time.process_time() - start


def told(backfill: Backfill, counts: list[int], days: int) -> int:
    """Print a row for each number of workers; returns how many files differ."""
    wrong, base = 0, 0.0
    for workers, name in [
        (1, BY_ONE),
        *((count, f"over {count}") for count in counts if count > 1 or backfill.services),
    ]:
        made, env = backfill.run(workers, name)
        base = base or made.wall
        differ = backfill.differences(name)
        wrong += len(differ)
        events, writing = backfill.events(name, env)
        print(
            f"  {workers} {'process' if workers == 1 else 'workers'}  {made.wall:8.1f} s  "
            f"{made.processor:8.1f} s of the processor  {base / made.wall:5.2f} times as fast  "
            f"{events / days:6.1f} events a day, {writing:.2f} s to write, "
            f"{100 * writing / made.processor:.1f} % of it  {len(differ)} of {len(backfill.stored(name))} files differ"
            + (f"  {made.requests} requests to the bucket" if made.requests else ""),
            flush=True,
        )
        for key in differ[:5]:
            print(f"      {key}")
    return wrong


def killed(backfill: Callable[..., Backfill], sources: list[Path], days: int, per_day: int) -> int:
    """Kill one of two workers in the middle; returns how much is wrong."""
    asked: Counter[str] = Counter()
    state: dict[str, Callable[[], bool] | None] = {"kill": None}
    arrived, out_at_the_kill, one_by_one = list[str](), list[str](), threading.Lock()

    def answer(request: Asked) -> Say:
        asked[request.prompt] += 1
        arrived.append(request.prompt)
        with one_by_one:  # so that none is answered while the kill falls
            if (kill := state["kill"]) and sum(asked.values()) >= KILL_AT and kill():
                state["kill"] = None
                out_at_the_kill[:] = arrived
            arrived.remove(request.prompt)
        return Say(quoting(request), tokens=(3_000, 1_000))

    with openai_server(answer) as server:
        made = backfill(**environment(server))
        copy_sessions(sources, made.sessions, FIRST, days, per_day)
        first, _ = made.run(1)
        once = Counter(asked)
        print(f"  1 process, {first.wall:.0f} s, {sum(once.values())} requests", flush=True)
        asked.clear()
        env = made.begin("killed", 2)
        by_celery = made.celery("killed", env, 2) if made.services else None
        with tempfile.TemporaryFile() as output:
            command = subprocess.Popen(made.command(2), env=env, cwd=ROOT, stdout=output, stderr=output)
            state["kill"] = by_celery.kill_one if by_celery else lambda: kill_one_of(command.pid)
            code = command.wait()
            output.seek(0)
            sentence = [line for line in output.read().decode().splitlines() if "did not finish" in line]
        if by_celery:
            by_celery.end()
    again = Counter({prompt: times - 1 for prompt, times in asked.items() if times > 1})
    answered = (again - Counter(out_at_the_kill)).total()
    out = again.total() - answered
    differ = made.differences("killed")
    said = sentence[0] if sentence else "no word of it"
    print(f"  2 workers, one killed at request {KILL_AT}: exit code {code}; {said}")
    print(
        f"  {len(asked)} requests; {out} sent again that were out, {answered} that had been answered; "
        f"{len(differ)} files of tables differ"
    )
    for name in differ[:5]:
        print(f"      {name}")
    return code + len(differ) + answered + (asked.keys() != once.keys()) + (not sentence)


def kill_one_of(pid: int) -> bool:
    """A worker process of a command (Linux), if there is one yet."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    pids = [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    if pids:
        os.kill(pids[0], signal.SIGKILL)
    return bool(pids)


def model_that_waits(stack: ExitStack, seconds: float) -> dict[str, str]:
    """Settings of an observer on loopback that takes so long for each answer; none where it takes no time."""
    if not seconds:
        return {}
    server = openai_server(lambda request: Say(quoting(request), tokens=(3_000, 1_000), after=seconds))
    return environment(stack.enter_context(server))


def main() -> None:
    options = parser("parallel_backfill", __doc__)
    options.add_argument("--days", type=int, default=12)
    options.add_argument("--sessions-per-day", type=int, default=6)
    options.add_argument("--workers", type=int, action="append")
    options.add_argument("--largest", type=int, default=300, metavar="KB", help="leave out larger sessions")
    options.add_argument("--services", action="store_true", help="bucket, Postgres, and Celery workers by Redis")
    options.add_argument("--kill", action="store_true", help="one of two workers, with a model on loopback")
    options.add_argument("--waits", type=float, default=0, metavar="SECONDS", help="that a model takes for an answer")
    chosen = options.parse_args()
    found = sorted(path for place in (EXAMPLES, FIXTURES, MORE) if place.is_dir() for path in place.rglob("*.jsonl"))
    sources = [path for path in found if path.stat().st_size <= chosen.largest * 1000]
    print(f"{chosen.days} days of {chosen.sessions_per_day}, from {len(sources)} sessions; {os.cpu_count()} cores")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        engines = stack.enter_context(services()) if chosen.services else None
        if chosen.kill:
            wrong = killed(partial(Backfill, folder, engines), sources, chosen.days, chosen.sessions_per_day)
        else:
            backfill = Backfill(folder, engines, **model_that_waits(stack, chosen.waits))
            copy_sessions(sources, backfill.sessions, FIRST, chosen.days, chosen.sessions_per_day)
            wrong = told(backfill, chosen.workers or [2, 4], chosen.days)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
