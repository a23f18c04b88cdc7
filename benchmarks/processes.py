"""Nine processes at the same time on one workspace, for so many seconds; counts what fails, and what is lost.

    python -m benchmarks.processes [--seconds N]

Two call `memory run --all` again and again, one `memory run --from --to` over all days, one evaluates the session
sensor as the daemon does, three ask (`memory recall` and `search`; `status` and `sql`; `why` and `context`), one
approves and rejects by `memory review`, one is a user who marks lines in REVIEW.md and calls `memory review --list`.
Meanwhile a coding agent writes sessions, each with rules of its own, so that there is always something to read and to
decide.

Counted are traces (a traceback or a signal), failures (an exit code that is not 0; that another run works on the
workspace is told, and none), decisions that are not on record as they were taken, approved lines that are not in
MEMORY.md exactly once, and tables that differ at the end from those of a workspace that one run made, alone, of the
same sessions.

Of how long a command takes the median and the 95th percentile are printed, beside what it takes alone. What is lost
has no baseline: what would do without locks and renames is other code than this. That the counting sees anything is
shown by one decision and one row that are taken out of a copy at the end: both must be found.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.common import memory, parser, python
from benchmarks.same_tables import compare
from memory_pipeline_tests.conftest import assistant, conversation, user, write_session

FIRST = datetime(2025, 3, 3, 9, tzinfo=UTC)
DAYS, PAUSE = 10, 5.0
"""Days that sessions are written on in turn, and seconds between two sessions."""
COMPARED = ("sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections")
ALONE = 3
"""Calls of each command for the baseline."""
TICK = """
import dagster as dg
from memory_pipeline.defs.sensors import session_sensor_of
from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.defs.runs import instance_of
from memory_pipeline.settings import load_settings

settings = load_settings()
resources = {"workspace": WorkspaceResource()}
with instance_of(settings) as instance, dg.build_sensor_context(instance, resources=resources) as context:
    session_sensor_of(Placement(settings))(context)
