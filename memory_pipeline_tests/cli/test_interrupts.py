"""Ctrl-C is known of, whoever has handled it."""

import os
import signal

import pytest

from memory_pipeline.defs.runs import interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_library_has_swallowed_is_seen(number: signal.Signals) -> None:
    before = signal.signal(number, lambda *_: None)
    try:
        with interrupts() as is_pressed:
            assert not is_pressed()
            os.kill(os.getpid(), number)
            assert is_pressed() and is_pressed()
        with interrupts() as is_pressed:
            assert not is_pressed()
    finally:
        signal.signal(number, before)
