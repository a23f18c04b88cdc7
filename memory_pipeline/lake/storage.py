"""The storage of the lake's files: a folder of this machine, or objects in a bucket, with the same interface.

A day of a table is one file, so one rename, or one PUT, replaces it: readers see the old rows or the new, and a killed
client leaves one of them. S3, Google's and Azure's object storage replace whole objects and show a write to every later
read and listing, so no manifest is needed. Earlier versions are in `backups/`, and damaged files are quarantined, in
both.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.markdown.safe_write import aside, make_folder, remove_temporary_files, sync_folder

SUFFIX = ".parquet"
Expected = str | int | None | Literal["any"]
"""The version that a write replaces: None for a new file, `any` for any version."""


class ReplacedMeanwhileError(MemoryPipelineError):
    """Another writer has replaced the file since it was read; nothing was written."""


class File(NamedTuple):
    """A file of the lake as it was when it was looked at."""

    key: str
    """Its table and name, like `messages/2025-03-05.parquet`."""
    size: int
    version: str | int
    """Another one when it is written again: the ETag of an object, the nanosecond of a file."""

    @property
    def stem(self) -> str:
        """Its day, or `all`."""
        return self.key.rpartition("/")[2].removesuffix(SUFFIX)


class Storage(Hashable, Protocol):
    """The storage interface of the lake. Keys are relative to it."""

    is_far: ClassVar[bool]
    """Whether a look at one file is a request, and one at a table a few."""

    @property
    def place(self) -> str:
        """The folder, or the URL."""

    @property
    def backups(self) -> Storage:
        """The folder of earlier versions of its files, by the same keys with a time appended."""

    def place_of(self, key: str) -> str:
        """The path or URL that messages to the user name."""

    def is_begun(self, table: str = "") -> bool:
        """Whether anything was ever written there, or of the table."""

    def changed_at(self, table: str) -> int:
        """About when a file of the table was written last, in nanoseconds, and another number after each write."""

    def all_files(self) -> Iterable[File]:
        """The files of every table."""

    def files(self, table: str, first: str = "", last: str = "", suffix: str = SUFFIX) -> list[File]:
        """The table's, in order; only those from a day to a day where they are given."""

    def state(self, key: str) -> File | None:
        """The file as it is now. Raises IsADirectoryError for a folder in its place."""

    def broken(self, keys: Sequence[str]) -> list[str]:
        """The keys of files that are gone or, by a quick look, cut off."""

    def read(self, file: File) -> bytes:
        """Its bytes, or those that were written since. Raises FileNotFoundError and IsADirectoryError."""

    def read_each(self, files: Sequence[File]) -> list[bytes | None]:
        """Likewise of several, several at once; None for one that is gone."""

    def source(self, file: File) -> str | BytesIO:
        """The source that a reader of Parquet opens for the footer."""

    def digest(self, file: File) -> bytes:
        """SHA-256 of its bytes."""

    def write(self, key: str, data: bytes, expected: Expected = "any") -> File:
        """Replace the file, whole or not at all. Raises `ReplacedMeanwhileError` where an object is no longer the
        expected one; in a folder, writers that expect something hold a lock of their own."""

    def set_aside(self, key: str, damaged: bytes | None = None) -> str | None:
        """Quarantine a damaged file and return its new path. If bytes are given, only while it contains these; None if
        it does not, or is missing."""

    def put_aside(self) -> list[str]:
        """The keys of all that were."""

    def remove(self, keys: Sequence[str]) -> None:
        """Delete the file; one that is gone already is no error."""


