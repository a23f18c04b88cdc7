"""Read-only access to SQLite databases of agents, which also creates no files next to them.

A database that its agent has closed is opened as immutable, one in use through the shared memory of its log, and one
left without that memory is copied first.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError, Problem, Source
from memory_pipeline.harnesses.records import JsonObject, decode_damaged, text_of

_BUSY_SECONDS = 0.5
WHOLE = "*"
"""The session id in the source of a database whose sessions cannot be listed."""
_HEADER = b"SQLite format 3\0"
_LOG_VERSION = 18
"""Offset of the header byte that is 2 if changes are first written to a log."""
_UNUSED = "mode=ro&immutable=1"
"""Options for a database that no process uses: without locks, which would leave files."""
_CHANGED = "The database was changed while it was read; it is tried again."
_BUSY, _LOCKED, _READ_ONLY, _DAMAGED, _CANNOT_OPEN, _NO_DATABASE = 5, 6, 8, 11, 14, 26
_REASONS = {
    _BUSY: "The database is locked by another program; it is tried again.",
    _LOCKED: "The database is locked by another program; it is tried again.",
    _READ_ONLY: "The database was left in the middle of a change, which its agent undoes when it next starts.",
    _DAMAGED: "The database is damaged.",
    _NO_DATABASE: "It is not an SQLite database.",
}


class State(NamedTuple):
    """The state of a database and its log, which changes with their contents."""

    size: int
    modified_ns: int
    log_size: int
    log_modified_ns: int


_listed: dict[str, tuple[State, list[Source]]] = {}
"""The last listed sessions of each database; an unchanged one is not opened."""


class SessionDatabase:
    """The sessions in a database of one agent, whose subclass knows the tables.

    The records of a session are `{"session": row}`, then `{"message": …, "parts": […]}` in order.
    """

    agent: str
    """The agent's name in messages to the user."""

    def rows(self, connection: sqlite3.Connection, tables: set[str]) -> list[JsonObject] | None:
        """The row of each session; None if the tables are another program's."""
        raise NotImplementedError

    def counted(self, connection: sqlite3.Connection, tables: set[str]) -> dict[str, list[tuple[int, int]]]:
        """The size and the latest time in milliseconds of each session's rows, by table; a session without messages is
        missing."""
        raise NotImplementedError

    def read(
        self, connection: sqlite3.Connection, session: str, damage: Damage
    ) -> tuple[JsonObject | None, Iterable[JsonObject]]:
        """The row of one session, and the records of its messages."""
        raise NotImplementedError

    def sources(self, database: Path) -> tuple[list[Source], bool]:
        """The sessions of a database, and whether it could not be read because it is locked."""
        try:
            state = state_of(database)
        except OSError:
            return [Source(str(database), WHOLE)], False
        if state.size == 0:
            return [], False
        known = _listed.get(str(database))
        if known and known[0] == state:
            return known[1], False
        try:
            with opened(database) as connection:
                sources = self._list(connection, database, state)
        except (NotASessionError, OSError) as reason:
            sources = [Source(str(database), WHOLE, state.size, state.modified_ns)]
            if isinstance(reason, NotReadableNowError):
                return (known[1], False) if known else (sources, True)
            if isinstance(reason, OSError):  # a change of permissions does not change the state
                return sources, False
        _listed[str(database)] = (state, sources)
        return sources, False

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        """The records of one session, numbered from 1. Raises `NotASessionError`."""
        database = Path(source.path)
        with opened(database) as connection:
            if source.session == WHOLE:
                self._list(connection, database, state_of(database))
                raise NotReadableNowError("The database could not be read before; it is tried again.")
            damage = Damage(problems)
            row, messages = self.read(connection, source.session, damage)
            if row is None and not damage.found:
                raise NotASessionError("The session is no longer in the database.")
            yield 1, {"session": plain_row(row or {"id": source.session})}
            said = 0
            for record in messages:
                said += bool(record["parts"])
                yield damage.number, record
            if damage.found and not said:
                raise NotASessionError("The database is damaged where the session lies.")

    def _list(self, connection: sqlite3.Connection, database: Path, state: State) -> list[Source]:
        tables = {text(row["name"]) for row in connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return []
        rows = self.rows(connection, tables)
        if rows is None:
            raise NotASessionError(f"It is an SQLite database, but not one of {self.agent}.")
        sessions = {text(row.get("id")): row for row in rows}
        try:
            counted = self.counted(connection, tables)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise
            # in a damaged one, any session may have changed with the file
            modified = max(state.modified_ns, state.log_modified_ns)
            return [Source(str(database), identity, state.size, modified) for identity in sessions]
        sources = []
        for identity, row in sessions.items():
            if found := counted.get(identity):
                details = zlib.crc32(repr((found, sorted(plain_row(row).items()))).encode()) % 1_000_000
                modified = max(time for _, time in found) * 1_000_000 + details
                sources.append(Source(str(database), identity, sum(size for size, _ in found), modified))
        return sources


@contextmanager
def opened(database: Path) -> Iterator[sqlite3.Connection]:
    """The database, opened read-only. Raises `NotASessionError`."""
    before = state_of(database)
    options = _options(database, before)
    try:
        with ExitStack() as stack:
            place = database
            if not options:
                place = _copied(database, Path(stack.enter_context(tempfile.TemporaryDirectory())))
            address = f"file:{quote(str(place.absolute()))}?{options or 'mode=ro'}"
            opened = closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS))
            connection = stack.enter_context(opened)
            connection.row_factory = sqlite3.Row
            connection.text_factory = bytes
            yield connection
    except sqlite3.Error as error:
        # a program that opens or closes it may leave it in an intermediate state for a moment
        now = _code(error) in (_BUSY, _LOCKED, _READ_ONLY, _CANNOT_OPEN)
        raise (NotReadableNowError if now else NotASessionError)(_reason(error)) from error
    except UnicodeDecodeError as error:  # in a column name
        raise NotASessionError("The database is damaged: its tables have no proper names.") from error
    if options == _UNUSED and state_of(database) != before:
        raise NotReadableNowError(_CHANGED)


