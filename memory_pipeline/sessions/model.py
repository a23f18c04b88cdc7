"""What every harness's file is turned into: one session with its messages, in one shape.

Plain frozen dataclasses; `schemas.py` has the same columns as tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Role = Literal["user", "assistant", "tool", "injected"]


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance.

    `user` is what a person typed, `assistant` what the model said, `tool` a tool call or its result
    (clipped), `injected` text that carries the user role but that no person typed (skills, system
    reminders, AGENTS.md, compaction summaries, command wrappers, task notifications).
    """

    message_id: str
    """Stable over re-reads and growth of the file; see `message_id()`."""
    role: Role
    said_at: datetime
    """UTC. When it was said; where the record has no usable time, the time of the record before it."""
    written_at: datetime
    """UTC. When the harness wrote the record."""
    text: str
    line: int
    """1-based line of the source file."""
    tool_name: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that could not be read; the rest of the file was."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedSession:
    """One session file, read."""

    session_id: str
    harness: str
    name: str
    """The harness's own title of the session, else its first user message, one line, at most 80 characters."""
    cwd: str
    messages: tuple[Message, ...]
    """In the order in which they were said."""
    compactions: tuple[tuple[str, ...], ...] = ()
    """One entry per compaction, in order: ids of the messages that it summarised away and that no
    earlier compaction had."""
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    """Paths as the tools named them. A path both read and modified counts as modified only."""
    records: int = 0
    unknown_records: dict[str, int] = field(default_factory=dict)
    """Record types that this reader does not know, with how often they occur. Normal, not an error."""
    problems: tuple[Problem, ...] = ()


class NotASession(Exception):
    """The file is not a session that can be read; the message is the reason, in one sentence."""
