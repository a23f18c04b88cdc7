"""Needs of a session: the instructions and corrections that its user typed, and the calls that failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, get_args

from memory_pipeline.friction.attempts import Session, sessions_in
from memory_pipeline.friction.corrections import MIN_WORDS
from memory_pipeline.friction.failures import failures_in
from memory_pipeline.friction.messages import bare, messages_in
from memory_pipeline.friction.stage import by_session
from memory_pipeline.text.kinds import NORMATIVE, is_momentary_step, is_question, kind_of_user
from memory_pipeline.text.similarity import content_words
from memory_pipeline.workspace.workspace import Workspace

Kind = Literal["instruction", "correction", "failure"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_DAYS = 7
"""Maximum number of days whose messages are read at once."""


@dataclass(frozen=True)
class Need:
    """An instruction or correction of a user, or a failed call."""

    kind: Kind
    day: date
    at: datetime
    session_id: str
    project: str | None
    text: str
    """The user's words, or the line of the output that describes the error."""
    message_id: str
    command: str = ""
    """The program and subcommand that failed."""

    @property
    def projects(self) -> tuple[str, ...]:
        return (self.project,) if self.project else ()


def sessions_on(workspace: Workspace, days: Sequence[date]) -> Iterator[tuple[Session, list[Need]]]:
    """The sessions of these days with their needs in order, a week at a time. A session that goes on in the next week
    is yielded again, with the needs of that week."""
    for first in range(0, len(days), MAX_DAYS):
        chosen = days[first : first + MAX_DAYS]
        observed = by_session(workspace.lake.read("observations", chosen))
        for session in sessions_in(workspace.lake, chosen):
            session_id, project = session.session_id, session.project
            own = observed.get(session_id, [])
            kinds = {row["observation_id"]: row["kind"] for row in own}
            needs = [
                Need(kind, e.day, e.at, session_id, project, e.text, e.evidence[0][0])
                for e in messages_in(session, own)
                if (kind := _kind(e.text, kinds.get(e.event_id), is_correction=e.is_correction))
            ]
            needs += [
                Need("failure", f.event.day, f.event.at, session_id, project, f.error, f.event.event_id, f.head)
                for f in failures_in(session)
                if f.error
            ]
            yield session, sorted(needs, key=lambda need: (need.at, need.message_id))


def _kind(text: str, observed_as: str | None, *, is_correction: bool) -> Kind | None:
    """Whether the words say how something should be done; None for a question, or if they say too little."""
    words = bare(text)
    if is_question(text) or len(content_words(words)) < MIN_WORDS or is_momentary_step(words):
        return None
    if is_correction:
        return "correction"
    return "instruction" if (observed_as or kind_of_user(words)) in NORMATIVE else None