def _options(database: Path, state: State) -> str:
    """The options for opening it without leaving files; "" if that is impossible in place."""
    with database.open("rb") as file:
        header = file.read(_LOG_VERSION + 1)
    if header[_LOG_VERSION:] != b"\x02":
        return "mode=ro"
    if not state.log_size:
        return _UNUSED
    return "mode=ro&readonly_shm=1" if Path(f"{database}-shm").exists() else ""


def _copied(database: Path, folder: Path) -> Path:
    for name in (database.name, f"{database.name}-wal"):
        shutil.copyfile(database.with_name(name), folder / name)
    return folder / database.name


def is_database(path: Path) -> bool:
    """Whether the file begins like an SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def state_of(database: Path) -> State:
    """The state of a database and its log. Raises `OSError`."""
    stat = database.stat()
    try:
        log = Path(f"{database}-wal").stat()
    except OSError:
        return State(stat.st_size, stat.st_mtime_ns, 0, 0)
    return State(stat.st_size, stat.st_mtime_ns, log.st_size, log.st_mtime_ns)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _reason(error: sqlite3.Error) -> str:
    # SQLite's message may quote a part of the file
    name = getattr(error, "sqlite_errorname", "no reason given")
    return _REASONS.get(_code(error), f"The database cannot be read: {name}.")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the database, so that it can be read a moment later."""
    return _code(error) in (_BUSY, _LOCKED)


def plain(value: object) -> object:
    """The value of a column, with text as str: the connection returns bytes, as damaged text may not be UTF-8."""
    return text(value) if isinstance(value, bytes) else value


def plain_row(row: JsonObject) -> JsonObject:
    """The row with text as str."""
    return {name: plain(value) for name, value in row.items()}


def text(value: object) -> str:
    """The value of a column, if it is text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else text_of(value)


def number(value: object) -> int:
    """The value of a column, if it is an integer."""
    return value if isinstance(value, int) else 0


class Damage:
    """A collector of problems with a damaged database."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.number = 1
        """The number of the record that is being read."""
        self.found = False

    def __call__(self, what: str) -> None:
        self.found = True
        self.problems.append(Problem(self.number, f"The database is damaged: {what}; left out."))


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table."""
    return {column[0] for column in connection.execute(f"SELECT * FROM {table} LIMIT 0").description}


def rows_of(
    connection: sqlite3.Connection, table: str, damaged: Callable[[str], None], column: str = "", value: str = ""
) -> list[JsonObject]:
    """The rows of a table with a column `id`, all or those with a value; from a damaged table the readable ones."""
    where, values = (f" WHERE {column} = ?", (value,)) if column else ("", ())
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}{where}", values)]
    except sqlite3.DatabaseError as error:
        if _code(error) != _DAMAGED:
            raise
    rows: list[JsonObject] = []
    try:
        # an index has the ids, including those of rows on a damaged page
        identities = [plain(row["id"]) for row in connection.execute(f"SELECT id FROM {table}{where}", values)]
    except sqlite3.DatabaseError:
        damaged(f"rows of the table {table} cannot be found")
        return rows
    for identity in identities:
        try:
            rows += [dict(row) for row in connection.execute(f"SELECT * FROM {table} WHERE id = ?", (identity,))]
        except sqlite3.DatabaseError:
            damaged(f"a row of the table {table} cannot be read")
    return rows


def decoded(raw: object, number: int, what: str, problems: list[Problem]) -> JsonObject | None:
    """The JSON object of a row or file; None, with a problem, if there is none."""
    raw = raw if isinstance(raw, bytes) else b""
    try:
        value: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = next(iter(decode_damaged(raw, number, [])), None)
        if value is not None:
            problems.append(Problem(number, f"{what} is not proper JSON; what could be saved was read."))
    if not isinstance(value, dict):
        problems.append(Problem(number, f"{what} is not valid JSON; left out."))
        return None
    return value
