"""A chain of runs that is killed with SIGKILL at a moment, run again, and compared with one that nobody disturbed.

::

    chain = Chain.begun(folder, days)            # rows of their own on these days, and runs with a person in between
    whole = chain.undisturbed()                  # each run once, with what it left
    trial = chain.trial(whole, "seed-1")         # where it fell, and what is not as it would have been

A run reflects on days, proposes, reads and writes REVIEW.md and promotes, in the order of the assets `reflect`,
`propose` and `memory_file`. Its clock is given in, so that even times must come out the same. Every run is a forked
process: this one must not have used polars before, whose threads do not survive a fork.
"""

from __future__ import annotations

import builtins
import io
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from memory_pipeline.files import safe_write
from memory_pipeline.files.safe_write import BACKUPS_KEPT
from memory_pipeline.proposals import lifecycle
from memory_pipeline.proposals.ends import Ends
from memory_pipeline.proposals.lifecycle import promote, settle_review
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.settings import Settings, salt_of
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline_tests.rows import Lake, at, observation, put, say, workspace

AT_ONCE, KILLED_AGAIN, TOMORROW = "at once", "killed again", "tomorrow"
STEPS = ("reflect", "propose", "review", "promote")
BY_CLOCK, BY_CALL = "clock", "call"
HANGS_AFTER = 120.0
MOST_TOLD = 8000
"""Characters that fit into a pipe which nobody reads yet."""
MOST_PLAIN = 12
"""Writes in place of one run of the baseline, which is killed around these alone."""
LATER = timedelta(hours=2)
"""After so long a temporary file belongs to nobody any more."""
NO_MODEL = "not-on-this-machine"
MEMORY = "# Memory\n\nBy hand, above.\n\n## Hard Rules\n- Be kind  \n\n## Notes\nBy hand, below.\r\n"
SAID = (
    ("Use uv for packages.", "Never deploy on a Friday.", "Indent Makefiles with tabs.", "Store every time in UTC."),
    ("Use uv for packages.", "Run ruff before each commit.", "Name branches after their ticket."),
    ("Never push to main.", "Write dates as ISO 8601.", "Indent Makefiles with spaces instead of tabs."),
    ("Use poetry instead of uv for packages.", "Keep fixtures below one megabyte.", "Use British spelling."),
    ("Never deploy on a Friday afternoon.", "Answer in English.", "Log to stderr, never to stdout."),
    ("Use hatch, not poetry, for packages.", "Squash before merging.", "Every endpoint has a timeout."),
)
"""Lines of a person that stand beside what a workspace has, in the order of its days: some are said again, some take
the place of others."""
SAID_LATE = "Review every migration with a second person."
"""Of a session file that grew after its day was done."""

Hand = Callable[[Settings, Lake], None]


@dataclass(frozen=True)
class Run:
    """What one run does, at which time by its clock, and what a person did before."""

    days: tuple[date, ...]
    now: datetime
    hand: Hand


@dataclass(frozen=True)
class Left:
    """What an undisturbed run found and left, and what it took."""

    before: Path
    after: Path
    seconds: float
    calls: int


