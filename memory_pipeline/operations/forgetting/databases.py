"""Dagster's home: the databases of its runs, events and ticks, and what runs printed.

Whatever tables a version of Dagster has: every text in every row of every SQLite file is looked at, also within JSON,
and of every table in Postgres where the record lies there. A text keeps its place, so that Dagster reads its rows as
before. Space that was freed is given back; in Postgres by its own vacuum.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.operations.forgetting.rows import Found
from memory_pipeline.operations.forgetting.texts import may_say, scrubbed, scrubbed_json
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import is_outage, postgres_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

PLACE = "Dagster's runs, events and logs"
_MAGIC = b"SQLite format 3\0"
_WAIT_SECONDS = 30.0
_OWN = ("dagster.yaml",)
_PARTS = ("-wal", "-shm", "-journal", ".lock")


def find_events(settings: Settings, request: ForgetRequest) -> Iterator[Found]:
    """What of it stands there."""
    for path in _files(settings):
        if _is_database(path):
            with closing(_opened(path)) as connection:
                for table, _, old, _ in _changes(connection, request):
                    yield Found(PLACE, f"{path.name}: {table}: {_first_line(old, request)}")
        else:
            for line in _text(path).split("\n"):
                if line and may_say(line, request):
                    yield Found(PLACE, f"{path.name}: {line}")
    with _server(settings) as connection:
        for table, _, old, _ in _changes_on(connection, request):
            yield Found(PLACE, f"Postgres: {table}: {_first_line(old, request)}")


def clean_events(settings: Settings, request: ForgetRequest) -> None:
    """Take it out. Raises `TryAgainLaterError` while another process holds a database."""
    for path in _files(settings):
        if not _is_database(path):
            text = _text(path)
            if (new := scrubbed(text, request)) != text:
                write_atomically(path, new.encode("utf-8", "surrogateescape"), expected=path.read_bytes(), backups=None)
            continue
        try:
            with closing(_opened(path)) as connection:
                _clean(connection, request)
        except sqlite3.OperationalError as error:
            raise TryAgainLaterError(
                f"{path} is in use ({error}). Stop `memory ui` and what else runs, then call `memory forget` again: "
                "it goes on where it stopped."
            ) from error
    with _server(settings) as connection:
        _clean_on(connection, request)


@contextmanager
def _server(settings: Settings) -> Iterator[Connection | None]:
    """Postgres, in one transaction; None where the record is not there. Raises `RecordUnavailableError`."""
    if (record := postgres_of(settings)) is None:
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


def _changes_on(connection: Connection | None, request: ForgetRequest) -> Iterator[tuple[str, str, str, str]]:
    """As `_changes`, of what is no SQLite."""
    if connection is None:
        return
    from sqlalchemy import String, inspect, text

    tables = inspect(connection)
    for table in tables.get_table_names():
        for column in (c["name"] for c in tables.get_columns(table) if isinstance(c["type"], String)):
            query = f"SELECT DISTINCT {_quoted(column)} FROM {_quoted(table)} WHERE {_quoted(column)} IS NOT NULL"
            for (old,) in connection.execute(text(query)).fetchall():
                if (new := _cleaned(old, request)) != old:
                    yield table, column, old, new


def _clean_on(connection: Connection | None, request: ForgetRequest) -> None:
    from sqlalchemy import text

    for table, column, old, new in list(_changes_on(connection, request)):
        assert connection is not None  # without one there are no changes
        update = f"UPDATE {_quoted(table)} SET {_quoted(column)} = :new WHERE {_quoted(column)} = :old"
        connection.execute(text(update), {"new": new, "old": old})


def _clean(connection: sqlite3.Connection, request: ForgetRequest) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    changes = list(_changes(connection, request))
    for table, column, old, new in changes:
        connection.execute(f"UPDATE {_quoted(table)} SET {_quoted(column)} = ? WHERE {_quoted(column)} = ?", (new, old))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what was written before may still hold it
    if changes:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _changes(connection: sqlite3.Connection, request: ForgetRequest) -> Iterator[tuple[str, str, str, str]]:
    """Table, column, and the value as it is and as it is to be."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in names.fetchall():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
        for column in columns:
            query = f"SELECT DISTINCT {_quoted(column)} FROM {_quoted(table)} WHERE typeof({_quoted(column)}) = 'text'"
            for (old,) in connection.execute(query).fetchall():
                if (new := _cleaned(old, request)) != old:
                    yield table, column, old, new


def _cleaned(value: str, request: ForgetRequest) -> str:
    if not may_say(value, request) and "\\u" not in value:  # in JSON letters may be written by their numbers
        return value
    if value[:1] in "{[":
        try:
            found = json.loads(value)
        except ValueError:
            return scrubbed(value, request)
        new = scrubbed_json(found, request)
        return value if new == found else json.dumps(new)
    return scrubbed(value, request)


def _first_line(value: str, request: ForgetRequest) -> str:
    """Of a value, the first line that says it."""

    def texts(found: object) -> Iterator[str]:
        if isinstance(found, str):
            yield from found.split("\n")
        elif isinstance(found, dict | list):
            for one in found.values() if isinstance(found, dict) else found:
                yield from texts(one)

    try:
        found = json.loads(value)
    except ValueError:
        found = value
    return next((line for line in texts(found) if may_say(line, request)), "")


def _files(settings: Settings) -> list[Path]:
    home = settings.dagster_home
    found = (path for path in sorted(home.rglob("*")) if path.is_file() and not path.is_symlink())
    return [path for path in found if path.name not in _OWN and not path.name.endswith(_PARTS)]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
