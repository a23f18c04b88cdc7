"""Puts the parts of a window together again: nothing said twice, and within the token budget.

The segments of a model's answer first get their place, so that together they cover every message that it was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_pipeline.observations.model.answer import ParsedAnswer, ParsedSegment
from memory_pipeline.observations.types import Fact, Segment
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.relation import WRITTEN_TWICE_BY_OBSERVER, is_same
from memory_pipeline.text.tokens import estimate

NO_SEGMENT = ParsedSegment(None, None, None, None, ())


def covering(answer: ParsedAnswer, whole: range) -> list[tuple[ParsedSegment, range]]:
    """The segments in order, each with the positions of its messages; at least one.

    One begins where the model says, else with the first message that its facts name, else after the last message that
    the one before it names. It goes on to where the next begins. A segment that would be left without a message gives
    its facts to the one before it.
    """
    placed: list[tuple[int, ParsedSegment]] = []
    for segment in answer.segments or (NO_SEGMENT,):
        before = placed[-1] if placed else (whole.start, NO_SEGMENT)
        placed.append((_start(segment, before, whole), segment))
    placed.sort(key=lambda place: place[0])
    starts: list[tuple[int, ParsedSegment]] = []
    for start, segment in placed:
        if starts and start == starts[-1][0]:
            starts[-1] = (start, _joined(starts[-1][1], segment))
        else:
            starts.append((start, segment))
    starts[0] = (whole.start, starts[0][1])
    ends = [*(start for start, _ in starts[1:]), whole.stop]
    return [(segment, range(start, end)) for (start, segment), end in zip(starts, ends, strict=True)]


def _start(segment: ParsedSegment, before: tuple[int, ParsedSegment], whole: range) -> int:
    """Position of its first message; where it names none that was shown, of that after the segment before it."""
    start, previous = before
    numbers = [segment.first, *sorted(ref for fact in segment.facts for ref in fact.refs)]
    shown = (number - 1 for number in numbers if number is not None and number - 1 in whole)
    after = previous.last if previous.last is not None and previous.last in whole else start
    return next(shown, max(start, after))


def _joined(one: ParsedSegment, other: ParsedSegment) -> ParsedSegment:
    reported = " ".join(filter(None, (one.narrative, other.narrative))) or None
    return ParsedSegment(one.title or other.title, reported, one.first, other.last, (*one.facts, *other.facts))


SLACK = 1.5
"""How far facts may pass the room before some are dropped: a model counts tokens badly."""


def without_repeats(segments: Iterable[Segment], earlier: Iterable[Fact]) -> list[Segment]:
    """The segments without facts that say nothing, or stand in an earlier one or in `earlier`; the first stays."""
    known = [fact.text for fact in earlier]
    found = []
    for segment in segments:
        facts = []
        for fact in segment.facts:
            if fact.text and not any(is_same(fact.text, x, WRITTEN_TWICE_BY_OBSERVER) for x in known):
                facts.append(fact)
                known.append(fact.text)
        found.append(replace(segment, facts=tuple(facts)))
    return found


def trimmed(segments: Sequence[Segment], token_budget: int) -> list[Segment]:
    """The segments with as many facts as fit into `SLACK` times the room: lowest priority goes first, then the last.

    One is kept however long it is, or a short window would be lost.
    """
    places = [(s, f) for s, segment in enumerate(segments) for f in range(len(segment.facts))]
    places.sort(key=lambda place: RANK[segments[place[0]].facts[place[1]].priority])  # stable: first said, first kept
    left, kept = SLACK * token_budget, set[tuple[int, int]]()
    for s, f in places:
        left -= estimate(segments[s].facts[f].text)
        if left < 0 and kept:
            break
        kept.add((s, f))
    return [
        replace(segment, facts=tuple(fact for f, fact in enumerate(segment.facts) if (s, f) in kept))
        for s, segment in enumerate(segments)
    ]
