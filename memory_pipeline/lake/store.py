"""The tables: one Parquet file per table and day, from which everything else is derived.

A file is replaced atomically, so a reader sees the old or the new rows, and no lock is needed. `storage.py` decides
where the files are. Each daily file has the fingerprint of its inputs, by which a stage knows that a day is up to date.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import polars as pl

from memory_pipeline.errors import MemoryPipelineError, TryAgainLaterError
from memory_pipeline.lake.storage import (
    SUFFIX,
    Expected,
    File,
    FolderStorage,
    ReplacedMeanwhileError,
    Storage,
    keep_version,
    lost,
    put_back,
    storage_of,
)
from memory_pipeline.lake.tables import TABLES, VIEWS, duckdb_type

if TYPE_CHECKING:
    import duckdb

    from memory_pipeline.settings import Settings

log = logging.getLogger(__name__)
_FINGERPRINT, _RETIRED, _DIGEST_BEFORE = "fingerprint", "retired", "digest_before"
_METADATA = (_FINGERPRINT, _RETIRED, _DIGEST_BEFORE)
MIN_FILES_AT_ONCE = 2
"""Minimum number of files that are read concurrently: for two years of small files that is five times as fast, for two
days it is slower. Fewer are requested one by one, more by a listing."""
MAX_BYTES_AT_ONCE = 200_000_000
"""Maximum total bytes on disk of files that are read at once; more are read file by file."""
UPDATE_SECONDS = 60.0
"""Seconds for which an update is retried after conflicts; each lost attempt is another worker's success."""
_PAUSE_SECONDS = 0.02


class DamagedTableError(MemoryPipelineError):
    """A file of a table is unreadable; the message names it and says what to do."""