@dataclass(frozen=True)
class FolderStorage:
    """Files in a folder, which is made on the first write.

    A file is written beside its place and renamed into it, and outlasts a power cut from then on. No lock is held.
    """

    root: Path
    is_far: ClassVar[bool] = False

    @property
    def place(self) -> str:
        return str(self.root)

    @property
    def backups(self) -> FolderStorage:
        return FolderStorage(self.root.parent / "backups" / self.root.name)

    def place_of(self, key: str) -> str:
        return f"{self.place}/{key}"

    def is_begun(self, table: str = "") -> bool:
        return (self.root / table).is_dir()

    def changed_at(self, table: str) -> int:
        try:
            return (self.root / table).stat().st_mtime_ns
        except OSError:  # not there; one that may not be entered is told of by who reads it
            return 0

    def all_files(self) -> Iterator[File]:
        for folder, _, names in os.walk(self.root):
            for name in names:
                with suppress(OSError):
                    key = os.path.relpath(f"{folder}/{name}", self.root)
                    found = os.stat(f"{folder}/{name}")  # noqa: PTH116 - of thousands of files
                    yield File(key, found.st_size, found.st_mtime_ns)

    def files(self, table: str, first: str = "", last: str = "", suffix: str = SUFFIX) -> list[File]:
        found = []
        with suppress(FileNotFoundError), os.scandir(f"{self.place}/{table}") as entries:
            for entry in entries:
                name = entry.name
                if is_asked_for(name, first, last, suffix):
                    with suppress(FileNotFoundError):  # set aside since
                        status = entry.stat()
                        found.append(File(f"{table}/{name}", status.st_size, status.st_mtime_ns))
        return sorted(found)

    def state(self, key: str) -> File | None:
        path = f"{self.place}/{key}"  # a plan asks for thousands, so no `Path` is made
        try:
            status = os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        return File(key, status.st_size, status.st_mtime_ns)

    def broken(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if not _has_both_ends(self.root / key)]

    def read(self, file: File) -> bytes:
        """The bytes, read by one opening: a second one, for the rows that the footer names, may meet other rows, since
        a writer has renamed new ones into their place."""
        return (self.root / file.key).read_bytes()

    def read_each(self, files: Sequence[File]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for file in files:
            try:
                found.append(self.read(file))
            except FileNotFoundError:
                found.append(None)
        return found

    def source(self, file: File) -> str:
        return self.place_of(file.key)

    def digest(self, file: File) -> bytes:
        return _file_digest(self.place_of(file.key), file.size, int(file.version))

    def write(self, key: str, data: bytes, expected: Expected = "any") -> File:
        path = self.root / key
        make_folder(path.parent)
        remove_temporary_files(path.parent, ".*.parquet*.tmp")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())  # the rows before the name: no crash may leave an empty file in its place
            status = temporary.stat()
            temporary.replace(path)
            sync_folder(path.parent)  # a power cut may not bring back what was there before
        finally:
            temporary.unlink(missing_ok=True)
        return File(key, status.st_size, status.st_mtime_ns)

    def set_aside(self, key: str, damaged: bytes | None = None) -> str | None:
        path = self.root / key
        with suppress(FileNotFoundError):  # another process has set it aside
            if damaged is None or path.read_bytes() == damaged:
                return str(path.rename(aside(path)))
        return None

    def put_aside(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob("*/*.broken-*"))

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            (self.root / key).unlink(missing_ok=True)


def is_asked_for(name: str, first: str, last: str, suffix: str) -> bool:
    """Whether a name is a table's file (a version's, by its suffix) from a day to a day."""
    stem, found, rest = name.partition(suffix)
    is_named = bool(found) and bool(rest) == (suffix != SUFFIX) and not name.startswith(".")
    return is_named and first <= stem and (not last or stem <= last)


def _has_both_ends(path: Path) -> bool:
    """Whether it begins and ends as Parquet does: a quick look that finds what was not written to its end."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            file.seek(-4, os.SEEK_END)
            return begin == file.read(4) == b"PAR1"
    except OSError:  # also where it has fewer than four bytes
        return False


@lru_cache(maxsize=20_000)
def _file_digest(path: str, size: int, modified_ns: int) -> bytes:
    """A hash of the file as it was then: a plan looks at every file of the lookback of every day."""
    return hashlib.sha256(Path(path).read_bytes()).digest()
