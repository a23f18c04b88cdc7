"""What an observer is: it turns the messages of one window into segments with facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Said:
    """A message as an observer sees it."""

    message_id: str
    role: str
    said_at: datetime
    text: str
    is_error: bool = False
    quoted: tuple[tuple[int, int], ...] = ()
    """`text[start:end]` of what the person pasted, in order: not their words."""

    @property
    def own(self) -> str:
        """The text with empty lines in place of what is quoted, so that everything else stands where it stood."""
        parts, end = [], 0
        for start, stop in self.quoted:
            parts += [self.text[end:start], "\n" * (stop - start)]
            end = stop
        return "".join(parts) + self.text[end:]


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` of a message: the words that carry a fact."""

    message_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth remembering."""

    text: str
    priority: str
    kind: str
    """rule, preference, decision, correction, root_cause, state_change, convention, progress, statement or question."""
    observed_at: datetime
    trust: str
    """Whose words they are: user, assistant, or paste for what the user only passed on."""
    evidence: tuple[Span, ...]
    flags: tuple[str, ...] = ()
    """`no_cues`: there were none for the speaker's language, so kind and priority come from structure alone."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of messages on one topic, with a narrative of 1-3 sentences and its facts."""

    narrative: str
    first_message_id: str
    last_message_id: str
    facts: tuple[Fact, ...]


class Observer(Protocol):
    """`name` goes into `observations.observer`, so that rows of different observers can be told apart."""

    @property
    def name(self) -> str: ...

    def observe(self, messages: Sequence[Said]) -> list[Segment]:
        """The segments of one window, in order; together they cover every message."""
