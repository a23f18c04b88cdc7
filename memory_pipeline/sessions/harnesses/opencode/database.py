"""OpenCode's SQLite database, which is never written to, and no file beside it either.

One that OpenCode has closed is opened as immutable, one in use through the shared memory of its log, and one that was
left without that memory is copied aside first.
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

from memory_pipeline.sessions.harnesses.records import JsonObject, decode_damaged, text_of
from memory_pipeline.sessions.model import NotASessionError, NotReadableNowError, Problem, Source

_BUSY_SECONDS = 0.5
_WHOLE = "*"
"""Stands for a session's id in the source of a database whose sessions cannot be listed."""
_LOG_VERSION = 18
"""Byte of the header of a database which is 2 when changes are first written to a log beside it."""
_UNUSED = "mode=ro&immutable=1"
"""How a database is opened that nobody has open: without locks, which would leave files."""
_CHANGED = "The database was changed while it was read; it is tried again."
_BUSY, _LOCKED, _READ_ONLY, _DAMAGED, _CANNOT_OPEN, _NO_DATABASE = 5, 6, 8, 11, 14, 26
_REASONS = {
    _BUSY: "The database is locked by another program; it is tried again.",
    _LOCKED: "The database is locked by another program; it is tried again.",
    _READ_ONLY: "The database was left in the middle of a change, which OpenCode undoes when it next starts.",
    _DAMAGED: "The database is damaged.",
    _NO_DATABASE: "It is not an SQLite database.",
}


class _State(NamedTuple):
    """Of a database and its log: whatever is in them changes it."""

    size: int
    modified_ns: int
    log_size: int
    log_modified_ns: int


_listed: dict[str, tuple[_State, list[Source]]] = {}
"""What each database held when it was last listed; an unchanged one is not even opened."""


def database_sources(database: Path) -> tuple[list[Source], bool]:
    """The sessions of a database, and whether it could not be looked into because it is locked."""
    try:
        state = _state_of(database)
    except OSError:
        return [Source(str(database), _WHOLE)], False
    if state.size == 0:
        return [], False
    known = _listed.get(str(database))
    if known and known[0] == state:
        return known[1], False
    try:
        with _opened(database) as connection:
            sources = _list(connection, database, state)
    except (NotASessionError, OSError) as reason:
        sources = [Source(str(database), _WHOLE, state.size, state.modified_ns)]
        if isinstance(reason, NotReadableNowError):
            return (known[1], False) if known else (sources, True)
        if isinstance(reason, OSError):  # a right that is given changes nothing by which it could be noticed
            return sources, False
    _listed[str(database)] = (state, sources)
    return sources, False


def _list(connection: sqlite3.Connection, database: Path, state: _State) -> list[Source]:
    tables = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {b"session", b"message", b"part"} <= tables:
        if tables:
            raise NotASessionError("It is an SQLite database, but not one of OpenCode.")
        return []
    sessions = list(_rows(connection, "session", lambda _: None))
    try:
        counted = _counted(connection)
    except sqlite3.DatabaseError as error:
        if _code(error) in (_BUSY, _LOCKED):
            raise
        # of a damaged one, every session may have changed whenever the file has
        modified = max(state.modified_ns, state.log_modified_ns)
        return [Source(str(database), _text(row.get("id")), state.size, modified) for row in sessions]
    sources = []
    for row in sessions:
        identity = _text(row.get("id"))
        count, latest = counted.get(identity, (0, 0))
        if count:
            latest = max(latest, _number(row.get("time_updated")))
            details = b"\x1f".join(bytes(str(row.get(name)), "utf-8") for name in ("title", "revert", "parent_id"))
            sources.append(Source(str(database), identity, count, latest * 1_000_000 + zlib.crc32(details) % 1_000_000))
    return sources


