"""Sessions that are observed at once, and a run that is interrupted while they are."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from memory_pipeline.observations.stage import Job, observe
from memory_pipeline.observations.types import Context, Segment, WindowMessage
from memory_pipeline_tests.observations.talking import talk
from memory_pipeline_tests.rows import DAY


class Interrupted:
    """Is interrupted in the first session while it waits for a model in the second."""

    name = version = "interrupted"
    at_once = 2
    is_incremental = False

    def __init__(self) -> None:
        self.waits, self.stopped, self.was_stopped = threading.Event(), threading.Event(), False

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        if context.window == "first":
            assert self.waits.wait(10)
            raise KeyboardInterrupt
        self.waits.set()
        self.was_stopped = self.stopped.wait(10)
        return []

    def stop(self) -> None:
        self.stopped.set()


def test_an_interrupt_does_not_wait_for_what_others_wait_for() -> None:
    observer = Interrupted()
    jobs = [[Job({"day": DAY, "dedupe_key": name}, talk("user: Hello."), "")] for name in ("first", "second")]
    with pytest.raises(KeyboardInterrupt):
        observe(jobs, observer)
    assert observer.was_stopped
