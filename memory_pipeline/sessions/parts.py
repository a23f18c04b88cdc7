"""Sessions in several files, because their harness continues them in a new one when they are resumed or reverted:
records that later parts withdrew from earlier ones.

The newest part says which records of which part it continues, and that part likewise. Records after these ends, and
every part that none continues, were reverted.
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
    """The number of the first reverted record of each file that has one, by its key."""
    sessions: dict[tuple[str | None, str | None], dict[str, FilePartRow]] = defaultdict(dict)
    for row in rows:
        if part := row["part"]:
            sessions[row["harness"], row["session_id"]][row["path"]] = part
    found = {}
    for files in sessions.values():
        ends = _ends({part["name"]: part for part in files.values()})
        for path, part in files.items():
            if (end := ends.get(part["name"], 0)) is not None and end < part["end"]:
                found[path] = end
    return found


def without_withdrawn(session: ParsedSession, first: int | None) -> ParsedSession:
    """The session, in which the messages from this record on are voided."""
    if first is None or session.part is None:
        return session
    numbers = session.part.numbers
    messages = (
        with_fields(message, voided=True) if numbers.get(message.message_id, 0) >= first else message
        for message in session.messages
    )
    return replace(session, messages=tuple(messages))


def _ends(parts: dict[str, FilePartRow]) -> dict[str, int | None]:
    """The last record that is continued of each part that the newest one builds on; None for all."""
    newest = max(parts.values(), key=_age)
    ends: dict[str, int | None] = {newest["name"]: None}
    part = newest
    while base := _base(part, parts):
        ends[base["name"]] = part["base_end"]
        part = base
    return ends


def _base(part: FilePartRow, parts: dict[str, FilePartRow]) -> FilePartRow | None:
    """The part of the same session that this one continues: the one that it names; where that does not reach so far,
    or its file is gone, the latest earlier one that does."""

    def likelihood(other: FilePartRow) -> tuple[bool, bool, tuple[datetime, str]]:
        return other["end"] >= part["base_end"], other["name"] == part["base"], _age(other)

    earlier = (other for other in parts.values() if _age(other) < _age(part) and other["base_end"] < part["base_end"])
    return max(earlier, key=likelihood, default=None) if part["base"] else None


def _age(part: FilePartRow) -> tuple[datetime, str]:
    return part["began_at"] or EARLIEST, part["name"]