class Lake:
    """The tables of `tables.TABLES` in a folder, which is created on the first write, or in a bucket.

    A lake opened `for_planning` reads the state of each file once, by a listing of each table if possible, and caches
    it permanently: a plan over years asks for the same days repeatedly.
    """

    def __init__(self, root: Path | Storage, *, for_planning: bool = False) -> None:
        self.storage: Storage = FolderStorage(root) if isinstance(root, Path) else root
        self.is_for_planning = for_planning
        self._restored: set[str] = set()
        self._seen: dict[str, File | None] | None = {} if for_planning else None
        self._listed: set[str] = set()

    @classmethod
    def from_settings(cls, settings: Settings, *, for_planning: bool = False) -> Self:
        """The lake of a workspace, at the location in MEMORY_LAKE."""
        return cls(storage_of(settings), for_planning=for_planning)

    @property
    def root(self) -> Path:
        """The folder of a lake in a local folder."""
        assert isinstance(self.storage, FolderStorage)
        return self.storage.root

    @contextmanager
    def seen_once(self) -> Iterator[None]:
        """A context in which fingerprints, digests and retired days come from one listing of each table plus this
        lake's own writes; rows and versions are read directly. Changes of other workers are found by the next run, like
        those during a build. In a folder the state is always read, as that costs nothing."""
        if self._seen is not None or not self.storage.is_far:
            yield
            return
        self._seen, self._listed = {}, set()
        try:
            yield
        finally:
            self._seen = None

    def path(self, table: str, day: date | None = None) -> Path:
        """The file of a lake in a local folder."""
        return self.root / _key(table, day)

    def place(self, table: str, day: date | None = None) -> str:
        """The file's path or URL."""
        return self.storage.place_of(_key(table, day))

    def has(self, table: str, days: Iterable[date]) -> bool:
        """Whether any of these days has a file."""
        return any(True for _ in self._states(table, days))

    def version(self, table: str, day: date | None = None) -> str | int | None:
        """The version of a day, or of a table that is one file; it differs after each write. None without a file."""
        state = self._read_state(table, _key(table, day))
        return state and state.version

    def days(self, table: str) -> list[date]:
        """The days that have a file, empty ones included, oldest first."""
        return [date.fromisoformat(file.stem) for file in self._dated_files(table)]

    def read(
        self, table: str, days: Iterable[date] | None = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The rows of these days (None: all), typed also if there are none; only some columns if given.

        A damaged file of a derived table is quarantined, and its day counts as never written. Raises
        `DamagedTableError` for other tables.
        """
        self._restore_lost(table)
        files = self._files(table, days)
        if len(files) > MIN_FILES_AT_ONCE and (at_once := self._read_at_once(table, files, columns)) is not None:
            return at_once
        frames = [self._frame(table, file, columns) for file in files]
        return pl.concat(frames) if frames else _empty(table, columns)

    def _files(self, table: str, days: Iterable[date] | None) -> list[File]:
        """The existing files of these days (None: all), oldest first."""
        if TABLES[table].daily and days is None:
            return self._dated_files(table)
        wanted = sorted(set(() if days is None else days)) if TABLES[table].daily else [None]
        if len(wanted) <= MIN_FILES_AT_ONCE:
            return [file for day in wanted if (file := self._read_state(table, _key(table, day)))]
        names, found = {f"{day}" for day in wanted}, self.storage.files(table, f"{wanted[0]}", f"{wanted[-1]}")
        return [file for file in found if file.stem in names]

    def _dated_files(self, table: str) -> list[File]:
        return [file for file in self.storage.files(table) if file.stem.count("-") == 2]

    def replace(
        self,
        table: str,
        frame: pl.DataFrame,
        days: Iterable[date],
        fingerprints: Mapping[date, str] | None = None,
        expected: Expected = "any",
    ) -> None:
        """Make `frame` the rows of exactly these days; a day without rows becomes an empty file.

        On object storage, a single day is only replaced while it has the `expected` version; otherwise
        `ReplacedMeanwhileError` is raised. Raises ValueError if the frame has other columns than the table or rows of
        other days.
        """
        days = sorted(set(days))
        frame = self._conformed(table, frame)
        unexpected = set(frame["day"].unique()) - set(days)
        if unexpected:
            raise ValueError(f"{table}: rows of {sorted(unexpected)} were given, but only {days} are replaced.")
        for day in days:
            fingerprint = (fingerprints or {}).get(day, "")
            rows = frame.filter(pl.col("day") == day)
            self._write(table, rows, day, fingerprint, expected, self._kept_metadata(table, day))

    def retire(self, table: str, frame: pl.DataFrame, day: date) -> None:
        """Make the reduced `frame` the final rows of the day: from now on `is_retired` says that they cannot be
        rebuilt, and `digest` that nothing has changed."""
        before = {_DIGEST_BEFORE: _file_digest(self.storage, state).hex()} if (state := self._state(table, day)) else {}
        marks = {_RETIRED: "yes"} | before | self._kept_metadata(table, day)
        self._write(table, self._conformed(table, frame), day, self.fingerprint(table, day) or "", marks=marks)

    def _kept_metadata(self, table: str, day: date) -> dict[str, str]:
        """The metadata of the day's file that is kept when its rows are replaced."""
        return {name: mark for name, mark in self._metadata(table, day).items() if name != _FINGERPRINT}

    def is_retired(self, table: str, day: date) -> bool:
        """Whether rows or texts of the day were deleted for good."""
        return _RETIRED in self._metadata(table, day)

    def replace_all(self, table: str, frame: pl.DataFrame) -> None:
        """Make `frame` the rows of a table that is not split by day."""
        self._write(table, self._conformed(table, frame), None, "")

    def update(
        self, table: str, change: Callable[[pl.DataFrame], pl.DataFrame | None], day: date | None = None
    ) -> None:
        """Replace the rows of a day, or of a table that is not split by day, by the result of `change` (None: no
        change).

        On object storage no write of another worker is lost: after a conflict `change` is called again with the current
        rows, so it must be repeatable, even if they already contain its result. In a folder, writers of a shared table
        hold a lock. Raises `TryAgainLaterError` after a minute of conflicts, and the errors of `change`.
        """
        end, pause, key = time.monotonic() + UPDATE_SECONDS, _PAUSE_SECONDS, _key(table, day)
        while True:
            self._restore_lost(table)
            found = self._read_state(table, key)
            made = change(self._frame(table, found, None) if found else _empty(table))
            if made is None:
                return
            try:
                self._write(table, self._conformed(table, made), day, "", expected=found and found.version)
            except ReplacedMeanwhileError as error:
                if time.monotonic() > end:
                    raise TryAgainLaterError(
                        f"{self.place(table, day)} was rewritten by other workers during all attempts of "
                        f"{UPDATE_SECONDS:.0f} seconds: run it again, with fewer workers at once."
                    ) from error
                time.sleep(random.uniform(0, pause))
                pause = min(2 * pause, 1.0)
            else:
                return

    def fingerprint(self, table: str, day: date) -> str | None:
        """The fingerprint given to `replace`; None if the day was never written or is unreadable."""
        return self._metadata(table, day).get(_FINGERPRINT)

    def _metadata(self, table: str, day: date) -> dict[str, str]:
        """The metadata of the day's file; empty if it is missing or unreadable."""
        state = self._state(table, day)
        try:
            return {_FINGERPRINT: ""} | _file_metadata(self.storage, state) if state else {}
        except FileNotFoundError:
            return {}
        except pl.exceptions.PolarsError:
            if state and TABLES[table].is_derived:  # the stage that rebuilds it would overwrite it
                self._frame(table, state, None)
            return {}

    def digest(self, table: str, days: Iterable[date]) -> str:
        """A hash of the days' bytes, which is equal if no input of later stages has changed. Rows deleted by retention
        still count, as nothing is to be rebuilt without them."""
        total = hashlib.sha256()
        for day, state in self._states(table, days):
            with suppress(FileNotFoundError):  # quarantined meanwhile
                before = self._digest_before(table, state)
                total.update(
                    f"{day}".encode() + (bytes.fromhex(before) if before else _file_digest(self.storage, state))
                )
        return total.hexdigest()

    def _digest_before(self, table: str, state: File) -> str | None:
        """The digest that a file had before its old rows were removed."""
        if not TABLES[table].passes:  # other tables need no look into the file
            return None
        try:
            return _file_metadata(self.storage, state).get(_DIGEST_BEFORE)
        except pl.exceptions.PolarsError:
            return None

    def _states(self, table: str, days: Iterable[date]) -> Iterator[tuple[date, File]]:
        """The days with a file, in order, each with its state."""
        wanted = sorted(set(days))
        if self._seen is None and self.storage.is_far and len(wanted) > MIN_FILES_AT_ONCE:
            yield from ((date.fromisoformat(file.stem), file) for file in self._files(table, wanted))
            return
        for day in wanted:
            if state := self._state(table, day):
                yield day, state

    def _state(self, table: str, day: date | None) -> File | None:
        """The state of the file, or None."""
        key = _key(table, day)
        if self._seen is None:
            return self._read_state(table, key)
        if self.storage.is_far:
            if table not in self._listed:
                self._listed.add(table)
                for file in self.storage.files(table):
                    self._seen.setdefault(file.key, file)
            return self._seen.get(key)
        if key not in self._seen:
            self._seen[key] = self._read_state(table, key)
        return self._seen[key]

    def _read_state(self, table: str, key: str) -> File | None:
        try:
            return self.storage.state(key)
        except IsADirectoryError:
            if TABLES[table].is_derived:
                self.storage.set_aside(key)
            return None

    def files(self, table: str) -> dict[str, str | int]:
        """The table's files, oldest day first: path or URL, and version."""
        return {self.storage.place_of(file.key): file.version for file in self.storage.files(table)}

    def attach_views(
        self, connection: duckdb.DuckDBPyConnection, tables: Collection[str] = TABLES, days: Sequence[date] = ()
    ) -> list[str]:
        """Create a view for every table, including those without files; times are shown in UTC. Returns the paths of
        the files.

        On object storage, the views of tables that are not named are empty, and of the others only the days within the
        range of `days`, if given, are listed.
        """
        connection.execute("SET TimeZone = 'UTC'")
        found: list[str] = []
        is_far = self.storage.is_far
        first, last = (f"{days[0]}", f"{days[-1]}") if days and is_far else ("", "")
        for name, table in TABLES.items():
            columns = ", ".join(f'CAST(NULL AS {duckdb_type(t)}) AS "{c}"' for c, t in table.columns.items())
            query = f"SELECT {columns} WHERE false"
            listed = [] if is_far and name not in tables else self.storage.files(name, first, last)
            paths = self.storage.local_each(listed)
            found += paths
            if paths:
                files = ", ".join(map(sql_text, paths))
                query += f" UNION ALL BY NAME SELECT * FROM read_parquet([{files}], union_by_name = true)"
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')
        for name, query in VIEWS.items():
            connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')
        return found

    def _restore_lost(self, table: str) -> None:
        """Restore missing files of a table that cannot be rebuilt; once, as its files are never deleted on purpose."""
        if TABLES[table].is_derived or table in self._restored:
            return
        self._restored.add(table)
        for key in lost(self.storage, table):
            if sentence := put_back(self.storage, key):
                log.warning(sentence)

    def _read_at_once(self, table: str, files: list[File], columns: Sequence[str] | None) -> pl.DataFrame | None:
        """All rows of these files; None if one is damaged or has other types, or if they are too large to be read at
        once."""
        schema = TABLES[table].columns
        if sum(file.size for file in files) > MAX_BYTES_AT_ONCE:
            return None
        try:
            found = []
            for path in self.storage.local_each(files):
                with suppress(FileNotFoundError):  # quarantined meanwhile
                    found.append(Path(path).read_bytes())
            return (
                pl.scan_parquet(found, missing_columns="insert", schema=schema)
                .select(list(columns or schema))
                .collect()
            )
        except (pl.exceptions.PolarsError, OSError):
            return None

    def _frame(self, table: str, file: File, columns: Sequence[str] | None) -> pl.DataFrame:
        try:
            content = BytesIO(self.storage.read(file))
        except FileNotFoundError:  # quarantined by another process
            return _empty(table, columns)
        except IsADirectoryError:
            if not TABLES[table].is_derived:
                raise
            self.storage.set_aside(file.key)
            return _empty(table, columns)
        place = self.storage.place_of(file.key)
        try:
            stored = pl.read_parquet_schema(content) if columns else {}
            wanted = [name for name in columns if name in stored] if columns else None
            content.seek(0)
            frame = pl.read_parquet(content, columns=wanted)
        except pl.exceptions.PolarsError as error:
            if TABLES[table].is_derived:
                self.storage.set_aside(file.key, content.getvalue())
                return _empty(table, columns)
            if sentence := put_back(self.storage, file.key):
                log.warning(sentence)
                return self._frame(table, self.storage.state(file.key) or file, columns)
            reason = f"{place} cannot be read ({type(error).__name__}). {TABLES[table].fix}"
            raise DamagedTableError(reason) from error
        try:
            return self._conformed(table, frame, columns)
        except pl.exceptions.PolarsError as error:  # unexpected types: the file itself is valid
            raise DamagedTableError(f"{place} cannot be read ({type(error).__name__}). {TABLES[table].fix}") from error

    def _conformed(self, table: str, frame: pl.DataFrame, names: Sequence[str] | None = None) -> pl.DataFrame:
        """The frame with these columns of the table (None: all) in order; columns added since a file was written are
        null."""
        known = TABLES[table].columns
        if unexpected := set(frame.columns) - set(known):
            raise ValueError(f"{table} has no column {sorted(unexpected)}; its columns are {list(known)}.")
        columns = {name: known[name] for name in names} if names else known
        if frame.columns == list(columns) and frame.dtypes == list(columns.values()):
            return frame  # as almost always
        missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in columns.items() if name not in frame.columns]
        return frame.with_columns(missing).select(list(columns)).cast(dict(columns))  # type: ignore[arg-type]

    def _write(
        self,
        table: str,
        frame: pl.DataFrame,
        day: date | None,
        fingerprint: str,
        expected: Expected = "any",
        marks: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        key, content = _key(table, day), BytesIO()
        metadata = {_FINGERPRINT: fingerprint, **marks}
        frame.sort(list(TABLES[table].order)).write_parquet(content, metadata=metadata)
        written = self.storage.write(key, content.getvalue(), expected)
        if self._seen is not None:
            self._seen[key] = written
        if not TABLES[table].is_derived:
            keep_version(self.storage, key, content.getvalue())


def _empty(table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    return pl.DataFrame(schema=TABLES[table].columns).select(columns or pl.all())


def _key(table: str, day: date | None) -> str:
    return f"{table}/{day if TABLES[table].daily and day else 'all'}{SUFFIX}"


@lru_cache(maxsize=20_000)
def _file_metadata(storage: Storage, file: File) -> dict[str, str]:
    found = pl.read_parquet_metadata(storage.local(file))
    return {key: value for key, value in found.items() if key in _METADATA}


@lru_cache(maxsize=20_000)
def _file_digest(storage: Storage, file: File) -> bytes:
    """A hash of the file in this state, cached because a plan reads every file of the lookback for each day."""
    return hashlib.sha256(storage.read(file)).digest()


def sql_text(text: str) -> str:
    """The text as an SQL literal."""
    return "'{}'".format(text.replace("'", "''"))


def fingerprint_of(*parts: object) -> str:
    """A hash of the texts of the parts, in order."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()
