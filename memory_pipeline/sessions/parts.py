"""Sessions in several files, because their harness starts a new one when they are resumed or reverted, and the records
that later parts withdraw from earlier ones.

The newest part names the part that it continues and the last continued record, and so on. Records after that one, and
parts that are not continued, were reverted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from msgspec.structs import replace as with_fields

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.lake.rows import FilePartRow, FileRow


def withdrawn(rows: Iterable[FileRow]) -> dict[str, int]:
    """The number of the first reverted record of each file that has one, by key."""
    sessions: dict[tuple[str | None, str | None], dict[str, FilePartRow]] = defaultdict(dict)
    for row in rows:
        if part := row["part"]:
            sessions[row["harness"], row["session_id"]][row["path"]] = part
    found = {}
    for files in sessions.values():
        ends = _continued_records({part["name"]: part for part in files.values()})
        for path, part in files.items():
            if (end := ends.get(part["name"], 0)) is not None and end < part["end"]:
                found[path] = end
    return found


def without_withdrawn(session: ParsedSession, first: int | None) -> ParsedSession:
    """The session with all messages from this record on voided."""
    if first is None or session.part is None:
        return session
    numbers = session.part.numbers
    messages = (
        with_fields(message, voided=True) if numbers.get(message.message_id, 0) >= first else message
        for message in session.messages
    )
    return replace(session, messages=tuple(messages))


def _continued_records(parts: dict[str, FilePartRow]) -> dict[str, int | None]:
    """The last continued record of each part on which the newest one builds; None for all records."""
    newest = max(parts.values(), key=_age)
    ends: dict[str, int | None] = {newest["name"]: None}
    part = newest
    while base := _continued_part(part, parts):
        ends[base["name"]] = part["base_end"]
        part = base
    return ends


def _continued_part(part: FilePartRow, parts: dict[str, FilePartRow]) -> FilePartRow | None:
    """The part of the same session that this one continues: the named one or, if that is too short or missing, the
    latest earlier one that is long enough."""

    def likelihood(other: FilePartRow) -> tuple[bool, bool, tuple[datetime, str]]:
        return other["end"] >= part["base_end"], other["name"] == part["base"], _age(other)

    earlier = (other for other in parts.values() if _age(other) < _age(part) and other["base_end"] < part["base_end"])
    return max(earlier, key=likelihood, default=None) if part["base"] else None


def _age(part: FilePartRow) -> tuple[datetime, str]:
    return part["began_at"] or EARLIEST, part["name"]
