"""SQL over the tables, restricted to reading them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

import duckdb

from memory_pipeline.errors import MisuseError
from memory_pipeline.lake.store import Lake, sql_text
from memory_pipeline.lake.tables import TABLES, VIEWS

_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_GAP}explain\b{_GAP}(?:analyze\b{_GAP})?(?:\([^)]*\){_GAP})?", re.I | re.S)
_ATTEMPTS = 5
"""Maximum attempts of a query while a writer replaces its files."""


Found = TypeVar("Found")


class OnlyReadingError(MisuseError):
    """The query does not only read."""


class Answer(NamedTuple):
    """Names of the columns, and the rows."""

    names: list[str]
    rows: list[tuple[Any, ...]]


def mended(lake: Lake, query: Callable[[], Found]) -> Found:
    """The result of the query. If a damaged file prevents it, it is repeated after reading every table, which
    quarantines the file, restores it, or raises `DamagedTableError` with instructions."""
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
    _require_reading_only(query)
    for _ in range(_ATTEMPTS - 1):
        before = _state(lake)
        try:
            return _run_query(lake, query)
        except duckdb.Error:
            if _state(lake) == before:
                raise
    return _run_query(lake, query)


def _require_reading_only(query: str) -> None:
    statements = duckdb.extract_statements(query)
    if len(statements) != 1:
        raise OnlyReadingError(f"Expected one query, but this is {len(statements)}.")
    (statement,) = statements
    if statement.type == duckdb.StatementType.EXPLAIN and (explained := _EXPLAIN.sub("", query, count=1)) != query:
        _require_reading_only(explained)  # EXPLAIN ANALYZE runs the query
    elif statement.type != duckdb.StatementType.SELECT:
        raise OnlyReadingError(
            f"{statement.type.name} is not allowed here: the tables can only be read. Use SELECT or EXPLAIN."
        )


def _run_query(lake: Lake, query: str) -> Answer:
    with duckdb.connect() as connection:
        _restrict(connection, lake, _named_tables(connection, lake, query))
        result = connection.sql(query)
        return Answer(result.columns, result.fetchall())


def _named_tables(connection: duckdb.DuckDBPyConnection, lake: Lake, query: str) -> Collection[str]:
    """The tables whose files are listed; on object storage only those that the query surely names, as each costs a
    listing, and creating a view opens its files."""
    if not lake.storage.is_far or "query_table" in query.casefold():
        return TABLES
    try:
        names = {name.casefold().strip('"') for name in connection.get_table_names(query)}
    except duckdb.Error:
        return TABLES
    return names & set(TABLES) | ({"events"} if names & set(VIEWS) else set())


def _restrict(connection: duckdb.DuckDBPyConnection, lake: Lake, tables: Collection[str]) -> None:
    """Create the views of the tables, and restrict the connection permanently to their files."""
    for setting in ("python_enable_replacements", "autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(f"SET {setting} = false")  # a name in a query is a table, not a Python variable
    files = ", ".join(map(sql_text, lake.attach_views(connection, tables)))
    connection.execute(f"SET allowed_paths = [{files}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _state(lake: Lake) -> dict[str, str | int]:
    """The version of each file."""
    return {place: version for table in TABLES for place, version in lake.files(table).items()}
