"""Access for DuckDB to the objects of a lake in object storage, without the extension that it would have to download.

DuckDB requests the state of each file about twenty times and its contents in pieces. These calls are answered from the
listing and cache of `ObjectStorage`, so a query costs a listing of each table and the new objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem

if TYPE_CHECKING:
    import duckdb

    from memory_pipeline.lake.storage import File, Storage


class _ObjectFileSystem(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """A read-only file system for a scheme such as `s3`, with the listed objects only."""

    cachable = False

    def __init__(self, scheme: str, storage: Storage, files: Mapping[str, File]) -> None:
        super().__init__()
        self.protocol = scheme
        self._storage, self._objects = storage, files

    def open(self, path: str, mode: str = "rb", **_: Any) -> BytesIO:
        if mode != "rb":
            raise PermissionError(path)
        return BytesIO(self._storage.read(self._file(path)))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": self._file(path).size, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path] if path in self._objects else []

    def exists(self, path: str, **_: Any) -> bool:
        return path in self._objects

    def modified(self, path: str) -> datetime:
        """A constant time for every object; versions are fixed by the listing."""
        return datetime.fromtimestamp(0, UTC)

    def _file(self, path: str) -> File:
        if path not in self._objects:
            raise FileNotFoundError(path)
        return self._objects[path]


def read_in_place(connection: duckdb.DuckDBPyConnection, storage: Storage, files: list[File]) -> None:
    """Let the connection read these objects, which are fetched now, several at once."""
    storage.read_each(files)
    scheme = storage.place.partition("://")[0]
    if connection.filesystem_is_registered(scheme):
        connection.unregister_filesystem(scheme)
    connection.register_filesystem(
        _ObjectFileSystem(scheme, storage, {storage.place_of(file.key): file for file in files})
    )
