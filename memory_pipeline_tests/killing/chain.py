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

import mmap
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

from memory_pipeline_tests.killing.comparing import age_strays, differences, differences_but_for_times
from memory_pipeline_tests.killing.forks import Failed, dies, dying_at, forked, shared, told_in, watch_calls
from memory_pipeline_tests.killing.story import STEPS, Run, carry_out, judge, prepare, runs_over, workspace_of
from memory_pipeline_tests.prepared import copied

AT_ONCE, KILLED_AGAIN, TOMORROW = "at once", "killed again", "tomorrow"
BY_CLOCK, BY_CALL = "clock", "call"
MOST_PLAIN = 8
"""Writes in place of one run of the baseline, which is killed around these alone."""


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
    temporary_files: list[str] = field(default_factory=list)
    """Temporary files that nobody will take away."""


@dataclass(frozen=True)
class Chain:
    folder: Path
    runs: Sequence[Run]

    @classmethod
    def begun(cls, folder: Path, days: Sequence[date], template: Path | None = None) -> Chain:
        """A workspace like the template (none: an empty one) in which a person has said `SAID` on the days."""
        chain = cls(folder, runs_over(days))
        if template:
            copied(template, chain.workspace)
        forked(lambda: prepare(chain.workspace, days))
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
            copied(self.workspace, before)
            with shared() as told:
                start = time.monotonic()
                forked(lambda run=run, told=told: counted(run, self.workspace, told))  # type: ignore[misc]
                seconds, calls = time.monotonic() - start, told_in(told)[1]
            copied(self.workspace, after)
            found.append(Left(before, after, seconds, calls))
        forked(lambda: judge(self.workspace))
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
        age_strays(folder)
        try:
            trial.wrong += self._again(whole, trial, folder, chance, plain, to_the_end)
        except Failed as failed:
            trial.wrong.append(f"the run after it failed: {failed}")
        trial.temporary_files = sorted(f"{path.relative_to(folder)}" for path in folder.rglob("*.tmp"))
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
            forked(lambda: carry_out(later, folder))
            return forked(lambda: differences_but_for_times(folder, after))
        if trial.again == KILLED_AGAIN:
            dies(lambda: carry_out(run, folder), after=chance.uniform(0, whole[trial.run].seconds))
            age_strays(folder)
        forked(lambda: carry_out(run, folder, plain))
        wrong = differences(folder, after)
        for number in range(trial.run + 1, len(self.runs) if to_the_end and not wrong else 0):
            forked(lambda number=number: self.runs[number].hand(*workspace_of(folder)))  # type: ignore[misc]
            forked(lambda number=number: carry_out(self.runs[number], folder))  # type: ignore[misc]
            wrong += differences(folder, whole[number].after)
        return wrong

    def _killed(
        self, whole: Sequence[Left], seed: str, chance: random.Random, kind: str, folder: Path, plain: bool
    ) -> Trial | None:
        by_clock = kind == BY_CLOCK
        sizes = [left.seconds if by_clock else left.calls for left in whole]
        number = chance.choices(range(len(whole)), weights=sizes)[0]
        copied(whole[number].before, folder)
        run, left = self.runs[number], whole[number]
        with shared() as told:
            if by_clock:
                seconds = chance.uniform(0, left.seconds)
                died = dies(lambda: carry_out(run, folder, plain, told), after=seconds)
                moment = f"after {seconds:.3f} of {left.seconds:.3f} s"
            else:
                call, is_before = chance.randint(1, MOST_PLAIN if plain else left.calls), chance.random() < 0.5
                died = dies(lambda: dying(run, folder, told, call, is_before, plain))
                moment = f"{'before' if is_before else 'after'} call {call} of {MOST_PLAIN if plain else left.calls}"
            step, _, name = told_in(told)
        if not died:
            return None
        return Trial(seed, number, kind, STEPS[step], f"{moment}{f', {name}' if name else ''}", AT_ONCE)


def counted(run: Run, folder: Path, told: mmap.mmap) -> None:
    watch_calls(told, lambda number, is_before: None)
    carry_out(run, folder, told=told)


def dying(run: Run, folder: Path, told: mmap.mmap, call: int, is_before: bool, plain: bool) -> None:
    dying_at(told, call, is_before, writes_alone=plain)
    carry_out(run, folder, plain, told)


def trials(folder: Path, days: Sequence[date], count: int, *, plain: bool = False) -> list[Trial]:
    """So many kills of a chain in the folder."""
    chain = Chain.begun(folder, days)
    whole = chain.undisturbed()
    return [chain.trial(whole, f"{number}", plain=plain, to_the_end=number % 10 == 0) for number in range(count)]
