"""The observer protocol: the messages of one window become segments with facts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Protocol

from memory_pipeline.harnesses.speakers import APPROVED_PLAN

EXTRACTIVE = "extractive"
"""The prefix of the names of observers and reflectors that ask no model."""


class ImagePlace(NamedTuple):
    """The place of an image in a message; see `sessions.images.load_image`."""

    source_file: str
    line: int
    block: int
    media_type: str


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message as an observer sees it."""

    message_id: str
    role: str
    said_at: datetime
    text: str
    is_error: bool = False
    quoted: tuple[tuple[int, int], ...] = ()
    """`text[start:end]` of what the user pasted, in order: not their words."""
    tool_name: str | None = None
    images: tuple[ImagePlace, ...] = ()
    """Images that stand in the text as marks."""
    answer_to: str | None = None
    """The thing that a user answers through a tool; of a tool's result, that they refused it. See
    `sessions.model.Message`."""
    answered: str | None = None
    """The question, plan or call that they answer."""
    untimed: str | None = None
    """The place in the session, if the time was not recorded."""

    @property
    def is_plan(self) -> bool:
        """Whether a program passed on a plan of the model's that the user approved."""
        return self.role == "injected" and self.text.startswith(APPROVED_PLAN)

    @property
    def voice(self) -> str:
        """The speaker, apart from quotations: its role, and the model for an approved plan."""
        return "assistant" if self.is_plan else self.role

    @property
    def own(self) -> str:
        """The text with empty lines in place of what is quoted, so that everything else stands where it stood."""
        parts, end = [], 0
        for start, stop in self.quoted:
            parts += [self.text[end:start], "\n" * (stop - start)]
            end = stop
        return "".join(parts) + self.text[end:]


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """`text[start:end]` of a message: the words that carry a fact."""

    message_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact worth remembering."""

    text: str
    priority: str
    kind: str
    """rule, preference, decision, correction, root_cause, state_change, convention, progress, statement or question."""
    observed_at: datetime
    trust: str
    """The speaker: user, assistant, or paste for text that the user only passed on."""
    evidence: tuple[EvidenceSpan, ...]
    flags: tuple[str, ...] = ()
    """`no_cues`: there were none for the speaker's language, so kind and priority come from structure alone.
    Of a language model also `ungrounded`, `ungrounded_specifics` and `time_removed` (see
    `model/fact_check.py`), `unparsed`, `completed` where the model marked it as done, and `ended` by what
    came later in the session."""
    untimed: str | None = None
    """Where in its session the message of `observed_at` was said, if nobody recorded at what time."""
    trace: str | None = None
    """The steps that led to it, with arrows between them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of messages on one topic, with a narrative of 1-3 sentences and its facts."""

    narrative: str
    first_message_id: str
    last_message_id: str
    facts: tuple[Fact, ...]
    title: str | None = None
    parsed: bool = True
    """False where a model's answer was not in the format that it was asked for, and this is what could be saved."""
    answer: str | None = None
    """Key of the model's answer that it comes from, a file below `answers/`."""
    current_task: str | None = None
    suggested_response: str | None = None
    used: tuple[str, ...] = ()
    """Ids of earlier observations that it builds on."""
    ended: tuple[str, ...] = ()
    """Ids of earlier observations that it settles or makes untrue."""
    problem: str | None = None
    """Why it is not parsed, in one sentence."""
    observer: str | None = None
    """The name of the observer with the model that gave it, where that is known."""
    instead: str = ""
    """Why the first model did not give it, where the fallback did."""
    times_written: int | None = None
    """Clock times in what the model wrote of it; None where no model did."""
    times_invented: int | None = None
    """Clock times among them that are no message's and were not said."""


@dataclass(frozen=True)
class Context:
    """The observer's knowledge about a window beside its messages."""

    day: date
    window: str = ""
    """Its dedupe_key."""
    project: str = ""
    """Folder that the session worked in."""
    earlier: tuple[tuple[str, Fact], ...] = ()
    """Facts of earlier windows of the same session and day, with their ids."""
    observed: int = 0
    """The number of the window's messages that were observed before and are not observed again."""
    known: tuple[tuple[str, Fact], ...] = ()
    """The facts that they gave, with their ids."""


def observation_id(window: str, fact: Fact) -> str:
    """The same fact of the same window always has the same id."""
    spans = [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence]
    return row_id("o", window, spans, fact.text)


def row_id(prefix: str, *parts: object) -> str:
    return f"{prefix}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"


class Observer(Protocol):
    """The observer protocol; `name` goes into `observations.observer`, to distinguish rows of different observers."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """A hash of everything that would change the observations of the same messages: the name, and settings that are
        not in it."""

    @property
    def at_once(self) -> int:
        """Sessions that it may be given at the same time."""

    @property
    def goes_on(self) -> bool:
        """Whether it can start after what was observed before. Other observers, and those that cost nothing, are given
        the whole window."""

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        """The segments of one window, in order; together they cover every message that was not observed before."""

    def stop(self) -> None:
        """The run is interrupted: what observes in other threads should give up soon."""
