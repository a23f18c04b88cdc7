"""The nine tables with the events of proposals up to format 4, for migrations and for forgetting.

They are read directly from the lake, as `lake/tables.py` no longer declares them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from io import BytesIO
from pathlib import Path

import polars as pl

from memory_pipeline.lake.storage import SUFFIX, File, Storage, keep_version, lost, put_back
from memory_pipeline.lake.store import DamagedTableError
from memory_pipeline.lake.tables import TABLES

MOMENTS = {
    "decisions": ("decided", "decided_at"),
    "showings": ("shown", "shown_at"),
    "displacements": ("displaced", "displaced_at"),
    "shown_days": ("shown_day", None),
    "reoffers": ("reoffered", "reoffered_at"),
    "promotions": ("promoted", "promoted_at"),
    "auto_promotions": ("would_promote", "would_promote_at"),
    "applied_fixes": ("applied", "applied_at"),
    "auto_fixes": ("would_apply", "would_apply_at"),
}
"""For each table the kind of its events, and its time column."""
_RENAMED = {"reoffered": "again", "place": "surface"}


def are_there(storage: Storage) -> bool:
    """Whether a file of these tables, or a version of one, exists."""
    return any(_files(storage, table) or lost(storage, table) for table in MOMENTS)


def days(storage: Storage, table: str) -> list[date]:
    """The days with a file, oldest first."""
    return [date.fromisoformat(file.stem) for file in _files(storage, table)]


def read(storage: Storage, table: str) -> pl.DataFrame:
    """All rows, with the columns that `events` also has. A missing or damaged file is restored from its last version.
    Raises `DamagedTableError` if there is none."""
    kind, moment = MOMENTS[table]
    for key in lost(storage, table):
        put_back(storage, key)
    frames = [_frame(storage, file) for file in _files(storage, table)]
    columns = TABLES["events"].columns
    if not frames:
        return pl.DataFrame(schema=columns)
    rows = pl.concat(frames, how="diagonal_relaxed")
    if table == "reoffers":
        rows = rows.with_columns(reason=_reasons(rows))
    if moment:
        rows = rows.rename({moment: "happened_at"})
    rows = rows.rename({old: new for old, new in _RENAMED.items() if old in rows.columns}).with_columns(
        kind=pl.lit(kind)
    )
    missing = [pl.lit(None).alias(name) for name in columns if name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(name).cast(type_) for name, type_ in columns.items())


def remove(storage: Storage) -> None:
    """Remove the files, each after a version of it is in the backups."""
    for table in MOMENTS:
        for file in _files(storage, table):
            keep_version(storage, file.key, storage.read(file))
            storage.remove([file.key])
        if not storage.is_far:
            with suppress(OSError):  # missing, or it has other content
                Path(storage.place, table).rmdir()


def remove_backups(storage: Storage) -> None:
    """Remove the versions, which contain what is to be forgotten."""
    storage.backups.remove([old.key for table in MOMENTS for old in storage.backups.files(table, suffix=f"{SUFFIX}.")])


def _files(storage: Storage, table: str) -> list[File]:
    return [file for file in storage.files(table) if file.stem.count("-") == 2]


def _frame(storage: Storage, file: File) -> pl.DataFrame:
    for _ in range(2):
        try:
            return pl.read_parquet(BytesIO(storage.read(file)))
        except pl.exceptions.PolarsError:
            put_back(storage, file.key)
    place = storage.place_of(file.key)
    raise DamagedTableError(f"{place} cannot be read. Nor can any version of it in the backups: restore a copy of it.")


def _reasons(reoffers: pl.DataFrame) -> pl.Series:
    """Why each proposal was offered again, in words: the table has the number of days instead, if any."""
    days = reoffers["days_shown"].to_list() if "days_shown" in reoffers.columns else [None] * reoffers.height
    return pl.Series(
        ["the fix that replaced it was withdrawn" if count is None else shown_on(count) for count in days],
        dtype=pl.String,
    )


def shown_on(count: int) -> str:
    """The reason for offering a proposal again that expired unseen."""
    return f"it is known to have been shown on {count or 'no'} {'day' if count == 1 else 'days'}"
