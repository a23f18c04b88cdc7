"""Ctrl-C is known of, whoever has handled it."""

import gc
import os
import signal
import sys
import time
import weakref

import pytest

from memory_pipeline.defs.runs import interrupts, lost_interrupts_again


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


def test_another_signal_is_none() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with interrupts() as is_pressed:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not is_pressed()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_that_python_prints_and_loses_comes_once_more_without_a_trace(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As where a library's weak reference is told that its object is gone, at the moment of the signal."""

    class Gone:
        pass

    def at_that_moment(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), lost_interrupts_again():
        lost = Gone()
        kept = weakref.ref(lost, at_that_moment)
        del lost
        assert kept() is None
        time.sleep(30)
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_another_error_that_is_lost_is_told_as_before() -> None:
    class Gone:
        def __del__(self) -> None:
            raise ValueError("told")

    told = []
    before, sys.unraisablehook = sys.unraisablehook, lambda lost: told.append(f"{lost.exc_value}")
    try:
        with lost_interrupts_again():
            Gone()
            gc.collect()
    finally:
        sys.unraisablehook = before
    assert told == ["told"]