"""
BUSY = re.compile(r"Another `memory run` is using|is in use by another process|and a decision is final")
_ORDERS = (
    "Always run the checker{code} before you hand {topic} to the gateway{code}.",
    "Never delete {topic}{code} without a backup in vault{code}.",
    "I prefer the layout{code} for every report on {topic}{code}.",
    "From now on use library{code} instead of module{code} for {topic}.",
)
"""What a user lays down in a session."""
_TOPICS = ("parcels", "invoices", "labels", "tariffs", "couriers", "depots", "returns", "stamps", "pallets", "routes")


@dataclass
class Seen:
    """What was counted, by all threads under one lock."""

    calls: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of each call that was not told to wait, by command."""
    failures: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    decided: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Place:
    sessions: Path
    workspace: Path
    seen: Seen = field(default_factory=Seen)

    def memory(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command, counted."""
        began = time.monotonic()
        done = memory(arguments, self.sessions, self.workspace, MEMORY_PENDING_LIMIT="60")
        return self.counted(arguments, done, time.monotonic() - began)

    def tick(self) -> None:
        """The session sensor, evaluated once."""
        began = time.monotonic()
        done = python(["-c", TICK], self.workspace, MEMORY_SESSION_DIRS=f"{self.sessions}")
        self.counted(("sensor",), done, time.monotonic() - began)

    def counted(
        self, arguments: Sequence[str], done: subprocess.CompletedProcess[str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        said = done.stdout + done.stderr
        with self.seen.lock:
            self.seen.calls[arguments[0]] += 1
            if done.returncode < 0 or "Traceback (most recent call last)" in said:
                self.seen.traces.append(f"memory {' '.join(arguments)}: {done.returncode}: {said[-2000:]}")
            elif done.returncode and BUSY.search(" ".join(said.split())):
                self.seen.waited[arguments[0]] += 1
            elif done.returncode:
                self.seen.failures.append(f"memory {' '.join(arguments)}: {done.returncode}: {said[-500:]}")
            else:
                self.seen.seconds[arguments[0]].append(seconds)
        return done


def main() -> None:
    options = parser("processes", __doc__)
    options.add_argument("--seconds", type=float, default=300.0)
    seconds = options.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "sessions", Path(folder) / "workspace")
        written = 0
        for written in range(DAYS):
            say(place.sessions, written)
        if place.memory("run", "--all").returncode:
            sys.exit("\n".join(place.seen.failures + place.seen.traces))
        alone = baseline(place)
        over = threading.Event()
        works = (running, running, backfilling, ticking, recalling, looking, tracing, deciding, marking)
        threads = [threading.Thread(target=until, args=(over, work, place)) for work in works]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            written += 1
            say(place.sessions, written)
            over.wait(min(PAUSE, max(0.0, end - time.monotonic())))
        over.set()
        for thread in threads:
            thread.join()
        print_seconds(place.seen.seconds, alone)
        wrong = judged(place, written + 1)
    sys.exit(1 if wrong else 0)


def judged(place: Place, sessions: int) -> int:
    """Print what there is to count; returns how much is wrong."""
    seen = place.seen
    for _ in range(2):  # marks that were set last, then nothing more to do
        place.memory("run", "--all")
    alone = Place(place.sessions, place.workspace.parent / "alone")
    (alone.workspace / "lake").mkdir(parents=True)
    for mark in ("salt", "timezone", "start_date"):
        shutil.copy(place.workspace / "lake" / mark, alone.workspace / "lake")
    alone.memory("run", "--all")
    lost, unequal = lost_decisions(place.workspace, seen.decided), unequal_tables(place.workspace, alone.workspace)
    said = ", ".join(f"{name} {count}" for name, count in sorted(seen.calls.items()))
    print(f"{sum(seen.calls.values())} commands ({said}) over {sessions} sessions")
    print(f"  told to wait or come too late   {sum(seen.waited.values())} ({dict(seen.waited)})")
    findings = {"failures": [*seen.failures, *alone.seen.failures], "traces": [*seen.traces, *alone.seen.traces]}
    findings |= {f"lost of {len(seen.decided)} decisions": lost, "unequal tables": unequal}
    for name, found in findings.items():
        print(f"  {name:<31} {len(found)}")
        for each in found[:5]:
            print(f"      {each}")
    sees = is_seen(place, alone)
    print("" if sees else "\nA row that was taken out was not found: this run proves nothing.")
    return sum(map(len, findings.values())) + (not sees)


def baseline(place: Place) -> dict[str, list[float]]:
    """Seconds of each command while nothing else is called, a few times each; nothing of it is counted."""
    quiet = Place(place.sessions, place.workspace)
    for _ in range(ALONE):
        for work in (running, ticking, recalling, looking, tracing):
            work(quiet)
        quiet.memory("review", "--list")
    return quiet.seen.seconds


def print_seconds(together: Mapping[str, list[float]], alone: Mapping[str, list[float]]) -> None:
    print(f"{'seconds':<10} {'together: median':>18} {'95 %':>6} {'alone: median':>15} {'most':>6}")
    for name, seconds in sorted(together.items()):
        print(f"{name:<10} {median(seconds):18.1f} {sorted(seconds)[int(0.95 * len(seconds))]:6.1f}", end=" ")
        print(f"{median(alone[name]):15.1f} {max(alone[name]):6.1f}" if name in alone else f"{'':>22}")


def say(folder: Path, number: int) -> None:
    """A session of an agent, in which a user lays down rules that nobody has said yet."""
    at, topic = FIRST + timedelta(days=number % DAYS, minutes=number), _TOPICS[number % len(_TOPICS)]
    entries = conversation(at, users=5, topic=f"{topic} {number}")
    for rule in range(len(_ORDERS)):
        moment, code = at + timedelta(minutes=20 + rule), number * len(_ORDERS) + rule
        entries += [user(moment, _ORDERS[rule].format(topic=topic, code=code))]
        entries += [assistant(moment + timedelta(seconds=30), "All right.")]
    write_session(folder / f"said-{number}.jsonl", *entries)


def until(over: threading.Event, work: Callable[[Place], None], place: Place) -> None:
    while not over.is_set():
        try:
            work(place)
        except Exception as error:  # a thread that dies would count nothing any more
            with place.seen.lock:
                place.seen.failures.append(f"the benchmark itself, {work.__name__}: {error!r}")
            over.wait(1)


def running(place: Place) -> None:
    place.memory("run", "--all")


def backfilling(place: Place) -> None:
    """Over a range of days, as after an upgrade."""
    last = FIRST + timedelta(days=DAYS - 1)
    place.memory("run", "--from", f"{FIRST:%Y-%m-%d}", "--to", f"{last:%Y-%m-%d}")


def ticking(place: Place) -> None:
    place.tick()


def recalling(place: Place) -> None:
    place.memory("recall", "What do I want before a release of the gateway?")
    place.memory("search", "backup in vault")


def looking(place: Place) -> None:
    place.memory("status")
    place.memory("sql", "SELECT count(*) FROM observations JOIN messages USING (session_id)")


def tracing(place: Place) -> None:
    for proposal, _ in in_review(place)[:1]:
        place.memory("why", proposal)
    place.memory("context")


def deciding(place: Place) -> None:
    """By command, of the proposals that are this one's."""
    mine = [p for p, _ in in_review(place) if zlib.crc32(p.encode()) % 2]
    if not mine:
        place.memory("review", "--json")
        return
    decision = "approve" if zlib.crc32(mine[0].encode()) % 3 else "reject"
    if place.memory("review", f"--{decision}", mine[0], "--json").returncode == 0:
        place.seen.decided[mine[0]] = {"approve": "approved", "reject": "rejected"}[decision]


def marking(place: Place) -> None:
    """In REVIEW.md, as an editor saves it that looks whether the file has changed meanwhile."""
    path = place.workspace / "REVIEW.md"
    mine = [p for p, mark in in_review(place) if mark == " " and not zlib.crc32(p.encode()) % 2]
    if mine:
        text = path.read_text("utf-8")
        mark = "x" if zlib.crc32(mine[0].encode()) % 3 else "-"
        new = text.replace(f"- [ ] `{mine[0]}`", f"- [{mark}] `{mine[0]}`")
        saved = path.with_name("REVIEW.md.swp")
        saved.write_text(new, "utf-8")
        if new != text and path.read_text("utf-8") == text:
            saved.replace(path)
            place.seen.decided[mine[0]] = "approved" if mark == "x" else "rejected"
    place.memory("review", "--list")


def in_review(place: Place) -> list[tuple[str, str]]:
    text = (place.workspace / "REVIEW.md").read_text("utf-8")
    return [(found[2], found[1]) for found in re.finditer(r"^- \[(.)\] `(p-[\d-]+)`", text, re.MULTILINE)]


def lost_decisions(workspace: Path, wanted: dict[str, str]) -> list[str]:
    """What is not on record as it was taken, or not in MEMORY.md once."""
    files = sorted((workspace / "lake" / "events").glob("*.parquet"))
    decided = pl.concat([pl.read_parquet(file) for file in files]).filter(kind="decided")
    rows = decided.select("proposal_id", "decision").rows()
    found = dict(rows)
    lost = [f"{p} was {end}, and is {found.get(p)}" for p, end in wanted.items() if found.get(p) != end]
    twice = [f"{p} is decided {count} times" for p, count in Counter(p for p, _ in rows).items() if count > 1]
    memory = (workspace / "MEMORY.md").read_text("utf-8")
    lines = [
        f"{p} is in MEMORY.md {count} times"
        for p, end in found.items()
        if (count := memory.count(f"<!-- {p} -->")) != (end == "approved")
    ]
    return [*lost, *twice, *lines]


def unequal_tables(workspace: Path, alone: Path) -> list[str]:
    return [f"{t.name}: {t.differences[0]}" for t in compare(workspace, alone) if t.differences and t.name in COMPARED]


def is_seen(place: Place, alone: Place) -> bool:
    """Whether a decision and a row that are taken out are found."""
    (path, *_) = sorted((alone.workspace / "lake" / "observations").glob("*.parquet"))
    pl.read_parquet(path)[1:].write_parquet(path)
    for file in (place.workspace / "lake" / "events").glob("*.parquet"):
        pl.read_parquet(file).filter(pl.col("proposal_id") != next(iter(place.seen.decided), "")).write_parquet(file)
    return bool(
        unequal_tables(place.workspace, alone.workspace) and lost_decisions(place.workspace, place.seen.decided)
    )


if __name__ == "__main__":
    main()
