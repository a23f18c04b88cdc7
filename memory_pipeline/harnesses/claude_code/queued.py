"""Queued prompts, which the user typed while the agent worked, if they are in no other record.

Each operation on the queue is a record without `uuid`: `enqueue` with the text, then `dequeue` (sent: a record of the
user follows), `remove` (handed to the model during a turn) or `popAll` (back in the user's input, not sent). Versions
that write attachments store a handed-over prompt as one; earlier versions do not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_pipeline.harnesses.speakers import split_content_by_speaker
from memory_pipeline.harnesses.transcript import Place

# same check as the program's: a first word with another slash is a path
_COMMAND = re.compile(r"/[\w:-]+(?!\S)")


class Queued(NamedTuple):
    """A prompt in the queue."""

    typed: str
    """The user's own words in it; for a command its arguments."""
    content: object
    identity: str
    place: Place
    after: int
    """The last record of the conversation at that time; -1 before the first."""


class Queue:
    """The state of the queue through a session. It is first in, first out; only newer versions record what leaves
    it."""

    def __init__(self) -> None:
        self._waiting: list[Queued] = []
        self._sent: list[Queued] = []
        self._handed_over: list[Queued] = []
        self._overtaken = -1

    def enqueue(self, content: object, identity: str, place: Place, after: int) -> None:
        """Add a prompt; machine text is counted too, as operations do not name what leaves the queue."""
        typed = "\n".join(text for role, text in split_content_by_speaker(content, place.line) if role == "user")
        command = _COMMAND.match(typed)
        typed = typed[command.end() :].strip() if command else typed
        self._waiting.append(Queued(typed, content, identity, place, after))

    def move(self, operation: str, content: object, *, is_kept: bool) -> None:
        """Apply another operation; `is_kept` says whether this version records what it hands over."""
        named = next((entry for entry in self._waiting if content and entry.content == content), None)
        if operation == "popAll":
            self._waiting = [entry for entry in self._waiting if named and entry is not named]
        elif operation in ("dequeue", "remove") and self._waiting:
            entry = named or self._waiting[0]
            self._waiting.remove(entry)
            if operation == "dequeue":
                self._sent.append(entry)
            elif not is_kept:
                self._handed_over.append(entry)

    def on_prompt(self, text: str, record: int) -> None:
        """Handle a prompt in a record, which removes the one with the same words from the queue."""
        for entries in (self._sent, self._waiting, self._handed_over):
            entry = next((entry for entry in entries if entry.typed.split() == text.split()), None)
            if entry:
                entries.remove(entry)
                return
        if not self._sent:
            self._overtaken = record
        self._sent.clear()  # sent in other words: with pasted text, or as a command

    def kept_nowhere_else(self) -> list[Queued]:
        """Prompts that were handed over, or are waiting at the end of the file, and are in no other record, in order.

        A waiting prompt may have left the queue unrecorded if the user continues in other words, so it is not included.
        """
        waiting = (entry for entry in self._waiting if entry.place.record > self._overtaken)
        entries = [entry for entry in (*self._handed_over, *waiting) if entry.typed]
        return sorted(entries, key=lambda entry: entry.place.record)
