"""Observations as shown to a language model: numbered and fenced, by day and topic, in batches that fit into one
request. A topic begins with its narrative, which is repeated if the topic continues in the next batch.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from memory_pipeline.observations.flags import COMPLETED, ENDED, UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED
from memory_pipeline.reflections.evaluation import most_tokens
from memory_pipeline.reflections.types import Observation
from memory_pipeline.text.priorities import EMOJI
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.spaces import run_together
from memory_pipeline.text.tokens import estimate

FENCE = "observations"
SPEAKERS = {
    **{"user": "the person", "assistant": "the agent", "tool": "a tool's output", "paste": "pasted text"},
    **{"injected": "text that a program put in", "model": "nobody knows whose"},
}
NOTES = {ENDED: "ended", COMPLETED: "done", **dict.fromkeys((UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED), "doubtful")}
"""The note after an observation with the flag."""
MAX_NARRATIVE = 400
"""Maximum characters of a topic's narrative."""


@dataclass(frozen=True)
class Batch:
    """Observations that are condensed in one request; number n is `observed[n - 1]`."""

    observed: tuple[Observation, ...]
    text: str
    fence: str
    """A delimiter that cannot occur inside `text`: it contains a hash of it."""
    today: date | None
    """The day that is reflected on; None for a pool, whose text does not depend on the day."""

    @property
    def tokens(self) -> int:
        return sum(o.tokens for o in self.observed)

    @property
    def most_tokens(self) -> int:
        """Maximum tokens of its lines."""
        return most_tokens(self.tokens, estimate(self.text))


def batches(observed: Sequence[Observation], cap: int, today: date | None) -> list[Batch]:
    """The observations in batches by day and of about equal size, each of at most `cap` estimated tokens, except a
    single longer one. Batches in which no observation may give a line its words are left out.

    With `today` each day is shown with its age; without it, the same observations always give the same text.
    """
    ordered = _in_order(observed)
    lines = [estimate(_line(o, len(ordered))) + 1 for o in ordered]
    even = shown_tokens(ordered)
    even = math.ceil(even / max(1, math.ceil(even / cap)))  # a small remainder might get an empty answer
    found: list[list[Observation]] = []
    spent = 0
    for o, line in zip(ordered, lines, strict=True):
        cost = line + _heading_tokens(o, found[-1][-1] if found else None)
        if not found or spent >= even or spent + cost > cap:
            found.append([])
            spent, cost = 0, line + _heading_tokens(o, None)
        found[-1].append(o)
        spent += cost
    return [_batch(taken, today) for taken in found if any(o.may_lead for o in taken)]


def shown_tokens(observed: Sequence[Observation]) -> int:
    """Estimated tokens of these observations as shown."""
    ordered = _in_order(observed)
    headings = sum(map(_heading_tokens, ordered, [None, *ordered]))
    return headings + sum(estimate(_line(o, len(ordered))) + 1 for o in ordered)


def _in_order(observed: Sequence[Observation]) -> list[Observation]:
    """The observations by day and topic, with each topic at the position of its first observation."""
    first: dict[tuple[date, str], datetime] = {}
    for o in observed:
        first[_place(o)] = min(o.observed_at, first.get(_place(o), o.observed_at))
    return sorted(observed, key=lambda o: (o.day, first[_place(o)], _place(o), o.observed_at, o.observation_id))


def _place(o: Observation) -> tuple[date, str]:
    return o.day, o.topic.segment_id if o.topic else o.observation_id


def _batch(observed: Sequence[Observation], today: date | None) -> Batch:
    text = "\n".join(_rendered_lines(observed, today))
    return Batch(tuple(observed), text, f"{FENCE}-{hashlib.sha256(text.encode()).hexdigest()[:16]}", today)


def _rendered_lines(observed: Sequence[Observation], today: date | None) -> Iterator[str]:
    before: Observation | None = None
    for day, of_day in groupby(enumerate(observed, 1), key=lambda numbered: numbered[1].day):
        yield f"## {day:%A %Y-%m-%d}{f' ({_age_text((today - day).days)})' if today else ''}"
        for number, o in of_day:
            if heading := _heading(o, before):
                yield heading
            yield _line(o, number)
            before = o


def _heading(o: Observation, before: Observation | None) -> str:
    """The heading of an observation that begins a topic, or ends one."""
    if before and before.day == o.day and before.topic == o.topic:
        return ""
    if o.topic is None:
        return "### (no topic)" if before and before.day == o.day else ""
    title, narrative = run_together(o.topic.title), clip(run_together(o.topic.narrative), MAX_NARRATIVE)
    return f"### {': '.join(filter(None, (title, narrative)))}"


def _heading_tokens(o: Observation, before: Observation | None) -> int:
    heading = _heading(o, before)
    return estimate(heading) + 1 if heading else 0


def _line(o: Observation, number: int) -> str:
    notes = "".join(dict.fromkeys(f"({NOTES[flag]}) " for flag in o.flags if flag in NOTES))
    projects = f" in {', '.join(map(run_together, o.projects))}" if o.projects else ""
    trace = f" (trace: {run_together(o.trace)})" if o.trace else ""
    head = f"o{number} {EMOJI[o.priority]} {o.kind}, {SPEAKERS.get(o.trust, o.trust)}{projects}: "
    return f"{head}{notes}{run_together(o.text)}{trace}"


def _age_text(days: int) -> str:
    return "today" if days == 0 else f"{days} day{'' if days == 1 else 's'} ago"
