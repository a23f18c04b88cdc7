"""The storage of the lake's files: a local folder, or objects in a bucket, with the same interface.

A day of a table is one file, so a single rename or PUT replaces it: readers see the old or the new rows, and a killed
process leaves one of them. The object storage of S3, Google and Azure replaces whole objects and is strongly
consistent, so no manifest is needed. Damaged files are quarantined.

Of tables that cannot be rebuilt (offers, decisions, promotions and costs) each version is copied when it is written, to
`backups/lake/<table>/` or on object storage to `backups/<table>/` next to the tables. If such a file is damaged or
missing, the newest copy is restored: these files are never deleted on purpose, and an empty day is an empty file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.markdown.safe_write import aside, make_folder, sync_folder

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

SUFFIX = ".parquet"
VERSIONS_KEPT = 3
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_VERSION_MARK = f"{SUFFIX}."
Expected = str | int | None | Literal["any"]
"""The version that a write replaces: None for a new file, `any` for any version."""


class ReplacedMeanwhileError(MemoryPipelineError):
    """Another writer replaced the file after it was read; nothing was written."""


class File(NamedTuple):
    """The state of a file of the lake at a point in time."""

    key: str
    """Table and name, like `messages/2025-03-05.parquet`."""
    size: int
    version: str | int
    """The version, which changes on each write: the ETag of an object, the modification time of a file in
    nanoseconds."""

    @property
    def stem(self) -> str:
        """The day of the file, or `all`."""
        return self.key.rpartition("/")[2].removesuffix(SUFFIX)


class Storage(Hashable, Protocol):
    """The storage interface of the lake. Keys are relative to it."""

    is_far: ClassVar[bool]
    """Whether storage is remote: reading the state of a file is a request, and that of a table a few."""

    @property
    def place(self) -> str:
        """The folder, or the URL."""

    @property
    def backups(self) -> Storage:
        """The storage of earlier versions of its files, with the same keys plus a time."""

    def place_of(self, key: str) -> str:
        """The path or URL of a file for messages to the user."""

    def is_begun(self, table: str = "") -> bool:
        """Whether anything was ever written to the storage, or to the table."""

    def changed_at(self, table: str) -> int:
        """The approximate time of the last write to the table, in nanoseconds; it differs after each write."""

    def files(self, table: str, first: str = "", last: str = "", suffix: str = SUFFIX) -> list[File]:
        """The files of the table, in order, optionally only those within a range of days."""

    def state(self, key: str) -> File | None:
        """The current state of the file, or None. Raises IsADirectoryError for a folder in its place."""

    def broken(self, keys: Sequence[str]) -> list[str]:
        """The keys of files that are missing or, by a quick check, truncated."""

    def local(self, file: File) -> str:
        """The path of the file on this machine, of an object that of its copy; it may have a newer version. Raises
        FileNotFoundError."""

    def read(self, file: File) -> bytes:
        """The bytes of the file, possibly of a newer version. Raises FileNotFoundError and IsADirectoryError."""

    def local_each(self, files: Sequence[File]) -> list[str]:
        """The paths of these files on this machine, without missing objects; objects are fetched concurrently."""

    def write(self, key: str, data: bytes, expected: Expected = "any") -> File:
        """Replace the file atomically. Raises `ReplacedMeanwhileError` if an object no longer has the expected version;
        in a folder, writers that expect a version hold their own lock."""

    def set_aside(self, key: str, damaged: bytes | None = None) -> str | None:
        """Quarantine a damaged file and return its new path. If bytes are given, this happens only while the file
        contains them; returns None if it does not, or is missing."""

    def put_aside(self) -> list[str]:
        """The keys of all quarantined files."""

    def remove(self, keys: Sequence[str]) -> None:
        """Delete the files; missing ones are ignored."""


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
        except OSError:  # missing; the reader reports one without permission
            return 0

    def files(self, table: str, first: str = "", last: str = "", suffix: str = SUFFIX) -> list[File]:
        found = []
        with suppress(FileNotFoundError), os.scandir(f"{self.place}/{table}") as entries:
            for entry in entries:
                name = entry.name
                if is_file_in_range(name, first, last, suffix):
                    with suppress(FileNotFoundError):  # moved away meanwhile
                        status = entry.stat()
                        found.append(File(f"{table}/{name}", status.st_size, status.st_mtime_ns))
        return sorted(found)

    def state(self, key: str) -> File | None:
        path = f"{self.place}/{key}"  # without a `Path`, as a plan asks for thousands
        try:
            status = os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        return File(key, status.st_size, status.st_mtime_ns)

    def broken(self, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if not _has_magic_bytes(self.root / key)]

    def read(self, file: File) -> bytes:
        """The bytes, read from a single open file: another open might find newer rows, as writers rename files into
        place."""
        return (self.root / file.key).read_bytes()

    def local(self, file: File) -> str:
        return self.place_of(file.key)

    def local_each(self, files: Sequence[File]) -> list[str]:
        return [self.place_of(file.key) for file in files]

    def write(self, key: str, data: bytes, expected: Expected = "any") -> File:
        path = self.root / key
        make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())  # sync before renaming, so that a crash leaves no empty file
            status = temporary.stat()
            temporary.replace(path)
            sync_folder(path.parent)  # a power cut must not undo the rename
        finally:
            temporary.unlink(missing_ok=True)
        return File(key, status.st_size, status.st_mtime_ns)

    def set_aside(self, key: str, damaged: bytes | None = None) -> str | None:
        path = self.root / key
        with suppress(FileNotFoundError):  # quarantined by another process
            if damaged is None or path.read_bytes() == damaged:
                return str(path.rename(aside(path)))
        return None

    def put_aside(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob("*/*.broken-*"))

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            (self.root / key).unlink(missing_ok=True)


def is_file_in_range(name: str, first: str, last: str, suffix: str) -> bool:
    """Whether a name is that of a table's file (or of a version, by its suffix) within a range of days."""
    stem, found, rest = name.partition(suffix)
    is_named = bool(found) and bool(rest) == (suffix != SUFFIX) and not name.startswith(".")
    return is_named and first <= stem and (not last or stem <= last)


