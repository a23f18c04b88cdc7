"""Databases with tables `sessions` and `messages`, where the latter has the blocks of each message as JSON.

Crush and Goose store their sessions in this way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import orjson

from memory_pipeline.harnesses.model import Problem
from memory_pipeline.harnesses.records import JsonObject, objects_of, text_of
from memory_pipeline.harnesses.sqlite import Damage, SessionDatabase, columns, number, plain_row, rows_of, text

_SECONDS = 10**11
"""Unix times below this are in seconds, others in milliseconds."""


def milliseconds(value: object) -> int | None:
    """The Unix time in milliseconds, from seconds or milliseconds."""
    if not isinstance(value, int) or value <= 0:
        return None
    return value * 1000 if value < _SECONDS else value


class MessageTables(SessionDatabase):
    """The names of the tables and columns of one agent."""

    def __init__(self, agent: str, blocks: str, time: str) -> None:
        self.agent = agent
        self.blocks = blocks
        """Column of `messages` with the blocks."""
        self.time = time
        """Column of `messages` with the start time of a message."""

    def rows(self, connection: sqlite3.Connection, tables: set[str]) -> list[JsonObject] | None:
        if not {"sessions", "messages"} <= tables or not {self.blocks, self.time} <= columns(connection, "messages"):
            return None
        return rows_of(connection, "sessions", lambda _: None)

    def counted(self, connection: sqlite3.Connection, tables: set[str]) -> dict[str, list[tuple[int, int]]]:
        query = (
            f"SELECT session_id, count(*) + sum(length({self.blocks})) AS size, max({self.time}) AS latest "
            "FROM messages GROUP BY session_id"
        )
        rows = connection.execute(query)
        return {text(row["session_id"]): [(number(row["size"]), milliseconds(row["latest"]) or 0)] for row in rows}

    def read(
        self, connection: sqlite3.Connection, session: str, damage: Damage
    ) -> tuple[JsonObject | None, Iterator[JsonObject]]:
        row = next(iter(rows_of(connection, "sessions", damage, "id", session)), None)
        return row, self._messages(rows_of(connection, "messages", damage, "session_id", session), damage)

    def _messages(self, rows: list[JsonObject], damage: Damage) -> Iterator[JsonObject]:
        rows.sort(key=lambda row: number(row.get(self.time)))  # ties keep the order of insertion
        for damage.number, row in enumerate(rows, start=2):
            message = plain_row(row)
            parts = _blocks(text_of(message.pop(self.blocks, "")), damage.number, damage.problems)
            yield {"message": message, "parts": parts}


def _blocks(raw: str, line: int, problems: list[Problem]) -> list[JsonObject]:
    try:
        blocks = orjson.loads(raw)
    except orjson.JSONDecodeError:
        blocks = None
    if not isinstance(blocks, list):
        problems.append(Problem(line, "The blocks of the message are not a JSON list; left out."))
        return []
    return objects_of(blocks)
