"""The tables: one Parquet file per table and day, the truth that everything else is derived from.

A file is written beside its place and renamed into it, so a reader sees the old rows or the new, never
half of them, and no lock is held. Each daily file carries the fingerprint of the inputs it was made from,
which is how a stage knows that a day is up to date.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.tables import TABLES, duckdb_type
from memory_pipeline.lake.versions import keep_version, lost, put_back
from memory_pipeline.markdown.safe_write import aside, make_folder, remove_temporary_files, sync_folder

if TYPE_CHECKING:
    import duckdb

log = logging.getLogger(__name__)
_FINGERPRINT, _RETIRED = "fingerprint", "retired"
MIN_FILES_AT_ONCE = 2
"""More are read at once: over two years of small files that is five times as fast, over two days it is slower."""
MAX_BYTES_AT_ONCE = 200_000_000
"""Of files that are read at once, as they lie on disk; more is read file by file."""


class DamagedTableError(MemoryPipelineError):
    """A file of a table cannot be read; the message names it and says what to do."""


class Lake:
    """Tables of `schemas.TABLES` under one directory, which is made on the first write.

    One made `for_planning` looks at each file once and believes for good what it saw: a plan over years asks for the
    same days again and again.
    """

    def __init__(self, root: Path, *, for_planning: bool = False) -> None:
        self.root = root
        self._healed: set[str] = set()
        self._seen: dict[str, tuple[str, int, int] | None] | None = {} if for_planning else None

    @property
    def is_for_planning(self) -> bool:
        return self._seen is not None

    def path(self, table: str, day: date | None = None) -> Path:
        name = f"{day:%Y-%m-%d}" if TABLES[table].daily and day else "all"
        return self.root / table / f"{name}.parquet"

    def days(self, table: str) -> list[date]:
        """The days that have a file, empty ones included, oldest first."""
        return sorted(date.fromisoformat(p.stem) for p in (self.root / table).glob("????-??-??.parquet"))

    def read(
        self, table: str, days: Iterable[date] | None = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The rows of these days (None: all), typed also when there are none; only some columns where named.

        A damaged file of rows that can be made again is set aside, and its day reads as if it had never been written.
        Raises `DamagedTableError` where they cannot.
        """
        self._heal(table)
        if not TABLES[table].daily:
            paths = [self.path(table)]
        else:
            paths = [self.path(table, day) for day in (self.days(table) if days is None else sorted(set(days)))]
        paths = [path for path in paths if path.exists()]
        if len(paths) > MIN_FILES_AT_ONCE and (at_once := self._at_once(table, paths, columns)) is not None:
            return at_once
        empty = pl.DataFrame(schema=TABLES[table].columns).select(columns or pl.all())
        return pl.concat([empty, *(self._frame(table, path, columns) for path in paths)])

    def replace(
        self,
        table: str,
        frame: pl.DataFrame,
        days: Iterable[date],
        fingerprints: Mapping[date, str] | None = None,
    ) -> None:
        """Make `frame` the rows of exactly these days; a day without rows becomes an empty file.

        Raises ValueError when the frame has other columns than the table or rows of other days.
        """
        days = sorted(set(days))
        frame = self._conform(table, frame)
        strange = set(frame["day"].unique()) - set(days)
        if strange:
            raise ValueError(f"{table}: rows of {sorted(strange)} were given, but only {days} are replaced.")
        for day in days:
            fingerprint = (fingerprints or {}).get(day, "")
            rows = frame.filter(pl.col("day") == day)
            self._write(table, rows, self.path(table, day), fingerprint, self.is_retired(table, day))

    def retire(self, table: str, frame: pl.DataFrame, day: date) -> None:
        """Make `frame`, which has less than there was, the rows of the day for good: `is_retired` says from now on that
        they cannot be made again."""
        self._write(table, self._conform(table, frame), self.path(table, day), "", is_retired=True)

    def is_retired(self, table: str, day: date) -> bool:
        """Whether something of the day's rows is no longer kept."""
        return _RETIRED in self._metadata(table, day)

    def replace_all(self, table: str, frame: pl.DataFrame) -> None:
        """Make `frame` the rows of a table that is not cut by day."""
        self._write(table, self._conform(table, frame), self.path(table), "")

    def fingerprint(self, table: str, day: date) -> str | None:
        """What `replace` was told of the day's inputs; None when the day was never written or cannot be read."""
        return self._metadata(table, day).get(_FINGERPRINT)

    def _metadata(self, table: str, day: date) -> dict[str, str]:
        """Of the day's file; empty where there is none, or none that can be read."""
        state = self._state(table, day)
        try:
            return {_FINGERPRINT: ""} | _file_metadata(*state) if state else {}
        except FileNotFoundError:
            return {}
        except pl.exceptions.PolarsError:
            if state and TABLES[table].is_derived:  # the stage that makes it anew would write over it
                self._frame(table, Path(state[0]), None)
            return {}

    def digest(self, table: str, days: Iterable[date]) -> str:
        """A hash over the days' bytes: equal when nothing that a later stage reads has changed."""
        total = hashlib.sha256()
        for day in sorted(set(days)):
            if state := self._state(table, day):
                with suppress(FileNotFoundError):  # set aside since
                    total.update(f"{day}".encode() + _file_digest(*state))
        return total.hexdigest()

    def _state(self, table: str, day: date) -> tuple[str, int, int] | None:
        """Path, size and time of the day's file, if it is there. A plan asks for thousands, so no `Path` is made."""
        path = f"{self.root}/{table}/{day}.parquet"
        if self._seen is not None and path in self._seen:
            return self._seen[path]
        try:
            status = os.stat(path)  # noqa: PTH116
            is_folder = stat.S_ISDIR(status.st_mode)
            state = None if is_folder else (path, status.st_size, status.st_mtime_ns)
            if is_folder and TABLES[table].is_derived:
                out_of_the_way(Path(path))
        except FileNotFoundError:
            state = None
        if self._seen is not None:
            self._seen[path] = state
        return state

    def files(self, table: str) -> list[str]:
        """The paths of the table's files, the oldest day first."""
        return sorted(glob.glob(f"{glob.escape(str(self.root / table))}/*.parquet"))  # noqa: PTH207 - thousands

    def attach_views(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make every table a view of the connection, those without files too; times show in UTC."""
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in TABLES.items():
            columns = ", ".join(f'CAST(NULL AS {duckdb_type(t)}) AS "{c}"' for c, t in table.columns.items())
            query = f"SELECT {columns} WHERE false"
            if files := ", ".join(map(sql_text, self.files(name))):
                query += f" UNION ALL BY NAME SELECT * FROM read_parquet([{files}], union_by_name = true)"
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')

    def _heal(self, table: str) -> None:
        """Put back what is lost of a table that cannot be made again; once, since nothing of it goes by itself."""
        if TABLES[table].is_derived or table in self._healed:
            return
        self._healed.add(table)
        for path in lost(self.root, table):
            if sentence := put_back(self.root, table, path):
                log.warning(sentence)

    def _at_once(self, table: str, paths: list[Path], columns: Sequence[str] | None) -> pl.DataFrame | None:
        """All rows of these files; None where one is damaged or has other types, and they are looked at one by one, or
        where they are too large to be held at once."""
        schema = TABLES[table].columns
        try:
            if sum(path.stat().st_size for path in paths) > MAX_BYTES_AT_ONCE:
                return None
            scan = pl.scan_parquet(
                [_content(path).getvalue() for path in paths], missing_columns="insert", schema=schema
            )
            return scan.select(list(columns or schema)).collect()
        except (pl.exceptions.PolarsError, OSError):
            return None

    def _frame(self, table: str, path: Path, columns: Sequence[str] | None) -> pl.DataFrame:
        frame = pl.DataFrame(schema=TABLES[table].columns)
        try:
            content = _content(path)
        except FileNotFoundError:  # another process has just set it aside
            return frame.select(columns or pl.all())
        except IsADirectoryError:
            if not TABLES[table].is_derived:
                raise
            out_of_the_way(path)
            return frame.select(columns or pl.all())
        try:
            stored = pl.read_parquet_schema(content) if columns else {}
            wanted = [name for name in columns if name in stored] if columns else None
            content.seek(0)
            frame = pl.read_parquet(content, columns=wanted)
        except pl.exceptions.PolarsError as error:
            if TABLES[table].is_derived:
                set_aside(path, content.getvalue())
            elif sentence := put_back(self.root, table, path):
                log.warning(sentence)
                return self._frame(table, path, columns)
            else:
                reason = f"{path} cannot be read ({type(error).__name__}). {TABLES[table].fix}"
                raise DamagedTableError(reason) from error
        try:
            return self._conform(table, frame).select(columns or pl.all())
        except pl.exceptions.PolarsError as error:  # other types than ours: nothing is wrong with the file
            raise DamagedTableError(f"{path} cannot be read ({type(error).__name__}). {TABLES[table].fix}") from error

    def _conform(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with the table's columns in order; columns added since a file was written are null."""
        columns = TABLES[table].columns
        strange = set(frame.columns) - set(columns)
        if strange:
            raise ValueError(f"{table} has no column {sorted(strange)}; its columns are {list(columns)}.")
        missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in columns.items() if name not in frame.columns]
        return frame.with_columns(missing).select(list(columns)).cast(dict(columns))  # type: ignore[arg-type]

    def _write(self, table: str, frame: pl.DataFrame, path: Path, fingerprint: str, is_retired: bool = False) -> None:
        make_folder(path.parent)
        remove_temporary_files(path.parent, ".*.parquet.*.tmp")
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            metadata = {_FINGERPRINT: fingerprint} | ({_RETIRED: "yes"} if is_retired else {})
            frame.sort(list(TABLES[table].order)).write_parquet(temporary, metadata=metadata)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # the rows before the name: no crash may leave an empty file in its place
            temporary.replace(path)
            sync_folder(path.parent)  # a power cut may not bring back what was there before
        finally:
            temporary.unlink(missing_ok=True)
        if not TABLES[table].is_derived:
            keep_version(self.root, table, path)


