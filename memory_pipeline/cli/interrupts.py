"""Whether a person pressed Ctrl-C meanwhile, also where a library took the signal and went on."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watched() -> Iterator[Callable[[], bool]]:
    """A function that tells it. Python writes each signal's number to the pipe before any handler has a say."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    seen = bytearray()

    def was_pressed() -> bool:
        with suppress(BlockingIOError):
            seen.extend(os.read(reader, 1024))
        return any(number in seen for number in STOPPING)

    try:
        yield was_pressed
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
