"""Dagster's history: the databases of runs, events and ticks, in files or in Postgres, and the output of runs.

Every text in every row of every table is searched, including JSON, whatever the tables of the Dagster version. Freed
space is reclaimed; in Postgres by its own vacuum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.harnesses.sqlite import is_database
from memory_pipeline.operations.forgetting.changes import Change, first_line, log_change, redact, says
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import is_outage, postgres_record

if TYPE_CHECKING:
    from sqlalchemy import Connection

PLACE = "Dagster's runs, events and logs"
_WAIT_SECONDS = 30.0
_SKIPPED = ("dagster.yaml", "-wal", "-shm", "-journal", ".lock")


class _Cell(NamedTuple):
    """A matching text in a database, and its replacement."""

    table: str
    column: str
    old: str
    new: str


def database_changes(settings: Settings, request: ForgetRequest) -> Iterator[Change]:
    """The changes of each database and each text file in Dagster's home. Raises `TryAgainLaterError` while another
    process holds a database, also when a change is applied, and `RecordUnavailableError` without Postgres."""
    for path in sorted(settings.dagster_home.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.endswith(_SKIPPED):
            if not is_database(path):
                yield from log_change(PLACE, path, request)
                continue
            with _sqlite(path) as connection:
                with _reporting_busy(path):
                    cells = list(_cells(connection, request))
                apply = partial(_clean_sqlite, path, connection, cells)
                yield Change(PLACE, _shown(path.name, cells, request), apply)
    with _postgres(settings) as server:
        if server and (cells := list(_cells(server, request))):
            yield Change(PLACE, _shown("Postgres", cells, request), partial(_replace, server, cells))


@contextmanager
def _sqlite(path: Path) -> Iterator[Connection]:
    """The database in a file, with a transaction for each statement."""
    from sqlalchemy import URL, NullPool, create_engine

    url = URL.create("sqlite", database=f"{path}")
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": _WAIT_SECONDS})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def _postgres(settings: Settings) -> Iterator[Connection | None]:
    """The server, in one transaction; None if Dagster does not use it."""
    if (record := postgres_record(settings)) is None:
        yield None
        return
    from sqlalchemy import NullPool, create_engine

    try:
        with create_engine(record.url, poolclass=NullPool).begin() as connection:
            yield connection
    except Exception as error:
        if is_outage(error):
            raise record.unavailable(error) from None
        raise


@contextmanager
def _reporting_busy(path: Path) -> Iterator[None]:
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except OperationalError as error:
        raise TryAgainLaterError(
            f"{path} is in use ({error.orig}). Stop `memory ui` and other runs, then run `memory forget` again: it "
            f"resumes."
        ) from error


def _clean_sqlite(path: Path, connection: Connection, cells: Sequence[_Cell]) -> None:
    with _reporting_busy(path):
        connection.exec_driver_sql("PRAGMA secure_delete = ON")
        if cells:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            _replace(connection, cells)
            connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")  # earlier writes may still contain it
        if cells:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _cells(connection: Connection, request: ForgetRequest) -> Iterator[_Cell]:
    """The matching texts. SQLite stores texts in columns of any type, Postgres only in text columns."""
    from sqlalchemy import String, column, inspect, select, table

    tables = inspect(connection)
    for name in tables.get_table_names():
        for about in tables.get_columns(name):
            if connection.dialect.name != "sqlite" and not isinstance(about["type"], String):
                continue
            cell = column(about["name"], String())
            query = select(cell).select_from(table(name)).where(cell.is_not(None)).distinct()
            for old in connection.scalars(query).all():
                # JSON may have escaped letters
                may_say = isinstance(old, str) and (says(old, request) or "\\u" in old)
                if may_say and (new := redact(old, request)) != old:
                    yield _Cell(name, about["name"], old, new)


def _replace(connection: Connection, cells: Sequence[_Cell]) -> None:
    from sqlalchemy import String, column, table, update

    for cell in cells:
        place = column(cell.column, String())
        query = update(table(cell.table, place)).where(place == cell.old)
        connection.execute(query.values({cell.column: cell.new}))


def _shown(database: str, cells: Sequence[_Cell], request: ForgetRequest) -> list[str]:
    return [f"{database}: {cell.table}: {first_line(cell.old, request)}" for cell in cells]
