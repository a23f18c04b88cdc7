"""Dagster's home: the databases of its runs, events and ticks, and what runs printed.

Whatever tables a version of Dagster has: every text in every row of every SQLite file is looked at, also within JSON,
and of every table in Postgres where the record lies there. A text keeps its place, so that Dagster reads its rows as
before. Space that was freed is given back; in Postgres by its own vacuum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.operations.forgetting.rows import Found
from memory_pipeline.operations.forgetting.texts import first_line, may_say, read_text, scrubbed, scrubbed_json
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import is_outage, postgres_record

if TYPE_CHECKING:
    from sqlalchemy import Connection

PLACE = "Dagster's runs, events and logs"
_MAGIC = b"SQLite format 3\0"
_WAIT_SECONDS = 30.0
_OWN = ("dagster.yaml",)
_PARTS = ("-wal", "-shm", "-journal", ".lock")


class Change(NamedTuple):
    """A text of a database that says it, and the text that takes its place."""

    table: str
    column: str
    old: str
    new: str


def find_events(settings: Settings, request: ForgetRequest) -> Iterator[Found]:
    """What of it stands there."""
    databases, texts = _files(settings)
    for path in databases:
        with _sqlite(path) as connection:
            for change in _changes(connection, request):
                yield Found(PLACE, f"{path.name}: {change.table}: {first_line(change.old, request)}")
    for path in texts:
        for line in read_text(path).split("\n"):
            if line and may_say(line, request):
                yield Found(PLACE, f"{path.name}: {line}")
    with _postgres(settings) as server:
        for change in _changes(server, request) if server else ():
            yield Found(PLACE, f"Postgres: {change.table}: {first_line(change.old, request)}")


def clean_events(settings: Settings, request: ForgetRequest) -> None:
    """Take it out. Raises `TryAgainLaterError` while another process holds a database."""
    from sqlalchemy.exc import OperationalError

    databases, texts = _files(settings)
    for path in databases:
        try:
            with _sqlite(path) as connection:
                _clean_sqlite(connection, request)
        except OperationalError as error:
            raise TryAgainLaterError(
                f"{path} is in use ({error.orig}). Stop `memory ui` and other runs, then call `memory forget` "
                "again: it continues where it stopped."
            ) from error
    for path in texts:
        text = read_text(path)
        if (new := scrubbed(text, request)) != text:
            write_atomically(path, new.encode("utf-8", "surrogateescape"), expected=path.read_bytes(), backups=None)
    with _postgres(settings) as server:
        if server:
            _replace(server, list(_changes(server, request)))


@contextmanager
def _sqlite(path: Path) -> Iterator[Connection]:
    """The database in a file, every statement a transaction of its own."""
    from sqlalchemy import URL, NullPool, create_engine

    url = URL.create("sqlite", database=f"{path}")
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": _WAIT_SECONDS})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def _postgres(settings: Settings) -> Iterator[Connection | None]:
    """The server, in one transaction; None where the record is not there. Raises `RecordUnavailableError`."""
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


def _clean_sqlite(connection: Connection, request: ForgetRequest) -> None:
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    changes = list(_changes(connection, request))
    if changes:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _replace(connection, changes)
        connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")  # what was written before may still hold it
    if changes:
        connection.exec_driver_sql("VACUUM")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _changes(connection: Connection, request: ForgetRequest) -> Iterator[Change]:
    """SQLite keeps a text in a column of any type, Postgres only in those that are declared so."""
    from sqlalchemy import String, inspect, text

    tables = inspect(connection)
    for table in tables.get_table_names():
        for about in tables.get_columns(table):
            if connection.dialect.name != "sqlite" and not isinstance(about["type"], String):
                continue
            column = _quoted(about["name"])
            query = f"SELECT DISTINCT {column} FROM {_quoted(table)} WHERE {column} IS NOT NULL"
            for (old,) in connection.execute(text(query)).fetchall():
                if isinstance(old, str) and (new := _cleaned(old, request)) != old:
                    yield Change(table, about["name"], old, new)


def _replace(connection: Connection, changes: list[Change]) -> None:
    from sqlalchemy import text

    for change in changes:
        column = _quoted(change.column)
        update = f"UPDATE {_quoted(change.table)} SET {column} = :new WHERE {column} = :old"
        connection.execute(text(update), {"new": change.new, "old": change.old})


def _cleaned(value: str, request: ForgetRequest) -> str:
    if not may_say(value, request) and "\\u" not in value:  # in JSON letters may be written by their numbers
        return value
    new: str = scrubbed_json(value, request)
    return new


def _files(settings: Settings) -> tuple[list[Path], list[Path]]:
    """The databases, and the files of text."""
    home = settings.dagster_home
    found = [path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink()]
    found = [path for path in found if path.name not in _OWN and not path.name.endswith(_PARTS)]
    databases = [path for path in found if _is_database(path)]
    return databases, [path for path in found if path not in databases]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
