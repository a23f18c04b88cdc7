"""Databases with tables `sessions` and `messages`, where the latter has the blocks of each message as JSON.

Crush and Goose store their sessions in this way. The records of a session are `{"session": row}`, then `{"message":
row, "parts": blocks}` in order of time; the number of a record is its position.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError, Problem, Source
from memory_pipeline.harnesses.records import JsonObject, text_of
from memory_pipeline.harnesses.sqlite import (
    WHOLE,
    Damage,
    State,
    is_busy,
    listed_sources,
    number,
    opened,
    plain,
    rows_of,
    state_of,
    text,
)

_SECONDS = 10**11
"""Unix times below this are in seconds, others in milliseconds."""


def milliseconds(value: object) -> int | None:
    """The Unix time in milliseconds, from seconds or milliseconds."""
    if not isinstance(value, int) or value <= 0:
        return None
    return value * 1000 if value < _SECONDS else value


class MessageTables(NamedTuple):
    """The names of the tables and columns of one agent."""

    agent: str
    """The agent's name in messages to the user."""
    blocks: str
    """Column of `messages` with the blocks."""
    time: str
    """Column of `messages` with the start time of a message."""

    def sources(self, database: Path) -> tuple[list[Source], bool]:
        """The sessions of a database, and whether it could not be read because it is locked."""
        return listed_sources(database, self._list)

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        """The records of one session. Raises `NotASessionError`."""
        with opened(Path(source.path)) as connection:
            if source.session == WHOLE:
                self._list(connection, Path(source.path), state_of(Path(source.path)))
                raise NotReadableNowError("The database could not be read before; it is tried again.")
            damage = Damage(problems)
            session = next(iter(rows_of(connection, "sessions", damage, "id", source.session)), None)
            if session is None and not damage.found:
                raise NotASessionError("The session is no longer in the database.")
            yield 1, {"session": _plain_row(session or {"id": source.session})}
            rows = rows_of(connection, "messages", damage, "session_id", source.session)
            rows.sort(key=lambda row: number(row.get(self.time)))  # ties keep the order of insertion
            for damage.number, row in enumerate(rows, start=2):
                message = _plain_row(row)
                parts = _blocks(text_of(message.pop(self.blocks, "")), damage.number, problems)
                yield damage.number, {"message": message, "parts": parts}
            if damage.found and not rows:
                raise NotASessionError("The database is damaged where the session lies.")

    def _list(self, connection: sqlite3.Connection, database: Path, state: State) -> list[Source]:
        tables = {text(row["name"]) for row in connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return []
        if not {"sessions", "messages"} <= tables or not {self.blocks, self.time} <= _columns(connection):
            raise NotASessionError(f"It is an SQLite database, but not one of {self.agent}.")
        sessions = rows_of(connection, "sessions", lambda _: None)
        try:
            counted = self._counted(connection)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise
            # in a damaged one, any session may have changed with the file
            modified = max(state.modified_ns, state.log_modified_ns)
            return [Source(str(database), text(row.get("id")), state.size, modified) for row in sessions]
        sources = []
        for row in sessions:
            identity = text(row.get("id"))
            if found := counted.get(identity):
                size, latest = found
                details = zlib.crc32(repr(sorted(_plain_row(row).items())).encode()) % 1_000_000
                sources.append(Source(str(database), identity, size, latest * 1_000_000 + details))
        return sources

    def _counted(self, connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
        """The size of the messages of each session, and the start of the latest one."""
        query = (
            f"SELECT session_id, count(*) + sum(length({self.blocks})) AS size, max({self.time}) AS latest "
            "FROM messages GROUP BY session_id"
        )
        rows = connection.execute(query)
        return {text(row["session_id"]): (number(row["size"]), milliseconds(row["latest"]) or 0) for row in rows}


def _columns(connection: sqlite3.Connection) -> set[str]:
    return {column[0] for column in connection.execute("SELECT * FROM messages LIMIT 0").description}


def _plain_row(row: JsonObject) -> JsonObject:
    return {name: plain(value) for name, value in row.items()}


def _blocks(raw: str, line: int, problems: list[Problem]) -> list[JsonObject]:
    try:
        blocks = orjson.loads(raw)
    except orjson.JSONDecodeError:
        blocks = None
    if not isinstance(blocks, list):
        problems.append(Problem(line, "The blocks of the message are not a JSON list; left out."))
        return []
    return [block for block in blocks if isinstance(block, dict)]
