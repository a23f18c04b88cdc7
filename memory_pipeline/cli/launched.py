"""In place of processes of our own (`workers.py`): runs that the workspace's run launcher hands on to other workers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from memory_pipeline.cli.workers import Outcome, Run
from memory_pipeline.days import lookback
from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.settings import Settings

LOOK_SECONDS = 0.5
ASK_EVERY = 5.0
"""Seconds between two questions to all workers, which cost a second."""
NOT_HEARD = 3
"""So many times in a row no worker has the run, before it counts as lost: it may be just on its way to one."""
MAX_SILENCE = 60.0
"""Seconds without a worker, or without the broker, after which a call no longer waits."""


class Launched:
    """As `Workers`, so many runs at a time at most; the UI shows what they are at, this command when they end."""

    def __init__(self, settings: Settings, instance: Any, number: int) -> None:
        self.settings, self.instance, self.number = settings, instance, number
        self._missed: dict[str, int] = {}
        self._asked_at = self._answered_at = time.monotonic()

    def run(
        self,
        todo: Iterable[Run],
        show: Callable[[str, int], None],
        is_pressed: Callable[[], bool],
        is_enough: Callable[[Outcome], bool] = lambda _: False,
    ) -> list[Outcome]:
        """The runs, in their order. Raises `LauncherGoneError` where they cannot be handed on, or nobody takes them."""
        from memory_pipeline.defs import launching

        left, done, out = deque(todo), list[Outcome](), dict[str, Run]()
        self._asked_at = self._answered_at = time.monotonic()
        earlier = set(launching.unfinished(self.instance))  # of a command that did not wait for them
        try:
            while left or out or earlier:
                still = set(launching.unfinished(self.instance))
                earlier &= still
                for run_id in out.keys() - still:
                    run = out.pop(run_id)
                    done.append(Outcome(run, launching.failure_of(self.instance, run_id)))
                    if is_enough(done[-1]):
                        left.clear()
                    days = len(lookback(run.days[1], (run.days[1] - run.days[0]).days + 1))
                    show(f"{run.job} {run.days[1]}", days * self._stages(run))
                while not earlier and left and len(out) < self.number:
                    run = left.popleft()
                    out[launching.launch(self.settings, self.instance, run.job, run.days)] = run
                if is_pressed():
                    raise KeyboardInterrupt
                self._give_up_lost({*out, *earlier})
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            for run_id in out:
                with suppress(Exception):  # its worker may be out of reach; it is recorded as canceled all the same
                    launching.stop(self.instance, run_id)
        return done

    def _stages(self, run: Run) -> int:
        from memory_pipeline.cli.running import STAGES_WITH_PROGRESS

        return STAGES_WITH_PROGRESS[run.job]

    def _give_up_lost(self, run_ids: set[str]) -> None:
        """Runs whose worker was killed, and those that never came to one."""
        from memory_pipeline.defs import launching

        now = time.monotonic()
        if not run_ids or now < self._asked_at + ASK_EVERY:
            return
        self._asked_at = now
        try:
            seen = launching.workers_now(self.instance, run_ids)
        except TryAgainLaterError:
            if now > self._answered_at + MAX_SILENCE:
                raise
            return
        if seen is None:
            return
        if seen.answered:
            self._answered_at = now
        elif now > self._answered_at + MAX_SILENCE:
            for run_id in run_ids:
                launching.give_up(self.instance, run_id, "No worker answered.")
            raise launching.LauncherGoneError(
                f"No worker has answered for {MAX_SILENCE:.0f} s. Start one, and call it again: what is finished stays."
            )
        for run_id in run_ids:
            is_lost = run_id not in seen.runs and (seen.idle or launching.has_started(self.instance, run_id))
            self._missed[run_id] = self._missed.get(run_id, 0) + 1 if is_lost else 0
            if self._missed[run_id] >= NOT_HEARD:
                launching.give_up(self.instance, run_id, "The worker of this run ended before the run did.")
