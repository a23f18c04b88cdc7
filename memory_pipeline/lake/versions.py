"""The last versions of tables that cannot be rebuilt: offers, decisions, promotions and costs.

Each time such a file is written, a copy is stored in `backups/lake/<table>/`, on object storage in `backups/<table>/`
next to the tables. If the file is damaged or missing, the newest copy is restored: these files are never deleted on
purpose, and an empty day is an empty file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

import polars as pl

from memory_pipeline.lake.storage import SUFFIX, File, Storage

VERSIONS_KEPT = 3
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_VERSION_MARK = f"{SUFFIX}."


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
    try:
        pl.read_parquet(BytesIO(data))
    except pl.exceptions.PolarsError:
        return False
    return True
