"""Puts the parts of a window together again: nothing said twice, and no more than there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_pipeline.observations.language_model.specifics import specifics
from memory_pipeline.observations.observer import Fact, Segment
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.similarity import content_words, overlap
from memory_pipeline.text.tokens import estimate

SAME = 0.9
"""Shared words per word of both from which two facts with the same names and numbers are one."""
SLACK = 1.5
"""How far facts may pass the room before some are dropped: a model counts tokens badly."""


def without_repeats(segments: Iterable[Segment], earlier: Iterable[Fact]) -> list[Segment]:
    """The segments without facts that say nothing, or stand in an earlier one or in `earlier`; the first stays."""
    known = [_signature(fact) for fact in earlier]
    found = []
    for segment in segments:
        facts = []
        for fact in segment.facts:
            signature = _signature(fact)
            if fact.text and not any(_is_same(signature, other) for other in known):
                facts.append(fact)
                known.append(signature)
        found.append(replace(segment, facts=tuple(facts)))
    return found


def trimmed(segments: Sequence[Segment], room: int) -> list[Segment]:
    """The segments with as many facts as fit into `SLACK` times the room: lowest priority goes first, then the last.

    One is kept however long it is, or a short window would be lost.
    """
    places = [(s, f) for s, segment in enumerate(segments) for f in range(len(segment.facts))]
    places.sort(key=lambda place: RANK[segments[place[0]].facts[place[1]].priority])  # stable: first said, first kept
    left, kept = SLACK * room, set[tuple[int, int]]()
    for s, f in places:
        left -= estimate(segments[s].facts[f].text)
        if left < 0 and kept:
            break
        kept.add((s, f))
    return [
        replace(segment, facts=tuple(fact for f, fact in enumerate(segment.facts) if (s, f) in kept))
        for s, segment in enumerate(segments)
    ]


def _signature(fact: Fact) -> tuple[frozenset[str], frozenset[str]]:
    return content_words(fact.text) or frozenset({fact.text}), frozenset(specifics(fact.text))


def _is_same(one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]) -> bool:
    return one[1] == other[1] and overlap(one[0], other[0]) >= SAME
