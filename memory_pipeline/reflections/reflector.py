"""What a reflector is: it condenses the observations of some days into lines, each for a section of MEMORY.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Observed:
    """An observation as a reflector sees it."""

    observation_id: str
    day: date
    session_id: str
    priority: str
    kind: str
    trust: str
    observed_at: datetime
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Line:
    """One condensed line. `sources` are observation ids, the one that gave the words first."""

    section: int
    """Position in `Settings.sections`."""
    text: str
    priority: str
    kind: str
    sources: tuple[str, ...]
    sessions: int
    """Distinct sessions among the sources."""
    first_seen: datetime
    last_seen: datetime


class Reflector(Protocol):
    """`name` goes into `reflections.reflector`."""

    @property
    def name(self) -> str: ...

    def reflect(
        self, day: date, observations: Sequence[Observed], vectors: Mapping[str, Sequence[float]]
    ) -> list[Line]:
        """The lines for the days that end with `day`; `vectors` by observation id, possibly few or none."""