def _counted(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """How many messages and parts each session has, and when the latest of them was changed."""
    counted: dict[str, tuple[int, int]] = {}
    for table in ("message", "part"):
        columns = {column[0] for column in connection.execute(f"SELECT * FROM {table} LIMIT 0").description}
        latest = "max(time_updated)" if "time_updated" in columns else "max(rowid)"
        query = f"SELECT session_id, count(*) AS count, {latest} AS latest FROM {table} GROUP BY session_id"
        for row in connection.execute(query):
            identity = _text(row["session_id"])
            count, time = counted.get(identity, (0, 0))
            counted[identity] = (count + row["count"], max(time, _number(row["latest"])))
    return counted


def from_database(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    with _opened(Path(source.path)) as connection:
        if source.session == _WHOLE:
            _list(connection, Path(source.path), _state_of(Path(source.path)))
            raise NotReadableNowError("The database could not be read before; it is tried again.")
        damage = _Damage(problems)
        sessions = _rows(connection, "session", damage, "id", source.session)
        session = next(iter(sessions), None)
        if session is None and not damage.found:
            raise NotASessionError("The session is no longer in the database.")
        session = session or {"id": source.session}
        yield 1, {"session": {name: _plain(value) for name, value in session.items()}}
        rows = in_order(_rows(connection, "message", damage, "session_id", source.session))
        found = 0
        for damage.number, row in enumerate(rows, start=2):
            message = decoded(row.get("data"), damage.number, "The message", problems)
            if message is not None:
                parts = _parts(connection, _text(row.get("id")), damage)
                found += len(parts)
                message |= {"id": _text(row.get("id")), "time_created": row.get("time_created")}
                yield damage.number, {"message": message, "parts": parts}
        if damage.found and not found:
            raise NotASessionError("The database is damaged where the session lies.")


def _parts(connection: sqlite3.Connection, message: str, damage: _Damage) -> list[JsonObject]:
    rows = sorted(_rows(connection, "part", damage, "message_id", message), key=lambda row: _text(row.get("id")))
    return [
        {**data, "id": _text(row.get("id")), "time_created": row.get("time_created")}
        for row in rows
        if (data := decoded(row.get("data"), damage.number, "A part of the message", damage.problems)) is not None
    ]


class _Damage:
    """Notes what is missing because the database is damaged."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.number = 1
        self.found = False

    def __call__(self, what: str) -> None:
        self.found = True
        self.problems.append(Problem(self.number, f"The database is damaged: {what}; left out."))


def _rows(
    connection: sqlite3.Connection, table: str, damaged: Callable[[str], None], column: str = "", value: str = ""
) -> list[JsonObject]:
    """The rows of a table, all or those with a value; where the database is damaged, those that can still be read."""
    where, values = (f" WHERE {column} = ?", (value,)) if column else ("", ())
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}{where}", values)]
    except sqlite3.DatabaseError as error:
        if _code(error) != _DAMAGED:
            raise
    rows: list[JsonObject] = []
    try:
        # an index holds the ids, also of rows that lie on a damaged page
        identities = [_text(row["id"]) for row in connection.execute(f"SELECT id FROM {table}{where}", values)]
    except sqlite3.DatabaseError:
        damaged(f"rows of the table {table} cannot be found")
        return rows
    for identity in identities:
        try:
            rows += [dict(row) for row in connection.execute(f"SELECT * FROM {table} WHERE id = ?", (identity,))]
        except sqlite3.DatabaseError:
            damaged(f"a row of the table {table} cannot be read")
    return rows


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    """The database, to be read only. Raises `NotASessionError`."""
    before = _state_of(database)
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
        # a program that opens or closes it may leave it in the middle of a change for a moment
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        now = code in (_BUSY, _LOCKED, _READ_ONLY, _CANNOT_OPEN)
        raise (NotReadableNowError if now else NotASessionError)(_reason(error)) from error
    except UnicodeDecodeError as error:  # in the name of a column
        raise NotASessionError("The database is damaged: its tables have no proper names.") from error
    if options == _UNUSED and _state_of(database) != before:
        raise NotReadableNowError(_CHANGED)


def _options(database: Path, state: _State) -> str:
    """How to open it without a trace; "" when it cannot be done in place."""
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


def _state_of(database: Path) -> _State:
    stat = database.stat()
    try:
        log = Path(f"{database}-wal").stat()
    except OSError:
        return _State(stat.st_size, stat.st_mtime_ns, 0, 0)
    return _State(stat.st_size, stat.st_mtime_ns, log.st_size, log.st_mtime_ns)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _reason(error: sqlite3.Error) -> str:
    # what SQLite says may quote a piece of the file
    name = getattr(error, "sqlite_errorname", "no reason given")
    return _REASONS.get(_code(error), f"The database cannot be read: {name}.")


def _plain(value: object) -> object:
    return _text(value) if isinstance(value, bytes) else value


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else text_of(value)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def decoded(raw: object, number: int, what: str, problems: list[Problem]) -> JsonObject | None:
    """The JSON of a row or file; None, and a problem, when there is no object to be had of it."""
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


def in_order(found: Iterable[JsonObject]) -> list[JsonObject]:
    def order(message: JsonObject) -> tuple[float, str]:
        time = message.get("time")
        created = message.get("time_created") or (time.get("created") if isinstance(time, dict) else None)
        return created if isinstance(created, int | float) else 0, _text(message.get("id"))

    return sorted(found, key=order)