def _content(path: Path) -> BytesIO:
    """The file's bytes, by one opening of it: who opens it again for the rows that its footer names may meet other
    rows, because a writer has renamed new ones into its place."""
    return BytesIO(path.read_bytes())


def out_of_the_way(folder: Path) -> None:
    """Rename a folder that stands in the place of a file, unless another process has."""
    with suppress(FileNotFoundError):
        folder.rename(aside(folder))


def set_aside(path: Path, damaged: bytes) -> None:
    """Rename a damaged file to `<name>.broken-<n>`, unless another process has set it aside or written it anew."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == damaged:
            path.rename(aside(path))


@lru_cache(maxsize=20_000)
def _file_digest(path: str, size: int, modified_ns: int) -> bytes:
    """Of the file as it was then: a plan looks at every file of the lookback of every day."""
    return hashlib.sha256(Path(path).read_bytes()).digest()


@lru_cache(maxsize=20_000)
def _file_metadata(path: str, size: int, modified_ns: int) -> dict[str, str]:
    return {key: value for key, value in pl.read_parquet_metadata(path).items() if key in (_FINGERPRINT, _RETIRED)}


def sql_text(text: str) -> str:
    """As a string of SQL."""
    return "'{}'".format(text.replace("'", "''"))


def fingerprint_of(*parts: object) -> str:
    """A hash over the texts of the parts, in order."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()
