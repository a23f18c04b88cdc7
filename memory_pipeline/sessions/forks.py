"""Sessions that copy or start one another, and sessions in several files: which messages count.

A harness may start a new file when a session is resumed or reverted. The newest part names the part that it continues
and the last continued record, and so on. Records after that one, and parts that are not continued, were reverted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypedDict

from msgspec.structs import replace as with_fields

from memory_pipeline.harnesses.model import Message, ParsedSession
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.lake.rows import FileDayRow, FilePartRow, FileRow


class Lineage(TypedDict):
    """Columns of `files` about the origin of a session and whether it may be stored."""

    session_id: str | None
    parent_id: str | None
    excluded: str | None
    days: list[FileDayRow]


def left_out(rows: Iterable[Lineage]) -> set[str]:
    """Ids of sessions that must not be stored, given the catalogue's rows: excluded ones and those that they started. A
    fork is started by the user, not by its parent; only its own messages are stored.
    """
    known = list(rows)
    found = {str(row["session_id"]) for row in known if row["excluded"]}
    started = [row for row in known if row["parent_id"] and not any(day["inherited"] for day in row["days"] or [])]
    while more := {str(row["session_id"]) for row in started if row["parent_id"] in found} - found:
        found |= more
    return found


def repeats(session: ParsedSession, parent: ParsedSession) -> frozenset[str]:
    """Ids of the session's messages that are copies of its parent's. Copies have their own ids, so texts are
    compared"""
    left = Counter(map(_copy_key, parent.messages))
    found = set()
    for message in session.messages:
        words = _copy_key(message)
        if message.message_id in session.inherited and left[words] > 0:
            left[words] -= 1
            found.add(message.message_id)
    return frozenset(found)


def typed_in_all(rows: Iterable[Lineage]) -> dict[str, int]:
    """The number of messages that the user typed in each session, over all days and files; for one that was continued
    in others (forks, resumed copies), the number in the longest of them. Voided messages do not count."""
    typed: dict[str, set[str]] = defaultdict(set)
    inheriting: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        session, days = row["session_id"], row["days"] or []
        if not session or row["excluded"]:
            continue
        typed[session].update(message for day in days for message in day["typed"] or ())
        if row["parent_id"] and any(day["inherited"] for day in days):  # copies have their own ids
            inheriting[row["parent_id"]].add(session)
    longest: dict[str, int] = {}
    for messages in typed.values():
        for message in messages:
            longest[message] = max(longest.get(message, 0), len(messages))
    return {
        session: max(
            (*(longest[message] for message in messages), *(len(typed[fork]) for fork in inheriting.get(session, ()))),
            default=0,
        )
        for session, messages in typed.items()
    }


def _copy_key(message: Message) -> tuple[str, str]:
    """The key by which copies are recognised: role and text, where inserted text counts as the user's, as a sub-agent
    gets the user's text from the program."""
    return "user" if message.role == "injected" else message.role, message.text


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
