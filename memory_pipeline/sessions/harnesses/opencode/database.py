"""The tables of OpenCode's SQLite database; `harnesses/sqlite.py` opens it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from memory_pipeline.sessions.harnesses.records import JsonObject
from memory_pipeline.sessions.harnesses.sqlite import (
    WHOLE,
    Damage,
    State,
    decoded,
    is_busy,
    listed_sources,
    number,
    opened,
    plain,
    rows_of,
    state_of,
    text,
)
from memory_pipeline.sessions.model import NotASessionError, NotReadableNowError, Problem, Source


def database_sources(database: Path) -> tuple[list[Source], bool]:
    """The sessions of a database, and whether it could not be looked into because it is locked."""
    return listed_sources(database, _list)


def _list(connection: sqlite3.Connection, database: Path, state: State) -> list[Source]:
    tables = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {b"session", b"message", b"part"} <= tables:
        if tables:
            raise NotASessionError("It is an SQLite database, but not one of OpenCode.")
        return []
    sessions = list(rows_of(connection, "session", lambda _: None))
    try:
        counted = _counted(connection)
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        # of a damaged one, every session may have changed whenever the file has
        modified = max(state.modified_ns, state.log_modified_ns)
        return [Source(str(database), text(row.get("id")), state.size, modified) for row in sessions]
    sources = []
    for row in sessions:
        identity = text(row.get("id"))
        count, latest = counted.get(identity, (0, 0))
        if count:
            latest = max(latest, number(row.get("time_updated")))
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
            identity = text(row["session_id"])
            count, time = counted.get(identity, (0, 0))
            counted[identity] = (count + row["count"], max(time, number(row["latest"])))
    return counted


def from_database(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    with opened(Path(source.path)) as connection:
        if source.session == WHOLE:
            _list(connection, Path(source.path), state_of(Path(source.path)))
            raise NotReadableNowError("The database could not be read before; it is tried again.")
        damage = Damage(problems)
        sessions = rows_of(connection, "session", damage, "id", source.session)
        session = next(iter(sessions), None)
        if session is None and not damage.found:
            raise NotASessionError("The session is no longer in the database.")
        session = session or {"id": source.session}
        yield 1, {"session": {name: plain(value) for name, value in session.items()}}
        rows = in_order(rows_of(connection, "message", damage, "session_id", source.session))
        found = 0
        for damage.number, row in enumerate(rows, start=2):
            message = decoded(row.get("data"), damage.number, "The message", problems)
            if message is not None:
                parts = _parts(connection, text(row.get("id")), damage)
                found += len(parts)
                message |= {"id": text(row.get("id")), "time_created": row.get("time_created")}
                yield damage.number, {"message": message, "parts": parts}
        if damage.found and not found:
            raise NotASessionError("The database is damaged where the session lies.")


def _parts(connection: sqlite3.Connection, message: str, damage: Damage) -> list[JsonObject]:
    rows = sorted(rows_of(connection, "part", damage, "message_id", message), key=lambda row: text(row.get("id")))
    return [
        {**data, "id": text(row.get("id")), "time_created": row.get("time_created")}
        for row in rows
        if (data := decoded(row.get("data"), damage.number, "A part of the message", damage.problems)) is not None
    ]


def in_order(found: Iterable[JsonObject]) -> list[JsonObject]:
    def order(message: JsonObject) -> tuple[float, str]:
        time = message.get("time")
        created = message.get("time_created") or (time.get("created") if isinstance(time, dict) else None)
        return created if isinstance(created, int | float) else 0, text(message.get("id"))

    return sorted(found, key=order)
