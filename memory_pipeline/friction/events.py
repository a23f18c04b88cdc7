"""Events of friction patterns: a failure or a correction, and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise

from memory_pipeline.friction.attempts import USER, Session, Turn

MAX_TURNS = 30
MAX_MINUTES = 30.0
MAX_GAP_MINUTES = 5.0
"""Maximum minutes that a pause between two messages counts; longer ones are breaks."""


@dataclass(frozen=True, slots=True)
class FrictionEvent:
    """An occurrence: a user's remark, or a failed tool call."""

    event_id: str
    """The id of the observation or, without one, of the message."""
    day: date
    session_id: str
    at: datetime
    text: str
    evidence: tuple[tuple[str, int, int], ...]
    """The span: (message id, start, end)."""
    cwd: str | None = None
    project: str | None = None
    turns: int = 0
    minutes: float = 0.0
    """Minutes from the failure until the work continued; for a correction, from the request to it."""
    is_correction: bool = False
    """Whether a cue marks the user's remark as a correction."""
    calls: tuple[str, ...] = ()
    """The agent's last calls before the remark."""


def event_at(
    session: Session,
    turn: Turn,
    text: str = "",
    spans: Iterable[tuple[str, int, int]] = (),
    lost: tuple[int, float] = (0, 0.0),
) -> FrictionEvent:
    """The event of a message: by default all of its text, without a cost."""
    text, evidence = text or turn.text, tuple(spans) or ((turn.message_id, 0, len(turn.text)),)
    place = session.cwd, session.project
    return FrictionEvent(turn.message_id, turn.day, turn.session_id, turn.at, text, evidence, *place, *lost)


def cost(turns: Sequence[Turn], began: int, ended: int) -> tuple[int, float]:
    """The number of messages and minutes between two positions of a session. A pause counts as five minutes at most and
    the total as thirty, as other activity is unknown."""
    span = turns[began : ended + 1]
    minutes = sum(min(MAX_GAP_MINUTES, max(0.0, (b.at - a.at).total_seconds() / 60)) for a, b in pairwise(span))
    return min(MAX_TURNS, max(0, len(span) - 1)), min(MAX_MINUTES, minutes)


def request_before(turns: Sequence[Turn], position: int) -> int:
    """The position of the user's request that precedes the message."""
    return next((i for i in range(position - 1, -1, -1) if turns[i].role == USER), position)


def user_after(turns: Sequence[Turn], position: int) -> int:
    """The position of the user's next message, else the end."""
    return next((i for i in range(position + 1, len(turns)) if turns[i].role == USER), len(turns) - 1)
