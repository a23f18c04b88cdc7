"""What is planted: sessions as they are told, and the truth about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

REPEATED_CORRECTION = "repeated_correction"
RECURRING_FAILURE = "recurring_failure"
TOOL_MISUSE = "tool_misuse"
CONFIGURATION_DRIFT = "configuration_drift"
MISSING_SKILL = "missing_skill"
STALE_MEMORY = "stale_memory"
RULE_VIOLATED = "rule_violated"
KINDS = (
    REPEATED_CORRECTION,
    RECURRING_FAILURE,
    TOOL_MISUSE,
    CONFIGURATION_DRIFT,
    MISSING_SKILL,
    STALE_MEMORY,
    RULE_VIOLATED,
)
PI, CLAUDE_CODE, CODEX = "pi", "claude_code", "codex"
HARNESSES = (PI, CLAUDE_CODE, CODEX)

Place = tuple[str, int]
"""A line of a session file, as `messages` names it: `source_file` and `source_line`."""


@dataclass(frozen=True)
class Call:
    """A tool call by what it is for; each harness has its own name for the tool. Arguments as in `writers.py`."""

    tool: str
    arguments: Mapping[str, str]
    output: str = ""
    exit_code: int = 0
    refused: bool = False
    words: str = ""
    """What the person said when they refused it."""


@dataclass(frozen=True)
class Said:
    """Words of the person or of the agent."""

    speaker: str
    text: str


Step = Said | Call


def user(text: str) -> Said:
    return Said("user", text)


def agent(text: str) -> Said:
    return Said("assistant", text)


@dataclass(frozen=True)
class Scene:
    """Steps that belong together; `of` names the plant or decoy, "" is ordinary talk."""

    of: str
    steps: Sequence[Step]


@dataclass
class Session:
    """A session as it is told. What is None is settled by the first scene that needs it to be so."""

    number: int
    day: date
    harness: str | None = None
    language: str | None = None
    project: str | None = None
    session_id: str = ""
    started_at: datetime | None = None
    scenes: list[Scene] = field(default_factory=list)


@dataclass(frozen=True)
class Occurrence:
    """One time that it happened: the session, its lines, and the texts that tell of it (whole or parts of messages)."""

    session_id: str
    day: date
    places: frozenset[Place]
    texts: tuple[str, ...]


@dataclass
class Plant:
    """Planted friction, or a decoy: then `kind` is "" and `why` says why it is none."""

    name: str
    kind: str
    sort: str
    """Of a decoy; of friction its kind."""
    why: str = ""
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def is_decoy(self) -> bool:
        return not self.kind

    @property
    def places(self) -> frozenset[Place]:
        return frozenset(place for occurrence in self.occurrences for place in occurrence.places)

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(occurrence.session_id for occurrence in self.occurrences)


@dataclass(frozen=True)
class Week:
    """What was written, and what is in it."""

    seed: int
    days: tuple[date, ...]
    sessions_dir: Path
    workspace: Path
    files: tuple[Path, ...]
    plants: tuple[Plant, ...]

    @property
    def friction(self) -> list[Plant]:
        return [plant for plant in self.plants if not plant.is_decoy]

    @property
    def decoys(self) -> list[Plant]:
        return [plant for plant in self.plants if plant.is_decoy]
