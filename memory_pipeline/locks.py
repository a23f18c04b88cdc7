"""Locks of files in the workspace. A file system without locks is reported in one sentence."""

from __future__ import annotations

import errno
from typing import Any

import filelock

from memory_pipeline.errors import CannotGoOnError

_NOT_SUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class LocksUnsupportedError(CannotGoOnError):
    """The file system of the workspace does not support locks."""


class FileLock(filelock.FileLock):
    """A lock that processes have one at a time. Raises `filelock.Timeout` and `LocksUnsupportedError`."""

    def acquire(self, *args: Any, **options: Any) -> filelock.AcquireReturnProxy[Any]:
        try:
            return super().acquire(*args, **options)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            raise LocksUnsupportedError(
                f"{self.lock_file} cannot be locked: its file system does not support locks. "
                "Set MEMORY_WORKSPACE to a folder on a local disk, or mount the file system with locks."
            ) from error
