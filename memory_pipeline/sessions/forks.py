"""Sessions that repeat or start one another: what of them counts, and what must not be stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict

from memory_pipeline.lake.rows import FileDayRow
from memory_pipeline.sessions.model import Message, ParsedSession


class Lineage(TypedDict):
    """Columns of `files` that say where a session comes from and whether it may be stored."""

    session_id: str | None
    parent_id: str | None
    excluded: str | None
    days: list[FileDayRow]


def left_out(rows: Iterable[Lineage]) -> set[str]:
    """Ids of sessions of which nothing may be stored, given the catalogue's rows: those that are excluded and those
    that they started. A fork was not started by its parent but by the user; of that only its own words are stored.
    """
    known = list(rows)
    found = {str(row["session_id"]) for row in known if row["excluded"]}
    started = [row for row in known if row["parent_id"] and not any(day["inherited"] for day in row["days"] or [])]
    while more := {str(row["session_id"]) for row in started if row["parent_id"] in found} - found:
        found |= more
    return found


def repeats(session: ParsedSession, parent: ParsedSession) -> frozenset[str]:
    """Ids of the copied messages of the session that its parent has. Copies have ids of their own, so it goes
    by their words.
    """
    left = Counter(map(_words_of, parent.messages))
    found = set()
    for message in session.messages:
        words = _words_of(message)
        if message.message_id in session.inherited and left[words] > 0:
            left[words] -= 1
            found.add(message.message_id)
    return frozenset(found)


def _words_of(message: Message) -> tuple[str, str]:
    """What a copy has in common with it: what the user typed is put in by the program in a sub-agent."""
    return "user" if message.role == "injected" else message.role, message.text
