"""SQL over the tables that can read them and do nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

import duckdb

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.store import Lake, sql_text
from memory_pipeline.lake.tables import TABLES, VIEWS

_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_GAP}explain\b{_GAP}(?:analyze\b{_GAP})?(?:\([^)]*\){_GAP})?", re.I | re.S)
_ATTEMPTS = 5
"""Maximum attempts of a query whose files a writer replaces meanwhile."""


Found = TypeVar("Found")


class OnlyReadingError(MemoryPipelineError):
    """The query is not one that only reads."""


class Answer(NamedTuple):
    """Names of the columns, and the rows."""

    names: list[str]
    rows: list[tuple[Any, ...]]


def mended(lake: Lake, query: Callable[[], Found]) -> Found:
    """The result of the query. If a damaged file is in its way, it is repeated after every table was read: reading
    quarantines the file, restores it, or raises `DamagedTableError` that says what to do."""
    try:
        return query()
    except duckdb.Error:
        for table in TABLES:
            lake.read(table)
        return query()


def ask(lake: Lake, query: str) -> Answer:
    """The rows of one SELECT (or the result of an EXPLAIN) over the tables, each of which is a view.

    No other file is read, none is written, and nothing is downloaded. Raises `OnlyReadingError` for another kind of
    statement and `duckdb.Error` for an invalid one.
    """
    _refuse_all_but_reading(query)
    for _ in range(_ATTEMPTS - 1):
        before = _state(lake)
        try:
            return _ask(lake, query)
        except duckdb.Error:
            if _state(lake) == before:
                raise
    return _ask(lake, query)


def _refuse_all_but_reading(query: str) -> None:
    statements = duckdb.extract_statements(query)
    if len(statements) != 1:
        raise OnlyReadingError(f"One query at a time, please; this is {len(statements)}.")
    (statement,) = statements
    if statement.type == duckdb.StatementType.EXPLAIN and (explained := _EXPLAIN.sub("", query, count=1)) != query:
        _refuse_all_but_reading(explained)  # EXPLAIN ANALYZE runs what it explains
    elif statement.type != duckdb.StatementType.SELECT:
        raise OnlyReadingError(
            f"{statement.type.name} is not allowed here: the tables can only be read. Use SELECT or EXPLAIN."
        )


def _ask(lake: Lake, query: str) -> Answer:
    with duckdb.connect() as connection:
        _lock(connection, lake, _named(connection, lake, query))
        result = connection.sql(query)
        return Answer(result.columns, result.fetchall())


def _named(connection: duckdb.DuckDBPyConnection, lake: Lake, query: str) -> Collection[str]:
    """The tables whose files are listed; on object storage only those that the query names, if that is certain: each
    costs a listing, and creating a view opens its files."""
    if not lake.storage.is_far or "query_table" in query.casefold():
        return TABLES
    try:
        names = {name.casefold().strip('"') for name in connection.get_table_names(query)}
    except duckdb.Error:
        return TABLES
    return names & set(TABLES) | ({"events"} if names & set(VIEWS) else set())


def _lock(connection: duckdb.DuckDBPyConnection, lake: Lake, tables: Collection[str]) -> None:
    """Make the tables views, and let the connection open their files and nothing else, for good."""
    files = ", ".join(sql_text(file) for table in tables for file in lake.files(table))
    for setting in ("python_enable_replacements", "autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(f"SET {setting} = false")  # a name in a query is a table, no variable
    lake.attach_views(connection, tables)  # which registers what reads objects: later nothing can be
    connection.execute(f"SET allowed_paths = [{files}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _state(lake: Lake) -> dict[str, str | int]:
    """The version of each file."""
    return {place: version for table in TABLES for place, version in lake.files(table).items()}
