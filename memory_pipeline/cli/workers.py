"""Processes that run jobs over days at the same time, for a command that waits for all of them.

A worker is a process that takes one run after the other, so that it imports Dagster and loads the embedding model once.
It ends with the command, also where that is killed, and the command outlives each of them: what a killed one had begun
is in its `Outcome`, and another takes its place.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Self

from memory_pipeline.defs.runs import Unfinished, instance_of, reporting_to, run_job
from memory_pipeline.settings import load_settings

LOOK_SECONDS = 0.2
"""How often it is looked whether a user has stopped it."""
OMP_NUM_THREADS = "OMP_NUM_THREADS"
"""How many threads encode. All cores for each worker, as by default, were four times as slow on two busy cores: 155
seconds for 1,500 messages in place of 36. The vectors are the same bytes."""
STOP_SECONDS = 60.0
"""Within which a worker that was told to stop has ended its run; it is killed then, and what it finished is kept."""


@dataclass(frozen=True)
class Run:
    """A run of a job over days, first and last."""

    job: str
    days: tuple[date, date]


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    run: Run
    failure: str | None = None
    """A sentence; None where it succeeded."""
    unfinished: Unfinished = field(default_factory=Unfinished)


class Workers:
    """So many processes at most, each started when there is a run for it and kept for the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._busy: dict[Connection, Run] = {}
        self._processes: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection, process in self._processes.items():
            connection.close()  # which ends it
            process.join(STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def run(
        self,
        todo: Iterable[Run],
        show: Callable[[str, int], None],
        is_pressed: Callable[[], bool],
        is_enough: Callable[[Outcome], bool] = lambda _: False,
    ) -> list[Outcome]:
        """The runs, in their order; `show` is called with what they report, as `on_progress` is.

        Once somebody has pressed Ctrl-C, workers are told to stop, and no other run begins. After an outcome that
        `is_enough` says is the last that is wanted no other begins either, but those that work go on to their end.
        """
        left, done, stopped_at = deque(todo), list[Outcome](), 0.0
        while self._busy or left:
            try:
                while left and len(self._busy) < self.number:
                    self._begin(left.popleft())
                for connection in wait(list(self._busy), LOOK_SECONDS):
                    assert isinstance(connection, Connection)
                    if outcome := self._heard(connection, show):
                        done.append(outcome)
                        if is_enough(outcome):
                            left.clear()
                is_stopped = is_pressed()
            except KeyboardInterrupt:
                is_stopped = True
            if is_stopped and not stopped_at:
                left.clear()
                stopped_at = time.monotonic()
                self._signal(signal.SIGINT)
            elif stopped_at and time.monotonic() > stopped_at + STOP_SECONDS:
                self._signal(signal.SIGKILL)
        return done

    def _begin(self, run: Run) -> None:
        """Give the run to a worker that has none, or to a new one."""
        connection = next((c for c in self._processes if c not in self._busy), None)
        if connection is None:
            fresh = multiprocessing.get_context("spawn")  # a fork would have locks that threads of this process hold
            connection, theirs = fresh.Pipe()
            threads = max(1, (os.cpu_count() or 1) // self.number)
            self._processes[connection] = fresh.Process(target=_work, args=(theirs, threads), name="memory worker")
            self._processes[connection].start()
            theirs.close()  # so that the end of the process is the end of the pipe
        self._busy[connection] = run
        with suppress(OSError):  # it has just died, which is heard next
            connection.send(run)

    def _heard(self, connection: Connection, show: Callable[[str, int], None]) -> Outcome | None:
        """What a worker says: progress, or the outcome of its run, also where it says nothing any more."""
        try:
            heard = connection.recv()
        except (EOFError, OSError):
            run, process = self._busy.pop(connection), self._processes.pop(connection)
            connection.close()
            process.join()
            return Outcome(run, f"Its process ended{_by_signal(process.exitcode)} before the run did.")
        if isinstance(heard, Outcome):
            del self._busy[connection]
            return heard
        show(*heard)
        return None

    def _signal(self, number: signal.Signals) -> None:
        for connection in self._busy:
            pid = self._processes[connection].pid
            with suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, number)


def _by_signal(code: int | None) -> str:
    return f" by signal {-code}" if code and code < 0 else f" with code {code}"


def _work(connection: Connection, threads: int) -> None:
    """The life of a worker: runs as they come, until the other end of the pipe is closed."""
    os.environ[OMP_NUM_THREADS] = f"{threads}"
    os.setsid()  # Ctrl-C at the terminal is for the command, which tells its workers once
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def tell(at: str, done: int) -> None:
        try:
            connection.send((at, done))
        except OSError:  # the command is gone
            raise KeyboardInterrupt from None

    settings = load_settings()
    with suppress(KeyboardInterrupt, EOFError, OSError), instance_of(settings) as instance:
        while True:
            run = connection.recv()
            found = Unfinished()
            with reporting_to(tell):
                failure = run_job(settings, instance, run.job, run.days, found)
            connection.send(Outcome(run, failure, found))
