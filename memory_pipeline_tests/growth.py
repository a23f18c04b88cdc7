"""Whether work grows with its input and not with its square, on any machine and however busy it is.

::

    grows_evenly(lambda size: parse("[" * size), 25_000)

No time is compared with a clock, but that of four times the input with that of the input itself: about 4 where work
grows evenly, 16 where every part is compared with every other.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

MAX_RATIO = 9.0
ROUNDS = 8
TOO_LITTLE = 0.02
"""Seconds of work that say nothing about growth. What is done within them passes, and nothing fails by them."""


def grows_evenly(work: Callable[[int], object], size: int) -> None:
    """Fails when work of four times the size takes far more than four times as long, each at its quickest."""
    takes_evenly(partial(work, size), partial(work, 4 * size))


def takes_evenly(work: Callable[[], object], four_times: Callable[[], object]) -> None:
    """`grows_evenly` for inputs that are made beforehand."""
    least, most = float("inf"), float("inf")
    for _ in range(ROUNDS):  # a busy machine makes some rounds slower, and a wrong program all of them
        least, most = min(least, _seconds(work)), min(most, _seconds(four_times))
        if most < TOO_LITTLE or most < MAX_RATIO * least:
            return
    raise AssertionError(f"four times the input takes {most / least:.1f} times as long ({most:.3f} s)")


def _seconds(work: Callable[[], object]) -> float:
    """Of this process's processor time, without that of collecting garbage, which goes over all that tests hold."""
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()