@dataclass
class Trial:
    """Where a kill fell, and what is wrong after the next run."""

    seed: str
    run: int
    kind: str
    step: str
    moment: str
    again: str
    """How it was run again."""
    wrong: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Temporary files that nobody will take away."""


@dataclass(frozen=True)
class Chain:
    folder: Path
    runs: Sequence[Run]

    @classmethod
    def begun(cls, folder: Path, days: Sequence[date], template: Path | None = None) -> Chain:
        """A workspace like the template (none: an empty one) in which a person has said `SAID` on the days."""
        chain = cls(folder, _runs(days))
        if template:
            shutil.copytree(template, chain.workspace)
        forked(lambda: _prepare(chain.workspace, days))
        return chain

    @property
    def workspace(self) -> Path:
        """Where every run works: tables may hold its path."""
        return self.folder / "workspace"

    def undisturbed(self) -> list[Left]:
        """Run the chain through once."""
        found = []
        for number, run in enumerate(self.runs):
            before, after = self.folder / f"{number}-before", self.folder / f"{number}-after"
            forked(lambda run=run: run.hand(*workspace_of(self.workspace)))  # type: ignore[misc]
            shutil.copytree(self.workspace, before)
            with _shared() as told:
                start = time.monotonic()
                forked(lambda run=run, told=told: _counted(run, self.workspace, told))  # type: ignore[misc]
                seconds, calls = time.monotonic() - start, _told(told)[1]
            shutil.copytree(self.workspace, after)
            found.append(Left(before, after, seconds, calls))
        forked(lambda: _judge(self.workspace))
        return found

    def trial(self, whole: Sequence[Left], seed: str, *, plain: bool = False, to_the_end: bool = False) -> Trial:
        """Kill one run at a moment that the seed chooses, run it again, and compare.

        ``plain`` writes files in place, which must be found out. ``to_the_end`` goes on with the later runs.
        """
        chance = random.Random(seed)
        kind = BY_CALL if plain else chance.choice((BY_CLOCK, BY_CALL))
        trial, folder = None, self.workspace
        while trial is None:  # by the clock, a run may be over before its moment comes
            shutil.rmtree(folder, ignore_errors=True)
            trial = self._killed(whole, seed, chance, kind, folder, plain)
        _age_strays(folder)
        try:
            trial.wrong += self._again(whole, trial, folder, chance, plain, to_the_end)
        except Failed as failed:
            trial.wrong.append(f"the run after it failed: {failed}")
        trial.strays = sorted(f"{path.relative_to(folder)}" for path in folder.rglob("*.tmp"))
        if trial.wrong:
            shutil.copytree(folder, self.folder / f"trial-{seed}", dirs_exist_ok=True)
        return trial

    def _again(
        self, whole: Sequence[Left], trial: Trial, folder: Path, chance: random.Random, plain: bool, to_the_end: bool
    ) -> list[str]:
        """Run it again, and what comes after it when all is as it should be; returns what is wrong."""
        run, after = self.runs[trial.run], whole[trial.run].after
        trial.again = AT_ONCE if plain else chance.choice((AT_ONCE, AT_ONCE, KILLED_AGAIN, TOMORROW))
        if trial.again == TOMORROW:
            later = replace(run, now=run.now + timedelta(days=1))
            forked(lambda: _run(later, folder))
            return forked(lambda: differences_but_for_times(folder, after))
        if trial.again == KILLED_AGAIN:
            _dies(lambda: _run(run, folder), after=chance.uniform(0, whole[trial.run].seconds))
            _age_strays(folder)
        forked(lambda: _run(run, folder, plain))
        wrong = differences(folder, after)
        for number in range(trial.run + 1, len(self.runs) if to_the_end and not wrong else 0):
            forked(lambda number=number: self.runs[number].hand(*workspace_of(folder)))  # type: ignore[misc]
            forked(lambda number=number: _run(self.runs[number], folder))  # type: ignore[misc]
            wrong += differences(folder, whole[number].after)
        return wrong

    def _killed(
        self, whole: Sequence[Left], seed: str, chance: random.Random, kind: str, folder: Path, plain: bool
    ) -> Trial | None:
        by_clock = kind == BY_CLOCK
        sizes = [left.seconds if by_clock else left.calls for left in whole]
        number = chance.choices(range(len(whole)), weights=sizes)[0]
        shutil.copytree(whole[number].before, folder)
        run, left = self.runs[number], whole[number]
        with _shared() as told:
            if by_clock:
                seconds = chance.uniform(0, left.seconds)
                died = _dies(lambda: _run(run, folder, plain, told), after=seconds)
                moment = f"after {seconds:.3f} of {left.seconds:.3f} s"
            else:
                call, is_before = chance.randint(1, MOST_PLAIN if plain else left.calls), chance.random() < 0.5
                died = _dies(lambda: _dying(run, folder, told, call, is_before, plain))
                moment = f"{'before' if is_before else 'after'} call {call} of {MOST_PLAIN if plain else left.calls}"
            step, _, name = _told(told)
        if not died:
            return None
        return Trial(seed, number, kind, STEPS[step], f"{moment}{f', {name}' if name else ''}", AT_ONCE)


def workspace_of(folder: Path) -> tuple[Settings, Lake]:
    return workspace(folder, pending_limit=8, embedding_model=NO_MODEL)


def differences(folder: Path, wanted: Path) -> list[str]:
    """Files whose bytes are not as wanted. Of backups a crash may leave more, but none may lack."""
    found, expected = _bytes(folder), _bytes(wanted)
    wrong = [f"{name} differs" for name in sorted(found.keys() & expected.keys()) if found[name] != expected[name]]
    wrong += [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    wrong += [f"{name} should not be there" for name in sorted(found.keys() - expected.keys())]
    kept, promised = _backups(folder), _backups(wanted)
    for name, versions in promised.items():
        lacking = set(versions) - set(kept.get(name, []))
        if lacking and len(kept.get(name, [])) < BACKUPS_KEPT:
            wrong.append(f"{len(lacking)} backups of {name} are missing")
    wrong += [f"{name} has {len(versions)} backups" for name, versions in kept.items() if len(versions) > BACKUPS_KEPT]
    return wrong


def differences_but_for_times(folder: Path, wanted: Path) -> list[str]:
    """What a run at another time should have left just so: which rows, which lines, each decision in one log, once."""
    (settings, lake), (_, expected) = workspace_of(folder), workspace_of(wanted)
    same = ["reflections", "proposals", "supports", "decisions", "promotions", "showings"]
    times = ["decided_at", "promoted_at", "shown_at"]
    wrong = []
    for table in same:
        rows, right = (
            of.read(table).drop(times, strict=False).drop("day" if table in same[3:] else []) for of in (lake, expected)
        )
        key = [name for name in ("proposal_id", "reflection_id") if name in rows.columns]
        if not rows.sort(key).equals(right.sort(key)):
            wrong.append(f"other rows of {table}")
    for name in ("MEMORY.md", "REVIEW.md"):
        if _without_times(folder / name) != _without_times(wanted / name):
            wrong.append(f"{name} differs in more than times")
    ends = Ends.of(lake, settings.memory_file)
    wrong += [offence for day in lake.days("proposals") for offence in ends.judge(day).offenders]
    told = {
        (date.fromisoformat(path.stem), found[1])
        for path in settings.daily_log(date.min).parent.glob("*.md")
        for found in re.finditer(r"^\* \d\d:\d\d [a-z]+ `(p-[\d-]+)`", path.read_text("utf-8"), re.MULTILINE)
    }
    recorded = set(lake.read("decisions").select("day", "proposal_id").iter_rows())
    return wrong + [f"{p} is in the log of {day} or in the table, not in both" for day, p in sorted(told ^ recorded)]


def _without_times(path: Path) -> str:
    """What stands there but for the day of striking, the times of writing and what is said of expiring."""
    text = path.read_text("utf-8") if path.exists() else ""
    text = re.sub(r"(superseded by p-[\d-]+), [\d-]+", r"\1", text)
    return re.sub(r"^_(?:Offered on|Last updated:) .*| · expires on [\d-]+(?=_$)", "", text, flags=re.MULTILINE)


def _bytes(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".tmp"))
    return {
        f"{path.relative_to(folder)}": path.read_bytes()
        for path in files
        if path.parent.name != "backups" or path.suffix == ".shown"
    }


def _backups(folder: Path) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for path in sorted((folder / "backups").glob("*")):
        if stamped := re.fullmatch(r"(.+)\.\d{8}T\d{6}\.\d{6}Z", path.name):
            found.setdefault(stamped[1], []).append(path.read_bytes())
    return found


def _age_strays(folder: Path) -> None:
    for path in folder.rglob("*.tmp"):
        old = time.time() - LATER.total_seconds()
        os.utime(path, (old, old))


# what happens in the chain


def _runs(days: Sequence[date]) -> list[Run]:
    """Four runs: over the first half of the days, the next morning, over a day again that grew, and weeks later."""
    half = len(days) // 2
    first, second, third, last = days[:half], days[half : half + 1], days[half : half + 2], days[half + 2 :]
    return [
        Run(tuple(first), _morning(first[-1]), lambda settings, lake: None),
        Run(tuple(second), _morning(second[-1]), _marks("xx-xe")),
        Run(tuple(third), _morning(third[-1]), _grown(second[0])),
        Run(tuple(last), max(_morning(last[-1]), _morning(third[-1]) + timedelta(days=8)), _marks("x e d")),
    ]


def _morning(day: date) -> datetime:
    """When the day that ended is reflected on."""
    return at("06:00", day + timedelta(days=1))


def _prepare(folder: Path, days: Sequence[date]) -> None:
    settings, lake = workspace_of(folder)
    for position, (day, texts) in enumerate(zip(_spread(days), SAID, strict=True)):
        for number, text in enumerate(texts):
            _say(lake, day, f"own-{position}-{number}", f"{9 + number:02}:30", text)
    salt_of(settings)  # random, so it must be the same for all
    settings.memory_file.write_bytes(MEMORY.encode())
    log = settings.daily_log(days[0])
    log.parent.mkdir(exist_ok=True)
    log.write_text("# My day\n\nBought milk.\n\n" + (log.read_text("utf-8") if log.exists() else ""), "utf-8")


def _spread(days: Sequence[date]) -> list[date]:
    """As many of the days as `SAID` has."""
    return [days[number * len(days) // len(SAID)] for number in range(len(SAID))]


def _say(lake: Lake, day: date, session: str, clock: str, text: str) -> None:
    say(lake, session, f"user: {text}", day=day, clock=clock)
    put(lake, "observations", observation(text, day=day, session=session, clock=clock))


def _marks(hands: str) -> Hand:
    """A person goes through REVIEW.md: x approves, - rejects, e approves another text, d deletes, a space leaves it."""

    def mark(settings: Settings, lake: Lake) -> None:
        lines, number = list[str](), 0
        for line in settings.review_file.read_text("utf-8").splitlines(keepends=True):
            if line.startswith("- [ ]"):
                hand = "x" if "for packages" in line else hands[number % len(hands)]
                number += 1
                if hand == "d":
                    continue
                edited = line.rstrip("\n") + " As I say.\n" if hand == "e" else line
                line = edited.replace("[ ]", f"[{'x' if hand == 'e' else hand}]", 1)
            lines.append(line)
        settings.review_file.write_text("".join(lines) + "\nA note of mine.\n", "utf-8")

    return mark


def _grown(day: date) -> Hand:
    """A person writes one line into MEMORY.md themselves and approves it too; a session of a day that is done grew."""

    def hand(settings: Settings, lake: Lake) -> None:
        _say(lake, day, "late", "15:30", SAID_LATE)
        text = settings.review_file.read_text("utf-8")
        mine = next(line for line in re.findall(r"- \[ \] `p-[\d-]+` (.*)", text) if "for packages" not in line)
        memory = settings.memory_file.read_bytes()
        settings.memory_file.write_bytes(memory.replace(b"- Be kind  \n", b"- Be kind  \n* %s\n" % mine.encode()))
        _marks("x x -d")(settings, lake)

    return hand


def _run(run: Run, folder: Path, plain: bool = False, told: mmap.mmap | None = None) -> None:
    """What the assets do, in their order."""
    settings, lake = workspace_of(folder)

    def step(name: str) -> None:
        if told:
            told[0] = STEPS.index(name)

    if plain:
        safe_write.write_atomically = lifecycle.write_atomically = _write_plainly  # type: ignore[attr-defined]
    step("reflect")
    reflections = ReflectionsStage.of(settings, lake)
    for day in run.days:
        bring_up_to_date(reflections, lake, day)
    step("propose")
    proposals = ProposalsStage(settings, lake)
    for day in run.days:
        bring_up_to_date(proposals, lake, day)
    for _asset in ("propose", "memory_file"):
        step("review")
        settle_review(settings, lake, run.now)
        step("promote")
        promote(settings, lake, run.now)


def _judge(folder: Path) -> None:
    """The chain is worth killing: everything that can become of a proposal did, once each."""
    settings, lake = workspace_of(folder)
    ends = Ends.of(lake, settings.memory_file)
    verdicts = [ends.judge(day) for day in lake.days("proposals")]
    assert all(v.passed for v in verdicts), [v.offenders for v in verdicts]
    decided = set(lake.read("decisions")["decision"])
    assert decided == {"approved", "rejected", "expired", "invalid", "superseded"}, decided
    memory = settings.memory_file.read_bytes()
    assert b"~~" in memory, "no line was struck through"
    assert b" As I say." in memory, "no text was edited"
    assert b"By hand, below.\r\n" in memory


def _write_plainly(path: Path, data: bytes, *, expected: bytes | None, backups: Path | None) -> bool:
    """The baseline: what many programs do."""
    if path.exists():
        if (old := path.read_bytes()) == data:
            return False
        if backups:
            safe_write._back_up(path.name, old, backups)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


# killing


class Failed(Exception):
    """A forked process raised; the message is what it printed."""


def forked(work: Callable[[], list[str] | None]) -> list[str]:
    """Do it in a process of its own, which may return some lines; raises `Failed`, also when it hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(read)
            os.write(write, "\0".join(work() or [])[:MOST_TOLD].encode())
            code = 0
        except BaseException:
            os.write(write, traceback.format_exc()[-MOST_TOLD:].encode())
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        code = _waited(pid, HANGS_AFTER)
        printed = pipe.read().decode("utf-8", "replace")
    if code:
        raise Failed(printed or f"status {code}")
    return printed.split("\0") if printed else []


