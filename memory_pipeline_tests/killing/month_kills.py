"""A month whose runs are killed with SIGKILL again and again, and compared with one that nobody disturbed.

::

    with model_of(folder) as place:
        month = Month.begun(place)  # each of its runs once, undisturbed
        trial = month.trial("seed-1", kills=20)  # where they fell, and what is not as it would have been

A run that was killed goes on where it ended, and is killed again before it is through, so that kills fall evenly over
the whole month and cost no more than a part of it. Half of the moments are chosen by the clock, half before or after a
call that writes, renames, removes or flushes a file.
"""

from __future__ import annotations

import mmap
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from memory_pipeline_tests.killing.comparing import age_strays, differences
from memory_pipeline_tests.killing.forks import Failed, dies, dying_at, forked, shared, told_in, watch_calls
from memory_pipeline_tests.killing.month import (
    LEFT_OUT,
    PARTS,
    STEPS,
    Place,
    asked_so_far,
    carry_out,
    judge,
    paid_twice,
    person,
    prepare,
    stored_answers,
    vectors_lacking,
)
from memory_pipeline_tests.killing.power import cut, recorded
from memory_pipeline_tests.prepared import copied


@dataclass(frozen=True)
class Undisturbed:
    """What a run of the month left, and what it took."""

    after: Path
    seconds: float
    calls: int
    idle: float
    """Seconds that the same run takes when there is nothing left to do."""


@dataclass
class MonthTrial:
    """Where the kills fell, and what is wrong after the runs that came through."""

    seed: str
    steps: list[str] = field(default_factory=list)
    """Of each kill."""
    by_clock: int = 0
    cuts: int = 0
    """Of the power, those after a run that was through among them."""
    wrong: list[str] = field(default_factory=list)
    requests: int = 0
    """That the model had, in all."""


@dataclass(frozen=True)
class Month:
    place: Place
    runs: list[Undisturbed]
    requests: int
    """That the model has in a month that nobody disturbs."""

    @classmethod
    def begun(cls, place: Place) -> Month:
        """Run it through once, which takes about a minute."""
        forked(lambda: prepare(place))
        copied(place.workspace, place.folder / "before")
        runs = []
        for part in range(PARTS):
            forked(lambda part=part: person(place, part))  # type: ignore[misc]
            with shared() as told:
                began = time.monotonic()
                forked(lambda part=part, told=told: _counted(place, part, told))  # type: ignore[misc]
                seconds, calls = time.monotonic() - began, told_in(told)[1]
            began = time.monotonic()
            after = copied(place.workspace, place.folder / f"after-{part}")
            forked(lambda part=part: carry_out(place, part))  # type: ignore[misc]
            runs.append(Undisturbed(after, seconds, calls, time.monotonic() - began))
        forked(lambda: judge(place))
        return cls(place, runs, len(asked_so_far(place)))

    def trial(self, seed: str, kills: int, *, power: bool = False, plain: bool = False) -> MonthTrial:
        """Kill the month about so many times, where it is said by cutting the ``power``: see `killing.power`.

        ``plain`` must be found out: it writes a user's files in place and keeps no answer, or flushes no folder.
        """
        trial, chance = MonthTrial(seed), random.Random(seed)
        place = self.place
        for folder in (place.workspace, place.sessions):
            shutil.rmtree(folder)
        place.asked.unlink(missing_ok=True)
        copied(place.folder / "before", place.workspace)
        try:
            for part in range(PARTS):
                if not trial.wrong:
                    forked(lambda part=part: person(place, part))  # type: ignore[misc]
                    self._part(trial, chance, part, kills / PARTS, power, plain)
            trial.wrong += forked(lambda: paid_twice(place) + vectors_lacking(place))
        except Failed as failed:
            trial.wrong.append(f"a run failed: {failed}")
        trial.requests = len(asked_so_far(place))
        if trial.wrong:
            copied(place.workspace, place.folder / f"trial-{seed}")
        return trial

    def _part(
        self, trial: MonthTrial, chance: random.Random, part: int, kills: float, power: bool, plain: bool
    ) -> None:
        """One run of the month, killed until it is through. A power cut may come after that too; then it runs again."""
        place, whole = self.place, self.runs[part]
        is_through = False
        while not is_through and not trial.wrong:
            stored, asked = stored_answers(place), len(asked_so_far(place))
            is_through = not self._killed(trial, chance, part, kills, power, plain)
            again = stored.intersection(asked_so_far(place)[asked:])
            trial.wrong += [f"request {name} was sent though its answer is kept" for name in sorted(again)]
        if power:
            forked(lambda: carry_out(place, part))
        # a run after one that was through sees what that one has written into MEMORY.md
        left_out = (*LEFT_OUT, "lake/watched_rules/") if power else LEFT_OUT
        if not trial.wrong:
            trial.wrong += forked(lambda: differences(place.workspace, whole.after, left_out))

    def _killed(
        self, trial: MonthTrial, chance: random.Random, part: int, kills: float, power: bool, plain: bool
    ) -> bool:
        whole, by_clock, place = self.runs[part], chance.random() < 0.5, self.place
        after = chance.uniform(0, whole.idle + 2 * whole.seconds / kills) if by_clock else None
        call, is_before = chance.randint(1, round(2 * whole.calls / kills)), chance.random() < 0.5
        notes = place.folder / "flushed"
        with shared() as told:

            def work() -> None:
                if power:
                    recorded(place.workspace, notes, folders=not plain)
                if not by_clock:
                    dying_at(told, call, is_before)
                carry_out(place, part, told, plain=plain and not power)

            died = dies(work, after)
            step = told_in(told)[0]
        if power and notes.exists():  # else it died before it began
            cut(place.workspace, notes, chance)
            trial.cuts += 1
        if died:
            trial.steps.append(STEPS[step])
            trial.by_clock += by_clock
        age_strays(place.workspace)
        return died


def _counted(place: Place, part: int, told: mmap.mmap) -> None:
    watch_calls(told, lambda number, is_before: None)
    carry_out(place, part, told)
