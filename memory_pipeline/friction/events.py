"""Where something went wrong once, and what that cost: what the patterns of friction are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise

from memory_pipeline.friction.attempts import USER, Turn

MAX_TURNS = 30
MAX_MINUTES = 30.0
MAX_GAP_MINUTES = 5.0
"""Of a pause between two messages that counts: longer ones are somebody's lunch."""


@dataclass(frozen=True, slots=True)
class FrictionEvent:
    """One occurrence: words of a user, or a call of a tool that went wrong."""

    event_id: str
    """Of the observation, else of the message."""
    day: date
    session_id: str
    at: datetime
    text: str
    evidence: tuple[tuple[str, int, int], ...]
    """(message id, start, end)"""
    cwd: str | None = None
    project: str | None = None
    turns: int = 0
    minutes: float = 0.0
    """From what went wrong to where the work went on; of a correction from the request to it."""
    is_correction: bool = False
    """Whether words of a user correct the agent by an explicit cue."""
    calls: tuple[str, ...] = ()
    """What the agent had just called when its user spoke."""


def cost(turns: Sequence[Turn], began: int, ended: int) -> tuple[int, float]:
    """Messages and minutes between two positions of a session. A pause counts as five minutes at most, the whole as
    thirty: nobody knows what else was done."""
    span = turns[began : ended + 1]
    minutes = sum(min(MAX_GAP_MINUTES, max(0.0, (b.at - a.at).total_seconds() / 60)) for a, b in pairwise(span))
    return min(MAX_TURNS, max(0, len(span) - 1)), min(MAX_MINUTES, minutes)


def request_before(turns: Sequence[Turn], position: int) -> int:
    """Where the user asked for what the message at the position is about."""
    return next((i for i in range(position - 1, -1, -1) if turns[i].role == USER), position)


def user_after(turns: Sequence[Turn], position: int) -> int:
    """Where the user speaks next, else the end."""
    return next((i for i in range(position + 1, len(turns)) if turns[i].role == USER), len(turns) - 1)
