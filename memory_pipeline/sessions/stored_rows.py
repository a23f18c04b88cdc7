"""The rows of the table `files`, read once per process and merged with those of other processes on writing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from memory_pipeline.lake.rows import FileRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.locks import FileLock

LOCK_SECONDS = 60.0
"""Seconds to wait for another process that writes the table, which takes a second with 100,000 files."""


@dataclass(frozen=True)
class StoredRows:
    """The stored catalogue as last read by this process; its rows are replaced, never modified."""

    version: str | int | None
    """The version of the file; see `Lake.version`."""
    frame: pl.DataFrame
    rows: dict[str, FileRow]


_STORED: dict[str, StoredRows] = {}


def stored(lake: Lake) -> StoredRows:
    """The currently stored rows."""
    place, version = lake.place("files"), lake.version("files")
    known = _STORED.get(place)
    if known is None or known.version != version:
        frame = lake.read("files")
        known = _STORED[place] = StoredRows(version, frame, {row["path"]: row for row in typed_rows(frame, FileRow)})
    return known


def write_rows(lake: Lake, folder: Path, changed: Mapping[str, FileRow], gone: Collection[str]) -> None:
    """Write the changed rows into the stored ones, which may include those of other processes. Most of the work is for
    unchanged rows. `folder` has the lock."""
    made: list[StoredRows] = []

    def with_changes(_: pl.DataFrame) -> pl.DataFrame:
        known = stored(lake)
        old = known.frame.filter(~pl.col("path").is_in([*changed, *gone]))
        new = pl.DataFrame(list(changed.values()), schema_overrides=old.schema)
        frame = pl.concat([old, new.select(old.columns)]) if len(new) else old
        rows = {key: row for key, row in known.rows.items() if key not in gone}
        made.append(StoredRows(None, frame, rows | dict(changed)))
        return frame

    with FileLock(folder / "files.lock", timeout=LOCK_SECONDS):
        lake.update("files", with_changes)
        _STORED[lake.place("files")] = replace(made[-1], version=lake.version("files"))
