"""A lock on an index folder, held by one process at a time and only while no other waits for it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from filelock import Timeout

from memory_pipeline.locks import FileLock


class FairLock:
    """A lock beside the folder (`FOLDER.lock`), with a second one (`FOLDER.next.lock`) that a waiting process holds.

    So the holder can see whether another process waits; both end with their process. Raises `filelock.Timeout` after
    `timeout` seconds. It is not thread-local: another thread may release it.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        self.timeout = timeout
        self._lock = FileLock(f"{folder}.lock", thread_local=False)
        self._next = FileLock(f"{folder}.next.lock", thread_local=False)

    def acquire(self) -> None:
        deadline = time.monotonic() + self.timeout
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            with self._next.acquire(timeout=self.timeout):
                self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def is_wanted(self) -> bool:
        """Whether another process waits for the lock."""
        try:
            with self._next.acquire(timeout=0):
                return False
        except Timeout:
            return True

    def release(self) -> None:
        """Safe to call twice."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
