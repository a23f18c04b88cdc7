"""The rate of calls to a model: concurrency and delays, reduced after a rate limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GOOD_BEFORE_MORE = 10
"""Number of consecutive answered calls after which the concurrency rises by one."""


class Pace:
    """The rate of calls, shared by the threads that use one model. Initially the concurrency is the number of
    threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._running = 0
        self._limit: int | None = None
        self._good = 0
        self._not_before = 0.0
        self._is_open = False

    @contextmanager
    def turn(self, wait: Callable[[float], object] | None = None) -> Iterator[None]:
        """A context for one call: it starts when fewer calls than the limit are running, after waiting with `wait` as
        long as the model requested."""
        with self._changed:
            self._changed.wait_for(self._may_begin)
            self._running += 1
            left = self._not_before - self._clock()
        try:
            if wait and left > 0:
                wait(left)
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def slow_down(self, seconds: float | None) -> None:
        """Handle a rate limit: half as many concurrent calls from now on, and none for this number of seconds."""
        with self._changed:
            self._limit = max(1, self._running // 2)
            self._good = 0
            if seconds:
                self._not_before = max(self._not_before, self._clock() + seconds)

    def answered(self) -> None:
        """Record that the model answered a call."""
        with self._changed:
            self._good += 1
            if self._limit is not None and self._good >= GOOD_BEFORE_MORE:
                self._limit, self._good = self._limit + 1, 0
                self._changed.notify_all()

    def let_all_go(self) -> None:
        """Release all waiting calls, as when the run is stopped."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        return self._is_open or self._limit is None or self._running < self._limit
