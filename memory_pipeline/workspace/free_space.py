"""Free space on the disk: checked before a run, with one sentence for a disk that fills up later."""

from __future__ import annotations

import errno
import re
import shutil
from contextlib import suppress
from pathlib import Path

from memory_pipeline.errors import CannotGoOnError

MIN_FREE_BYTES = 250_000_000
"""Minimum free bytes. The index memory-maps sparse files of 146 MB, and a process that writes into a hole on a full
disk is killed by a signal (SIGBUS) without a message. A day of sessions needs a few megabytes besides."""
BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the block size of the file system."""
USED_UP_BYTES = 1_000_000
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SAYS_SO = re.compile(r"no space left on device|(database or )?disk is full|disk quota exceeded", re.I)
"""Messages of libraries that hide the error number."""


class DiskFullError(CannotGoOnError):
    """Too little room on the disk of the workspace; the message says how much there is."""


def require_space(folder: Path) -> None:
    """Raise `DiskFullError` if the disk of the folder, which may not exist yet, has too little room."""
    if _free(folder) < MIN_FREE_BYTES:
        raise DiskFullError(disk_full(folder))


def disk_full(folder: Path) -> str:
    """The message for a full disk."""
    return (
        f"The disk of {folder} is full: {_free(folder) / 1e6:.0f} MB are free, and {MIN_FREE_BYTES / 1e6:.0f} are "
        "needed. Make room and run it again; what is stored is whole."
    )


def is_disk_full(error: BaseException | None, folder: Path) -> bool:
    """Whether the error, or one of its causes, means a full disk, or no room is left at all, which hardly any library
    reports as such."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if (isinstance(error, OSError) and error.errno in _FULL) or _SAYS_SO.search(f"{error}"):
            return True
        error = error.__cause__ or error.__context__
    return is_used_up(folder)


def is_used_up(folder: Path) -> bool:
    """Whether the disk has no room left for anything."""
    return _free(folder) < USED_UP_BYTES


def _free(folder: Path) -> int:
    standing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(standing).free


def size_on_disk(folder: Path) -> int:
    """Bytes on disk of the folder's files, without holes; 0 if there is no such folder."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a run that goes on removes files of its own
            total += path.lstat().st_blocks * BLOCK_BYTES
    return total
