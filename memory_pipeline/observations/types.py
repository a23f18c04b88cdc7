"""The observer protocol: the messages of one window become segments with facts, which may have flags.

A user's choice is a self-contained line: the question or plan, and the user's answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Protocol, Self
from zoneinfo import ZoneInfo

from memory_pipeline.harnesses.speakers import APPROVED_PLAN
from memory_pipeline.text.dates import clock_times
from memory_pipeline.text.sentences import clip, sentences, squeeze

EXTRACTIVE = "extractive"
"""The prefix of the names of observers and reflectors that ask no model."""
UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED = "ungrounded", "ungrounded_specifics", "unparsed", "ended"
"""Flags of observations: no evidence in the window; names or numbers that nobody said; taken from an answer in an
invalid format; settled or made untrue by a later statement."""
DOUBTED = (UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED)
"""Flags that exclude an observation from proposals and distillations, and from the wording and high priority of a
reflected line."""
COMPLETED = "completed"
"""The model marked the fact as done: the matter is closed."""
TIME_REMOVED = "time_removed"
"""A clock time that does not occur in the window was removed from a model's fact."""
NO_CUES = "no_cues"
"""There were no cues for the speaker's language, so kind and priority come from structure alone."""


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
    """Images, each with a mark in the text."""
    answer_to: str | None = None
    """What the user answers through a tool; for a tool result, "refused call" if the user refused it. One of the
    values of `harnesses.model.Answering`."""
    answered: str | None = None
    """The question, plan or call that the user answers."""
    untimed: str | None = None
    """The position in the session, if the time was not recorded."""

    @property
    def is_plan(self) -> bool:
        """Whether the message is a plan of the model that the user approved."""
        return self.role == "injected" and self.text.startswith(APPROVED_PLAN)

    @property
    def voice(self) -> str:
        """The speaker of the text outside quotations: the role, or `assistant` for an approved plan."""
        return "assistant" if self.is_plan else self.role

    @property
    def own(self) -> str:
        """The text with quoted passages replaced by blank lines of the same length, so that offsets stay valid."""
        parts, end = [], 0
        for start, stop in self.quoted:
            parts += [self.text[end:start], "\n" * (stop - start)]
            end = stop
        return "".join(parts) + self.text[end:]

    @property
    def own_span(self) -> tuple[int, int]:
        """Start and end of the user's own words, without space around them."""
        own = self.own
        return len(own) - len(own.lstrip()), len(own.rstrip())


@dataclass(frozen=True)
class WindowTimes:
    """The times of a window, computed once for all of its observations: a long session has thousands of messages."""

    moments: frozenset[tuple[datetime, bool]]
    """The times of messages in UTC, each with whether it was recorded."""
    spoken: frozenset[str]
    """Clock times in texts, and the recorded times of messages in local time."""

    @classmethod
    def from_messages(cls, messages: Iterable[tuple[datetime, str | None, str]], zone: ZoneInfo) -> Self:
        """The times of messages, each given as its time, its substitute for an unrecorded time (or None), and its
        text."""
        moments: set[tuple[datetime, bool]] = set()
        spoken: set[str] = set()
        for said_at, untimed, text in messages:
            moments.add((said_at, untimed is None))
            # as written, and as observations quote it, without Markdown
            spoken |= clock_times(text) | clock_times(squeeze(text))
            spoken |= set() if untimed else {f"{said_at.astimezone(zone):%H:%M}"}
        return cls(frozenset(moments), frozenset(spoken))


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """`text[start:end]` of a message: the words that support a fact."""

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
    """The speaker: user, assistant, or paste for text that the user passed on."""
    evidence: tuple[EvidenceSpan, ...]
    flags: tuple[str, ...] = ()
    """Reasons to doubt it, and how it was made; all but `NO_CUES` are only of facts of a language model."""
    untimed: str | None = None
    """The position in the session of the message of `observed_at`, if its time was not recorded."""
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
    """False if a model's answer was not in the requested format, and this is what could be recovered."""
    answer: str | None = None
    """Key of the model's answer, a file in `answers/`."""
    current_task: str | None = None
    suggested_response: str | None = None
    used: tuple[str, ...] = ()
    """Ids of earlier observations that it builds on."""
    ended: tuple[str, ...] = ()
    """Ids of earlier observations that it settles or contradicts."""
    problem: str | None = None
    """The reason why it is not parsed, in one sentence."""
    observer: str | None = None
    """The name of the observer including the model that answered, if known."""
    instead: str = ""
    """The reason why the fallback answered instead of the first model."""
    times_written: int | None = None
    """Number of clock times that the model wrote; None without a model."""
    times_invented: int | None = None
    """Number of those that do not occur in the window."""


@dataclass(frozen=True)
class Context:
    """The observer's knowledge about a window in addition to its messages."""

    day: date
    window: str = ""
    """The `dedupe_key` of the window."""
    project: str = ""
    """Folder that the session worked in."""
    earlier: tuple[tuple[str, Fact], ...] = ()
    """Facts of earlier windows of the same session and day, with their ids."""
    observed: int = 0
    """The number of the window's messages that were observed before and are not observed again."""
    known: tuple[tuple[str, Fact], ...] = ()
    """The facts of those messages, with their ids."""


def observation_id(window: str, fact: Fact) -> str:
    """A deterministic id: the same fact of the same window always has the same id."""
    spans = [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence]
    return row_id("o", window, spans, fact.text)


def row_id(prefix: str, *parts: object) -> str:
    return f"{prefix}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"


class Observer(Protocol):
    """The observer protocol; `name` is stored in `observations.observer`, to distinguish rows of different
    observers."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """A hash of everything that would change the observations of the same messages: the name, and settings that it
        does not cover."""

    @property
    def at_once(self) -> int:
        """Maximum number of sessions that it may observe at the same time."""

    @property
    def is_incremental(self) -> bool:
        """Whether it can start after the messages that were observed before. Other observers, which cost nothing,
        receive the whole window."""

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        """The segments of one window, in order; together they cover every message that was not observed before."""

    def stop(self) -> None:
        """Make observations in other threads stop soon, as the run is interrupted."""


MAX_ASKED = 240
"""Maximum characters of a question, whose last sentences are kept, and of the name of a plan."""
_LINE = re.compile(r'(?:Asked|Plan) ".+?": "(?P<words>.*)"', re.DOTALL)
_END = " ?？:：.。"


def choice_line(answer_to: str, answered: str, words: str) -> str:
    """The line for the user's words, which answer a question or approve a plan."""
    if answer_to == "question":
        return f'Asked "{_question_text(answered)}": "{words}"'
    return f'Plan "{_plan_name(answered)}": "{words}"'


def words_of(line: str) -> str:
    """The user's words in such a line; any other line whole."""
    choice = _LINE.fullmatch(line)
    return choice["words"] if choice else line


def _question_text(question: str) -> str:
    """The question without its question mark, which would end the line's sentence; only the end of a long question."""
    text = squeeze(question)
    if len(text) > MAX_ASKED:
        fitting = [s.start for s in sentences(text) if len(text) - s.start <= MAX_ASKED]
        text = text[fitting[0] :] if fitting else clip(text, MAX_ASKED)
    return text.rstrip(_END)


def _plan_name(plan: str) -> str:
    """The first line that is not empty, usually the heading."""
    first = next((line for line in map(squeeze, plan.splitlines()) if line), "")
    return clip(first.lstrip("# "), MAX_ASKED).rstrip(_END)
