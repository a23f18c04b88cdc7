"""Occurrences of friction, and patterns of them: recurring events, their cost, and a change that would end them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise

from memory_pipeline.friction.attempts import USER, Session, Turn
from memory_pipeline.text.sentences import clip

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


REPEATED_CORRECTION = "repeated_correction"
RECURRING_FAILURE = "recurring_failure"
TOOL_MISUSE = "tool_misuse"
CONFIGURATION_DRIFT = "configuration_drift"
MISSING_SKILL = "missing_skill"
STALE_MEMORY = "stale_memory"
RULE_VIOLATED = "rule_violated"
MEMORY_FILE, AGENTS_FILE = "MEMORY.md", "AGENTS.md"
HARD_RULES = "Hard Rules"
MIN_SESSIONS = 2
"""Minimum sessions of a pattern."""
MIN_MINUTES = 0.5
"""Minimum cost of an occurrence in minutes: somebody has to read it."""
MAX_TITLE = 160
MAX_LINE = 240
"""Maximum characters of a line for a file."""


@dataclass(frozen=True)
class Pattern:
    """A recurring problem with its `members`, oldest first, and a change that would end it.

    `adds` is a line for the target file, `replaces` the line to remove from it; `note` says what to do if the change is
    not a line.
    """

    kind: str
    title: str
    target_file: str
    members: tuple[FrictionEvent, ...]
    adds: str | None = None
    replaces: str | None = None
    section: str | None = None
    note: str = ""
    low_risk: bool = False
    requests: frozenset[str] = frozenset()
    """Ids of the users' messages that requested the work."""
    sure: float = 1.0
    """The reliability of the kind of evidence, 0 to 1."""

    @property
    def sessions(self) -> int:
        return len({m.session_id for m in self.members})

    @property
    def messages(self) -> frozenset[str]:
        """Ids of the messages with its evidence."""
        return frozenset(message_id for member in self.members for message_id, *_ in member.evidence)

    @property
    def minutes(self) -> float:
        return sum(max(MIN_MINUTES, m.minutes) for m in self.members)

    @property
    def turns(self) -> int:
        return sum(m.turns for m in self.members)

    @property
    def severity(self) -> float:
        """Sessions times the minutes that one occurrence costs."""
        return self.sessions * self.minutes / len(self.members)

    @property
    def confidence(self) -> float:
        """The probability that this is a real pattern: half of what its kind of evidence allows for two sessions, more
        for more."""
        return self.sure * (1 - 1 / max(2, self.sessions))

    @property
    def by_week(self) -> list[tuple[date, int]]:
        return sorted(Counter(m.day - timedelta(days=m.day.weekday()) for m in self.members).items())

    @property
    def change(self) -> str:
        """The change on one line."""
        place = f"{self.target_file}, {self.section}" if self.section else self.target_file
        if self.adds and self.replaces:
            return f"In {place}, replace “{self.replaces}” with “{self.adds}”"
        if self.adds:
            return f"Add to {place}: “{self.adds}”" + (f" ({self.note})" if self.note else "")
        if self.replaces:
            return f"Remove from {place}: “{self.replaces}”"
        return f"{place}: {self.note}"

    def with_short_title(self) -> Pattern:
        """The pattern with a title clipped to the length of a line."""
        return replace(self, title=clip(self.title, MAX_TITLE))
