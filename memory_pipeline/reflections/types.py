"""The reflector protocol: observations of some days are condensed into lines, each for a section of MEMORY.md.

The section and the item type of each kind are defined here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.observations.types import DOUBTED
from memory_pipeline.text.priorities import HIGH, MEDIUM, RANK

USER, RULES, ARCHITECTURE, PATTERNS, UNFILED = range(5)
"""Sections by index; lines that belong to none are unfiled."""
SECTION_OF = {
    "preference": USER,
    "rule": RULES,
    "decision": ARCHITECTURE,
    "state_change": ARCHITECTURE,
}
FITS_NONE = ("statement", "progress")
"""Kinds that determine no section. All other kinds without an entry belong to the patterns."""
REFLECTED = "Reflected"
"""The stored section of unfiled lines; in MEMORY.md it has a date."""
BEHAVIOUR, KNOWLEDGE, SKILL, EVENT = "behaviour", "knowledge", "skill", "event"
ITEM_TYPES = {
    "rule": BEHAVIOUR,
    "preference": BEHAVIOUR,
    "correction": BEHAVIOUR,
    "decision": KNOWLEDGE,
    "state_change": KNOWLEDGE,
    "root_cause": KNOWLEDGE,
    "statement": KNOWLEDGE,
    "convention": SKILL,
    "progress": EVENT,
}
"""Item types by kind: how to behave, how things are, how things are done, what happened. Questions have none."""
CHANGES = "state_change"
"""The kind that reports a change."""


TRUSTS = ("user", "assistant", "tool", "paste", "injected", "model")
"""Speakers of an observation, the user first."""


@dataclass(frozen=True, slots=True)
class Topic:
    """The segment that an observation belongs to."""

    segment_id: str
    title: str
    narrative: str


@dataclass(frozen=True, slots=True)
class Observation:
    """An observation as a reflector sees it; for a pool, a reflection in this form."""

    observation_id: str
    day: date
    session_id: str
    priority: str
    kind: str
    trust: str
    observed_at: datetime
    text: str
    tokens: int
    flags: tuple[str, ...] = ()
    section: int | None = None
    """The section of an existing reflection."""
    topic: Topic | None = None
    trace: str | None = None
    """The steps that led to it."""
    cwds: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    """The projects: several are possible for a reflection; none for a note, or outside any project."""

    @property
    def said(self) -> str:
        """Its text and that of its trace."""
        return f"{self.text} {self.trace or ''}".rstrip()

    @property
    def may_lead(self) -> bool:
        """Whether a line may have its words."""
        return set(DOUBTED).isdisjoint(self.flags)

    @property
    def weight(self) -> str:
        """The highest priority that it can give a line."""
        return MEDIUM if self.priority == HIGH and not self.may_lead else self.priority


@dataclass(frozen=True, slots=True)
class ReflectionLine:
    """A condensed line. `sources` are observation ids, the one with its words first."""

    section: int
    """Index in `Settings.sections`, or `UNFILED`."""
    text: str
    priority: str
    kind: str
    sources: tuple[str, ...]
    sessions: int
    """Distinct sessions among the sources."""
    first_seen: datetime
    last_seen: datetime
    trust: str = "user"
    """The most trusted speaker among the sources."""
    superseded: tuple[str, ...] = ()
    """Ids of older observations that it replaced."""
    tags: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    """Ids of lines of MEMORY.md that it contradicts."""
    reflector: str | None = None
    """The name of the reflector including the model that answered, if known."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The result of reflecting on some observations."""

    lines: tuple[ReflectionLine, ...]
    asked: int = 0
    """Number of model answers used."""
    dropped: int = 0
    """Lines of the model that were dropped: their sources do not support them, or the total was too long."""
    summary: str | None = None
    """The news in a sentence or two."""
    is_poor: bool = False
    """Whether part of it comes from answers that were truncated, too long or mostly unsupported."""
    instead: tuple[str, ...] = ()
    """For each batch the reason why the fallback answered, or an empty string."""


class UnusableAnswerError(MemoryPipelineError):
    """A model's answers were empty, degenerate or far too short; the message says which."""


class Reflector(Protocol):
    """The reflector protocol; `name` is stored in `reflections.reflector`."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """A hash of everything that would change the lines for the same observations."""

    def reflect(
        self, day: date, observations: Sequence[Observation], vectors: Mapping[str, Sequence[float]]
    ) -> Reflection:
        """The lines for the days that end with `day`; `vectors` maps observation ids to vectors, possibly only some."""

    def pool(self, day: date, lines: Sequence[Observation], vectors: Mapping[str, Sequence[float]]) -> Reflection:
        """Condense old lines regardless of their age: equal ones become one."""


def section_name(sections: Sequence[str], position: int) -> str:
    """The stored name of a section; `sections` are those of the settings."""
    return REFLECTED if position == UNFILED else sections[position]


def section_of(kind: str) -> int:
    """The section of a kind; `UNFILED` if it determines none."""
    return UNFILED if kind in FITS_NONE else SECTION_OF.get(kind, PATTERNS)


def is_guidance(kind: str, section: int) -> bool:
    """Whether a line of this kind, in the section with this index, says what to do next time."""
    return ITEM_TYPES.get(kind) in (BEHAVIOUR, SKILL) or section in (USER, RULES)


def section_at(sections: Sequence[str], name: str) -> int:
    """The index of a section by its stored name; an unknown name counts as the user's section before it was renamed."""
    return UNFILED if name == REFLECTED else sections.index(name) if name in sections else USER


def best_priority(observed: Iterable[Observation]) -> str:
    return min((o.weight for o in observed), key=RANK.__getitem__)


def best_trust(said: Iterable[Observation | ReflectionLine]) -> str:
    return min((each.trust for each in said), key=lambda t: TRUSTS.index(t) if t in TRUSTS else len(TRUSTS))
