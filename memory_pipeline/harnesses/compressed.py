"""Session files compressed with zstd by their harness, as Codex does with rollouts after some days.

`NAME.jsonl.zst` is the same session file as `NAME.jsonl`, and keeps that path as its key.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipeline.harnesses.model import COMPRESSED

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DECOMPRESSED_LIMIT = 8 * 1024**3
"""Maximum decompressed bytes of a file. A rollout has a few hundred MB at most, but a few KB can expand to more than
any disk."""
_BUFFER = 256 * 1024


def is_compressed(path: str) -> bool:
    return path.endswith(COMPRESSED)


def where_it_lies(path: Path) -> Path:
    """The file for this path: itself, or its compressed form."""
    compressed = path.with_name(f"{path.name}.zst")
    # Path.exists() raises for an inaccessible folder
    is_there, is_packed = os.path.exists(path), os.path.exists(compressed)  # noqa: PTH110
    return compressed if is_compressed(compressed.name) and is_packed and not is_there else path


def open_session(path: str | Path) -> io.BufferedReader:
    """The file, decompressed on the fly. A damaged one gives as much as can be decompressed, and `damage_of` returns
    the problem."""
    if is_compressed(str(path)):
        return io.BufferedReader(_Decompressed(Path(path)), _BUFFER)
    return io.BufferedReader(Path(path).open("rb", buffering=0), _BUFFER)


def damage_of(file: io.BufferedReader) -> str:
    """The reason why reading stopped before the end of the file; "" if it did not."""
    return file.raw.damage if isinstance(file.raw, _Decompressed) else ""


class _Decompressed(io.RawIOBase):
    """The decompressed content of a zstd file, as far as it can be decompressed."""

    def __init__(self, path: Path) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        self.damage = ""
        self._error = zstd.ZstdError
        self._left = DECOMPRESSED_LIMIT
        self._file = zstd.ZstdFile(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = b""
        try:
            data = b"" if self.damage else self._file.read1(min(len(view), self._left + 1))
        except self._error:
            self.damage = "The compressed data is damaged from here on; the part before it was read."
        except EOFError:
            self.damage = "The compressed file ends in the middle; the part before that was read."
        if len(data) > self._left:
            self.damage = f"It has more than {DECOMPRESSED_LIMIT >> 30} GB decompressed; the rest was left out."
            data = data[: self._left]
        view[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
