"""Reading many days of a table at once: they are as many small files, and each read costs more than its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.schemas import TABLES


def read_all(
    lake: Lake, table: str, columns: Sequence[str] | None = None, days: Iterable[date] | None = None
) -> pl.DataFrame:
    """The same as `lake.read(table, days, columns)`, several times as fast over two years."""
    wanted = None if days is None else set(days)
    paths = [lake.path(table, day) for day in lake.days(table) if wanted is None or day in wanted]
    if len(paths) > 1:
        schema = TABLES[table].columns
        try:
            scan = pl.scan_parquet(paths, glob=False, missing_columns="insert", schema=schema)
            return scan.select(list(columns or schema)).collect()
        except (pl.exceptions.PolarsError, OSError):
            pass  # a damaged file, or one with other types: read one by one it is named or cast
    return lake.read(table, wanted, columns)
