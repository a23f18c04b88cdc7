"""The order of hits and sessions where a later one says that it amends what an earlier one settled.

A question is mostly put in the words of the older state, so that by words and meaning the older session is the better
hit. Where a user said in the later one that they amend something ("Amendment to the retry policy: ..."), it comes
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_pipeline.text.languages.cues import cues_of, english
from memory_pipeline.text.languages.identify import is_plainly_english
from memory_pipeline.text.phrases import LANGUAGES, load
from memory_pipeline.text.terms import query_terms

NEAR = 0.55
"""Share of the score of the older one that the newer one needs: both are about what was asked. The three amended tasks
of sde-bench's visible half have .60 to .99, other sessions that amend something mostly less (`benchmarks/sde.py`)."""


class Place(NamedTuple):
    """A hit, or a session, in an order with the best first."""

    session_id: str
    score: float
    said_at: str
    """ISO time; empty if it has none."""
    role: str = ""
    text: str = ""


def amending(hits: Iterable[Place], asked: Sequence[str]) -> dict[str, str]:
    """The sessions in which a user says that they amend something that the question names, each with the time at which
    they said it; ``asked`` are the terms of the question."""
    found: dict[str, str] = {}
    terms = set(asked)
    for hit in hits:
        if hit.role != "user" or not hit.said_at or terms.isdisjoint(query_terms(hit.text)):
            continue
        if _announces(hit.text):
            found.setdefault(hit.session_id, hit.said_at)
    return found


def _announces(text: str) -> bool:
    """Whether the text, in its own language, says that it amends something."""
    if is_plainly_english(text):
        return bool(english().amends.search(text))
    # of few texts the language matters, and the model that tells it takes longer than the rest of a search
    return any(load(name).amends.search(text) for name in LANGUAGES) and bool(cues_of(text).amends.search(text))


def amended_order(places: Sequence[Place], amended_at: Mapping[str, str]) -> list[int]:
    """The numbers of the places, with the best of each amending session before those of earlier sessions whose score
    is less than 1 / `NEAR` times as high."""
    order = list(range(len(places)))
    for name, at in amended_at.items():
        newer = next((number for number in order if places[number].session_id == name), None)
        if newer is None:
            continue
        ahead = order[: order.index(newer)]
        older = (n for n in ahead if places[n].said_at < at and places[newer].score >= NEAR * places[n].score)
        if (first := next(older, None)) is not None:
            order.remove(newer)
            order.insert(order.index(first), newer)
    return order
