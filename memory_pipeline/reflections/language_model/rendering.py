"""Observations as a language model is shown them: numbered and fenced, by day, in batches that fit into one call."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from memory_pipeline.observations.flags import ENDED, UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED
from memory_pipeline.reflections.model import Observation
from memory_pipeline.text.priorities import EMOJI
from memory_pipeline.text.spaces import run_together
from memory_pipeline.text.tokens import estimate

FENCE = "observations"
WHOSE = {
    **{"user": "the person", "assistant": "the agent", "tool": "a tool's output", "paste": "pasted text"},
    **{"injected": "text that a program put in", "model": "nobody knows whose"},
}
SAID_OF = {ENDED: "ended", **dict.fromkeys((UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED), "doubtful")}
"""What is said of an observation with the flag."""


@dataclass(frozen=True)
class Batch:
    """Observations that are condensed in one call; number n is `observed[n - 1]`."""

    observed: tuple[Observation, ...]
    text: str
    fence: str
    """A mark that cannot stand inside `text`: it is made of a hash over it."""

    @property
    def tokens(self) -> int:
        return sum(o.tokens for o in self.observed)


def batches(observed: Sequence[Observation], cap: int, today: date | None) -> list[Batch]:
    """In order of days and about equal, each of at most `cap` estimated tokens, but for a single one that is longer.

    With `today` each day says how long ago it was; without, the same observations are always the same words.
    """
    ordered = sorted(observed, key=lambda o: (o.observed_at, o.observation_id))
    costs = [estimate(_line(o, len(ordered))) + 1 for o in ordered]
    even = sum(costs) / max(1, math.ceil(sum(costs) / cap))  # a small rest might be answered with nothing at all
    found: list[list[Observation]] = []
    spent = 0
    for o, cost in zip(ordered, costs, strict=True):
        if not found or spent >= even or spent + cost > cap:
            found.append([])
            spent = 0
        found[-1].append(o)
        spent += cost
    return [_batch(taken, today) for taken in found]


def shown_tokens(observed: Sequence[Observation]) -> int:
    """Estimated tokens of these as they are shown."""
    return sum(estimate(_line(o, len(observed))) + 1 for o in observed)


def _batch(observed: Sequence[Observation], today: date | None) -> Batch:
    text = "\n".join(_shown(observed, today))
    return Batch(tuple(observed), text, f"{FENCE}-{hashlib.sha256(text.encode()).hexdigest()[:16]}")


def _shown(observed: Sequence[Observation], today: date | None) -> Iterator[str]:
    for day, of_day in groupby(enumerate(observed, 1), key=lambda numbered: numbered[1].day):
        yield f"## {day:%A %Y-%m-%d}{f' ({_ago((today - day).days)})' if today else ''}"
        yield from (_line(o, number) for number, o in of_day)


def _line(o: Observation, number: int) -> str:
    said = dict.fromkeys(f"({SAID_OF[flag]}) " for flag in o.flags if flag in SAID_OF)
    text = run_together(o.text)
    return f"o{number} {EMOJI[o.priority]} {o.kind}, {WHOSE.get(o.trust, o.trust)}: {''.join(said)}{text}"


def _ago(days: int) -> str:
    return "today" if days == 0 else f"{days} day{'' if days == 1 else 's'} ago"
