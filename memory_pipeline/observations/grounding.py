"""Verification of observations against their messages: evidence verbatim, and clock times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Self
from zoneinfo import ZoneInfo

from memory_pipeline.lake.rows import ObservationRow
from memory_pipeline.observations.types import EXTRACTIVE, UNGROUNDED, choice_line
from memory_pipeline.text.dates import clock_times
from memory_pipeline.text.priorities import LOW
from memory_pipeline.text.sentences import squeeze


def missing_evidence(
    observation: ObservationRow,
    texts: Mapping[str, str],
    answered: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> str | None:
    """Why the evidence does not support the observation, or None.

    `texts` maps message ids to message texts; `answered` maps ids of answers to the kind and text of what they answer.
    Every span must lie in its message. The text of an extractive observation must equal its spans, except for Markdown
    marks and white space; the span of a user's choice may be preceded by the question. Only observations of a model may
    have no evidence, if they are low and flagged.
    """
    if not observation["evidence"]:
        marked = UNGROUNDED in observation["flags"] and observation["priority"] == LOW
        return None if marked else "it has no evidence"
    quoted = []
    for span in observation["evidence"]:
        text = texts.get(span["message_id"])
        if text is None:
            return f"message {span['message_id']} does not exist"
        if not 0 <= span["start"] < span["end"] <= len(text):
            return f"span {span['start']}-{span['end']} is outside of message {span['message_id']}"
        quoted.append(text[span["start"] : span["end"]])
    if observation["observer"].startswith(EXTRACTIVE):
        words = squeeze(" ".join(quoted))
        asked = answered.get(observation["evidence"][0]["message_id"]) if len(quoted) == 1 else None
        if observation["text"] not in (words, asked and choice_line(*asked, words)):
            return "its text differs from its evidence"
    return None


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


def invented_times(observation: ObservationRow, window: WindowTimes) -> list[str]:
    """Times of the observation that do not occur in its window.

    Its own time must be that of a message, and recorded if that one is; a clock time in its text must occur in the
    window.
    """
    own = (observation["observed_at"], observation["untimed"] is None)
    wrong = [f"{observation['observed_at']:%H:%M} UTC"] if own not in window.moments else []
    return wrong + sorted(clock_times(observation["text"]) - window.spoken)