def _dies(work: Callable[[], None], after: float | None = None) -> bool:
    """Whether the process was killed, by itself or after so many seconds, before it was done."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(_waited(pid, HANGS_AFTER))


def _waited(pid: int, seconds: float) -> int:
    """The status with which the process ended; it is killed when it takes longer."""
    end = time.monotonic() + seconds
    pause = 0.0005
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise Failed(f"it hung for {seconds:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.005)


@contextmanager
def _shared() -> Iterator[mmap.mmap]:
    """Memory that a killed process leaves behind: a byte for the step, four for the calls, the last call's name."""
    told = mmap.mmap(-1, 256)
    try:
        yield told
    finally:
        told.close()


def _told(told: mmap.mmap) -> tuple[int, int, str]:
    return told[0], struct.unpack("<I", told[1:5])[0], told[5:].rstrip(b"\0").decode("utf-8", "replace")


def _counted(run: Run, folder: Path, told: mmap.mmap) -> None:
    _watch_calls(told, lambda number, is_before: None)
    _run(run, folder, told=told)


def _dying(run: Run, folder: Path, told: mmap.mmap, call: int, is_before: bool, plain: bool) -> None:
    def die(number: int, before: bool) -> None:
        if number == call and before == is_before:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch_calls(told, die, writes_alone=plain)
    _run(run, folder, plain, told)


