"""The tables of OpenCode's SQLite database; `harnesses/sqlite.py` opens it.

Since 1.2 a session has rows in `session`, `message` and `part`; since 2.0 in `session_v2`, `session_message` and, for
prompts that wait for the model, `session_inbox`. An upgrade copies every session and keeps the old tables. A session in
both is one session: its messages in the old tables are read there, so that they keep their ids, and the rest from the
new ones, which also determine what was undone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory_pipeline.harnesses.opencode.current import record_of
from memory_pipeline.harnesses.records import JsonObject, text_of
from memory_pipeline.harnesses.sqlite import (
    Damage,
    SessionDatabase,
    columns,
    decoded,
    is_busy,
    number,
    rows_of,
    text,
)

_OLD = {"session", "message", "part"}
_SESSIONS = ("session", "session_v2")
_MESSAGES = ("message", "part", "session_message", "session_inbox")


class OpenCodeDatabase(SessionDatabase):
    agent = "OpenCode"

    def rows(self, connection: sqlite3.Connection, tables: set[str]) -> list[JsonObject] | None:
        if not tables.intersection(_SESSIONS) or not (tables >= _OLD or "session_message" in tables):
            return None
        # for a session in both tables the newer row, which is last, counts
        return [row for name in _SESSIONS if name in tables for row in rows_of(connection, name, lambda _: None)]

    def counted(self, connection: sqlite3.Connection, tables: set[str]) -> dict[str, list[tuple[int, int]]]:
        counted: dict[str, list[tuple[int, int]]] = {}
        for table in filter(tables.__contains__, _MESSAGES):
            latest = "max(time_updated)" if "time_updated" in columns(connection, table) else "max(rowid)"
            query = f"SELECT session_id, count(*) AS count, {latest} AS latest FROM {table} GROUP BY session_id"
            for row in connection.execute(query):
                counted.setdefault(text(row["session_id"]), []).append((row["count"], number(row["latest"])))
        return counted

    def read(
        self, connection: sqlite3.Connection, session: str, damage: Damage
    ) -> tuple[JsonObject | None, Iterator[JsonObject]]:
        found = _Session(connection, session, damage)
        return found.row, found.messages()


class _Ancestor(NamedTuple):
    """A session of which another one is a fork."""

    ids: dict[int, str]
    """Ids of its messages, by number."""
    old: dict[str, JsonObject]
    """Its rows in the old table, by id."""


class _Session:
    """A session of an open database, with its tables."""

    def __init__(self, connection: sqlite3.Connection, identity: str, damage: Damage) -> None:
        self.connection, self.identity, self.damage = connection, identity, damage
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.tables = {text(row["name"]) for row in names}
        self.old_row, self.new_row = (self._first(name, "id", identity) for name in _SESSIONS)
        self.row = self.new_row or self.old_row

    def messages(self) -> Iterator[JsonObject]:
        """Its messages; damage is reported with the number of the current one."""
        old = self._old_rows(self.identity)
        rows = self._rows("session_message", "session_id", self.identity)
        # 1.x also has the newer table, and 2.0 may have a session before copying it
        if old and not (self.new_row and rows):
            yield from (record for row in old if (record := self._old_record(row)))
            return
        rows.sort(key=lambda row: number(row.get("seq")))
        yield from self._old_messages(old, {text(row.get("id")) for row in rows})
        yield from self._new_messages(rows, {text(row.get("id")) for row in old})
        waiting = self._rows("session_inbox", "session_id", self.identity)
        for row in sorted(waiting, key=lambda row: number(row.get("enqueued_seq"))):
            if text(row.get("type")) == "user" and (record := self._new_record(row, "payload")):
                record["message"]["origin"] = text(row.get("id"))
                yield record

    def _old_messages(self, old: list[JsonObject], current: set[str]) -> Iterator[JsonObject]:
        """The rows of a session in the tables of 1.x. After the last message that the new tables still have, everything
        that they once had was undone; summaries were never copied as messages.
        """
        last = max((place for place, row in enumerate(old) if text(row.get("id")) in current), default=-1)
        undone = self._find_earlier_revert()
        updated = number((self.new_row or {}).get("time_updated"))
        withdrawn = False
        for place, row in enumerate(old):
            if record := self._old_record(row):
                withdrawn = withdrawn or text(row.get("id")) == undone
                is_copied = text_of(record["message"].get("parentID")) in current
                gone = place > last and not is_copied and number(row.get("time_created")) <= updated
                record["message"]["withdrawn"] = withdrawn or gone
                yield record

    def _find_earlier_revert(self) -> str:
        revert = decoded((self.old_row or {}).get("revert") or b"{}", 1, "", []) or {}
        return text_of(revert.get("messageID"))

    def _new_messages(self, rows: list[JsonObject], old: set[str]) -> Iterator[JsonObject]:
        """The rows of the new table that are not in the old tables."""
        ancestors = self._ancestors()
        copied = {identity: row for fork in ancestors for identity, row in fork.old.items()}
        before: JsonObject = {}
        for row in rows:
            origin = _origin(row, ancestors)
            kind, is_known = text(row.get("type")), origin in old or origin in copied
            split = kind == "synthetic" and before.get("time_created") == row.get("time_created")
            # text that the program inserted into a prompt became a separate message after it
            if origin not in old and not (split and before.get("is_known")):
                is_old = origin in copied and kind != "compaction"
                record = self._old_record(copied[origin]) if is_old else self._new_record(row)
                if record:
                    record["message"]["id"] = text(row.get("id"))
                    if kind == "user" and not is_old:
                        record["message"]["origin"] = origin
                    yield record
            before = {**row, "is_known": is_known}

    def _ancestors(self) -> list[_Ancestor]:
        """The sessions of which this one is a fork, nearest first."""
        found: list[_Ancestor] = []
        seen = {self.identity}
        row = self.row
        while row and (parent := text(row.get("fork_session_id"))) and parent not in seen:
            seen.add(parent)
            found.append(_Ancestor(self._ids(parent), {text(r.get("id")): r for r in self._old_rows(parent)}))
            row = self._first("session_v2", "id", parent)
        return found

    def _ids(self, session: str) -> dict[int, str]:
        query = "SELECT seq, id FROM session_message WHERE session_id = ?"
        try:
            return {number(row["seq"]): text(row["id"]) for row in self.connection.execute(query, (session,))}
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise
            return {}

    def _rows(self, table: str, column: str, value: str) -> list[JsonObject]:
        return rows_of(self.connection, table, self.damage, column, value) if table in self.tables else []

    def _first(self, table: str, column: str, value: str) -> JsonObject | None:
        return next(iter(self._rows(table, column, value)), None)

    def _old_rows(self, session: str) -> list[JsonObject]:
        return in_order(self._rows("message", "session_id", session)) if self.tables >= _OLD else []

    def _old_record(self, row: JsonObject) -> JsonObject | None:
        self.damage.number += 1
        message = decoded(row.get("data"), self.damage.number, "The message", self.damage.problems)
        if message is None:
            return None
        identity = text(row.get("id"))
        message |= {"id": identity, "time_created": row.get("time_created"), "agent_id": text(row.get("agent_id"))}
        return {"message": message, "parts": self._parts(identity)}

    def _parts(self, message: str) -> list[JsonObject]:
        rows = sorted(self._rows("part", "message_id", message), key=lambda row: text(row.get("id")))
        at, problems = self.damage.number, self.damage.problems
        return [
            {**data, "id": text(row.get("id")), "time_created": row.get("time_created")}
            for row in rows
            if (data := decoded(row.get("data"), at, "A part of the message", problems)) is not None
        ]

    def _new_record(self, row: JsonObject, column: str = "data") -> JsonObject | None:
        self.damage.number += 1
        data = decoded(row.get(column), self.damage.number, "The message", self.damage.problems)
        if data is None:
            return None
        times = {"time": {"created": row.get("time_created")}} if "time" not in data else {}
        named = {"id": text(row.get("id")), "time_created": row.get("time_created")}
        return record_of(text(row.get("type")), data | times | named)


def _origin(row: JsonObject, ancestors: list[_Ancestor]) -> str:
    """Id of the message of which a row is a copy, else its own; "" if the original is gone. A copy has the number of
    its original, which is also the end of its id.
    """
    place, identity = number(row.get("seq")), text(row.get("id"))
    for ancestor in ancestors:
        if not identity.endswith(f"_{place}"):
            break
        identity = ancestor.ids.get(place, "")
    return identity


def in_order(found: Iterable[JsonObject]) -> list[JsonObject]:
    """The messages in order of creation."""

    def order(message: JsonObject) -> tuple[float, str]:
        time = message.get("time")
        created = message.get("time_created") or (time.get("created") if isinstance(time, dict) else None)
        return created if isinstance(created, int | float) else 0, text(message.get("id"))

    return sorted(found, key=order)
