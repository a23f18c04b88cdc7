"""Patterns of friction: recurring events, their cost, and a change that would end them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.text.sentences import clip

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