def _has_magic_bytes(path: Path) -> bool:
    """Whether the file has the magic bytes of Parquet at both ends: a quick check for incomplete files."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            file.seek(-4, os.SEEK_END)
            return begin == file.read(4) == b"PAR1"
    except OSError:  # also if it has fewer than four bytes
        return False


def storage_of(settings: Settings) -> Storage:
    """The storage of the lake: the location in MEMORY_LAKE, else the workspace."""
    if settings.lake is None:
        return FolderStorage(settings.lake_dir)
    if settings.lake.startswith("file://"):
        return FolderStorage(Path(unquote(urlsplit(settings.lake).path)))
    return _objects(settings.lake, object_cache(settings))


def object_cache(settings: Settings) -> Path:
    """The folder of the object cache, which may be deleted at any time."""
    return settings.workspace / "cache" / "lake"


@cache
def _objects(url: str, kept: Path) -> Storage:
    """The client, one per process, as it keeps connections open."""
    from memory_pipeline.lake.object_storage import ObjectStorage

    return ObjectStorage(url, kept)


def keep_version(storage: Storage, key: str, data: bytes) -> None:
    """Copy the data just written, and delete all but the newest three versions."""
    earlier = versions_of(storage, key)
    if earlier and _bytes(storage, earlier[0]) == data:
        return
    storage.backups.write(f"{key}.{datetime.now(UTC):{_STAMP}}", data)
    storage.backups.remove([old.key for old in earlier[VERSIONS_KEPT - 1 :]])


def lost(storage: Storage, table: str) -> list[str]:
    """The table's files that are missing, empty or truncated although versions of them exist."""
    kept = storage.backups.files(table, suffix=_VERSION_MARK)
    return storage.broken(sorted({version.key.partition(_VERSION_MARK)[0] + SUFFIX for version in kept}))


def put_back(storage: Storage, key: str) -> str | None:
    """Restore the newest intact version of a file, which is quarantined if it exists. Returns a sentence about it, or
    None if there is no such version."""
    for version in versions_of(storage, key):
        if (data := _bytes(storage, version)) is not None and _is_intact(data):
            kept = storage.set_aside(key)
            state = f"was damaged and is kept as {kept.rpartition('/')[2]}" if kept else "was missing"
            storage.write(key, data)
            place = storage.backups.place_of(version.key)
            return f"{storage.place_of(key)} {state}; its last version was restored from {place}."
    return None


def versions_of(storage: Storage, key: str) -> list[File]:
    """The versions of a file, newest first."""
    table, _, name = key.partition("/")
    day = name.removesuffix(SUFFIX)
    return storage.backups.files(table, day, day, suffix=_VERSION_MARK)[::-1]


def _bytes(storage: Storage, version: File) -> bytes | None:
    try:
        return storage.backups.read(version)
    except OSError:
        return None


def _is_intact(data: bytes) -> bool:
    """Whether the whole file can be read; these files are small."""
    import polars as pl  # a search without forgotten texts does not need it

    try:
        pl.read_parquet(BytesIO(data))
    except pl.exceptions.PolarsError:
        return False
    return True
