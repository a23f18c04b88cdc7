"""Free disk space: a check before a run, and the message for a disk that fills up later."""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from memory_pipeline.errors import CannotGoOnError, causes

MIN_FREE_BYTES = 250_000_000
"""Minimum free bytes. The index memory-maps sparse files of 146 MB, and a process that writes into a hole on a full
disk is killed by SIGBUS without a message. In addition, a day of sessions needs a few megabytes."""
BLOCK_BYTES = 512
"""The unit of `st_blocks`, independent of the block size of the file system."""
USED_UP_BYTES = 1_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_MESSAGES = re.compile(r"no space left on device|(database or )?disk is full|disk quota exceeded", re.I)
"""Messages of libraries that hide the error number."""


class DiskFullError(CannotGoOnError):
    """There is too little space on the disk of the workspace; the message gives the amount."""


def require_space(folder: Path) -> None:
    """Raise `DiskFullError` if there is too little space on the disk of the folder, which may not exist yet."""
    if _free(folder) < MIN_FREE_BYTES:
        raise DiskFullError(disk_full(folder))


def disk_full(folder: Path) -> str:
    """The message for a full disk."""
    return (
        f"The disk of {folder} is full: {_free(folder) / 1e6:.0f} MB are free, and {MIN_FREE_BYTES / 1e6:.0f} are "
        "needed. Make room and run it again; stored data is intact."
    )


def is_disk_full(error: BaseException | None, folder: Path) -> bool:
    """Whether the error, or one of its causes, means a full disk, or the disk has no space left, which hardly any
    library reports."""
    reported = any(
        (isinstance(one, OSError) and one.errno in _FULL) or _FULL_MESSAGES.search(f"{one}") for one in causes(error)
    )
    return reported or is_used_up(folder)


def is_used_up(folder: Path) -> bool:
    """Whether the disk has no space left."""
    return _free(folder) < USED_UP_BYTES


def _free(folder: Path) -> int:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(existing).free


def size_on_disk(folder: Path) -> int:
    """Bytes that the folder's files occupy on disk, without holes; 0 if there is no such folder."""
    total, folders = 0, [f"{folder}"]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):  # a concurrent run removes files
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return total
