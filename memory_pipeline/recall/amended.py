"""The order of hits and sessions where a later one says that it amends what an earlier one settled.

A question is mostly put in the words of the older state, so that by words and meaning the older session is the better
hit. Where a user said in the later one that they amend something ("Amendment to the retry policy: ..."), it comes
first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from memory_pipeline.text.languages.cues import cues_of, english
from memory_pipeline.text.languages.identify import is_plainly_english
from memory_pipeline.text.terms import query_terms

Item = TypeVar("Item")
NEAR = 0.55
"""Share of the score of the older one that the newer one needs: both are about what was asked. The three amended tasks
of sde-bench's visible half have .60 to .99, other sessions that amend something mostly less (`benchmarks/sde.py`)."""


class Hit(Protocol):
    """The parts of a hit that the order needs."""

    @property
    def session_id(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def timestamp(self) -> str: ...


def amending(hits: Sequence[Hit], asked: Sequence[str]) -> dict[str, str]:
    """The sessions in which a user says that they amend something that the question names, each with the time at which
    they said it; ``asked`` are the terms of the question."""
    found: dict[str, str] = {}
    terms = set(asked)
    for hit in hits:
        cues = english() if is_plainly_english(hit.text) else cues_of(hit.text)
        announces = hit.role == "user" and hit.timestamp and cues.amends.search(hit.text)
        if announces and not terms.isdisjoint(query_terms(hit.text)):
            found.setdefault(hit.session_id, hit.timestamp)
    return found


def newest_first(
    ranked: Sequence[Item],
    amended_at: dict[str, str],
    session: Callable[[Item], str],
    score: Callable[[Item], float],
    said_at: Callable[[Item], str],
) -> list[Item]:
    """The items, best first, with the best of each amending session before those of earlier sessions that are not
    nearly twice as good."""
    order = list(ranked)
    for name, at in amended_at.items():
        place = next((i for i, item in enumerate(order) if session(item) == name), None)
        if place is None:
            continue
        newer = order[place]
        before = next(
            (
                i
                for i, item in enumerate(order[:place])
                if session(item) != name and said_at(item) < at and score(newer) >= NEAR * score(item)
            ),
            None,
        )
        if before is not None:
            order.insert(before, order.pop(place))
    return order