def _watch_calls(told: mmap.mmap, watch: Callable[[int, bool], None], *, writes_alone: bool = False) -> None:
    """Call ``watch`` with the number of each call that changes files or makes them last, before and after it."""

    def watched(name: str, call: Callable[..., Any], counts: Callable[..., bool] = lambda *a, **k: True) -> Any:
        def calling(*args: Any, **kwargs: Any) -> Any:
            if not counts(*args, **kwargs):
                return call(*args, **kwargs)
            number = _told(told)[1] + 1
            path = args[0] if name in ("open", "unlink", "fsync") else args[1]
            told[1:5] = struct.pack("<I", number)
            told[5:] = f"{name} {Path(f'{path}').name}".encode()[:251].ljust(251, b"\0")
            watch(number, True)
            done = call(*args, **kwargs)
            watch(number, False)
            return done

        return calling

    def writes(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> bool:
        return any(letter in mode for letter in "wax+")

    def makes(path: Any, flags: int, *args: Any, **kwargs: Any) -> bool:
        return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    io.open = builtins.open = watched("open", io.open, writes)  # type: ignore[assignment]
    if writes_alone:
        return
    os.replace = watched("rename to", os.replace)
    os.rename = watched("rename to", os.rename)
    os.unlink = watched("unlink", os.unlink)
    os.fsync = watched("fsync", os.fsync)
    os.open = watched("open", os.open, makes)
    pl.DataFrame.write_parquet = watched("write rows of", pl.DataFrame.write_parquet)  # type: ignore[method-assign]


def trials(folder: Path, days: Sequence[date], count: int, seed: str, template: Path | None = None) -> list[Trial]:
    """So many kills of a chain in the folder."""
    chain = Chain.begun(folder, days, template)
    whole = chain.undisturbed()
    return [chain.trial(whole, f"{seed}-{number}", to_the_end=number % 10 == 0) for number in range(count)]


def as_json(found: Sequence[Trial]) -> str:
    return json.dumps([trial.__dict__ for trial in found], indent=1)
