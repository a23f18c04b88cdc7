"""Reordering of hits and sessions if a later one says that it amends an earlier one.

A question usually has the words of the older state, so the older session is the better hit by words and meaning. If a
user said in a later one that they amend something ("Amendment to the retry policy: ..."), that session comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_pipeline.text.languages.cues import cues_of, english
from memory_pipeline.text.languages.identify import is_plainly_english
from memory_pipeline.text.phrases import LANGUAGES, SPACED_LANGUAGES, load
from memory_pipeline.text.similarity import CJK
from memory_pipeline.text.terms import query_terms

NEAR = 0.55
"""Minimum score of the newer one as a share of that of the older one, so that both are about the question. The three
amended tasks of sde-bench's visible half have .60 to .99, other sessions that amend something mostly less
(`benchmarks/sde.py`)."""


class Place(NamedTuple):
    """A hit or a session of a list, best first."""

    session_id: str
    score: float
    said_at: str
    """Time in ISO format, or empty."""
    role: str = ""
    text: str = ""


def amending(hits: Iterable[Place], asked: Sequence[str]) -> dict[str, str]:
    """The sessions in which a user amends something that the question names, each with the time of that message;
    ``asked`` are the terms of the question."""
    found: dict[str, str] = {}
    terms = set(asked)
    for hit in hits:
        announces = hit.role == "user" and hit.said_at and _announces(hit.text)
        if announces and not terms.isdisjoint(query_terms(hit.text)):
            found.setdefault(hit.session_id, hit.said_at)
    return found


def _announces(text: str) -> bool:
    """Whether the text says, in its language, that it amends something."""
    if is_plainly_english(text):
        return bool(english().amends.search(text))
    # the language is identified last: few texts need it, and the model takes longer than the rest of a search
    names = LANGUAGES if CJK.search(text) else SPACED_LANGUAGES
    return any(load(name).amends.search(text) for name in names) and bool(cues_of(text).amends.search(text))


def amended_order(places: Sequence[Place], amended_at: Mapping[str, str]) -> list[int]:
    """The indices of the places, with the best of each amending session moved before earlier sessions whose score is
    less than 1 / `NEAR` times as high."""
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
