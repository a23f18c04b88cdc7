"""The reflector protocol: observations of some days are condensed into lines, each for a section of MEMORY.md.

The section and the item type of each kind are defined here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.observations.flags import DOUBTED
from memory_pipeline.text.priorities import HIGH, MEDIUM, RANK

USER, RULES, ARCHITECTURE, PATTERNS, UNFILED = range(5)
"""Sections by their position; what belongs to none of them is unfiled."""
SECTION_OF = {
    "preference": USER,
    "rule": RULES,
    "decision": ARCHITECTURE,
    "state_change": ARCHITECTURE,
}
FITS_NONE = ("statement", "progress")
"""Kinds that do not determine a section. Every other kind belongs to the patterns."""
REFLECTED = "Reflected"
"""The section of what is unfiled, as it is stored; in MEMORY.md it has a date."""
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
"""Item types by kind: how to behave, how things are, how things are done, what happened. A question has none."""
CHANGES = "state_change"
"""The kind that tells what was changed."""


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
    """An observation as a reflector sees it; for a pool of reflections, one of these."""

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

    @property
    def said(self) -> str:
        """Its words and those of what led to it."""
        return f"{self.text} {self.trace or ''}".rstrip()

    cwds: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    """The projects: of a reflection perhaps several, of a note and outside of any project none."""

    @property
    def may_lead(self) -> bool:
        """Whether it may give a line its words."""
        return set(DOUBTED).isdisjoint(self.flags)

    @property
    def weight(self) -> str:
        """The priority that it can give a line."""
        return MEDIUM if self.priority == HIGH and not self.may_lead else self.priority


@dataclass(frozen=True, slots=True)
class ReflectionLine:
    """A condensed line. `sources` are observation ids, the one that gave the words first."""

    section: int
    """Position in `Settings.sections`, or `UNFILED`."""
    text: str
    priority: str
    kind: str
    sources: tuple[str, ...]
    sessions: int
    """Distinct sessions among the sources."""
    first_seen: datetime
    last_seen: datetime
    trust: str = "user"
    """The most trusted voice among the sources."""
    superseded: tuple[str, ...] = ()
    """Ids of older observations that it replaced."""
    tags: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    """Lines of MEMORY.md that say something else."""
    reflector: str | None = None
    """The name of the reflector with the model that gave it, where that is known."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The result of reflecting on some observations."""

    lines: tuple[ReflectionLine, ...]
    asked: int = 0
    """Answers of a model that it took."""
    dropped: int = 0
    """Lines of the model that were not kept: their sources do not carry them, or together they were too long."""
    summary: str | None = None
    """The news in a sentence or two."""
    is_poor: bool = False
    """Whether part of it comes from answers that were cut off, too long or mostly unsupported."""
    instead: tuple[str, ...] = ()
    """For each batch the reason why the fallback gave it, or nothing."""


class UnusableAnswerError(MemoryPipelineError):
    """A model's answers were empty, degenerate or next to nothing; the message says which."""


class Reflector(Protocol):
    """`name` goes into `reflections.reflector`."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """A hash of everything that would change the lines for the same observations."""

    def reflect(
        self, day: date, observations: Sequence[Observation], vectors: Mapping[str, Sequence[float]]
    ) -> Reflection:
        """The lines for the days that end with `day`; `vectors` by observation id, possibly few or none."""

    def pool(self, day: date, lines: Sequence[Observation], vectors: Mapping[str, Sequence[float]]) -> Reflection:
        """Condense old lines regardless of their age: equal ones become one."""


def section_name(sections: Sequence[str], position: int) -> str:
    """The name under which a section is stored; `sections` are the settings' own."""
    return REFLECTED if position == UNFILED else sections[position]


def section_of(kind: str) -> int:
    """The section of a kind, as far as it is determined."""
    return UNFILED if kind in FITS_NONE else SECTION_OF.get(kind, PATTERNS)


def is_guidance(kind: str, section: int) -> bool:
    """Whether a line of the kind, in the section at this position, says what to do next time."""
    return ITEM_TYPES.get(kind) in (BEHAVIOUR, SKILL) or section in (USER, RULES)


def section_at(sections: Sequence[str], name: str) -> int:
    """The inverse; an unknown name is that of the user's section before they changed their name."""
    return UNFILED if name == REFLECTED else sections.index(name) if name in sections else USER


def best_priority(observed: Iterable[Observation]) -> str:
    return min((o.weight for o in observed), key=RANK.__getitem__)


def best_trust(observed: Iterable[Observation]) -> str:
    return min((o.trust for o in observed), key=lambda t: TRUSTS.index(t) if t in TRUSTS else len(TRUSTS))
