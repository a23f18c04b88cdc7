"""Sessions that copy or start one another: which messages count, and which must not be stored."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TypedDict

from memory_pipeline.harnesses.model import Message, ParsedSession
from memory_pipeline.lake.rows import FileDayRow


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
