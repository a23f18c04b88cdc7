"""Merging of the parts of a window: repeated facts are removed, and the token budget is applied.

First, segments of an answer are assigned ranges of messages that together cover every message shown to the model.
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

    A segment begins where the model says, else at the first message that its facts name, else after the last message
    that the previous segment names, and ends where the next begins. The facts of a segment without messages move to the
    previous one.
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
    """Position of the first message of the segment; if it names no message that was shown, the one after the previous
    segment."""
    start, previous = before
    numbers = [segment.first, *sorted(ref for fact in segment.facts for ref in fact.refs)]
    shown = (number - 1 for number in numbers if number is not None and number - 1 in whole)
    after = previous.last if previous.last is not None and previous.last in whole else start
    return next(shown, max(start, after))


def _joined(one: ParsedSegment, other: ParsedSegment) -> ParsedSegment:
    reported = " ".join(filter(None, (one.narrative, other.narrative))) or None
    return ParsedSegment(one.title or other.title, reported, one.first, other.last, (*one.facts, *other.facts))


SLACK = 1.5
"""Factor by which facts may exceed the token budget before some are dropped: models are bad at counting tokens."""


def without_repeats(segments: Iterable[Segment], earlier: Iterable[Fact]) -> list[Segment]:
    """The segments without empty facts, and without facts that repeat `earlier` or a previous segment."""
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
    """The segments with as many facts as fit into `SLACK` times the budget: the lowest priority is dropped first, then
    the last.

    One fact is always kept, or a short window would be lost.
    """
    facts = [fact for segment in segments for fact in segment.facts]
    left, kept = SLACK * token_budget, set[int]()
    for fact in sorted(facts, key=lambda fact: RANK[fact.priority]):  # stable: first said, first kept
        left -= estimate(fact.text)
        if left < 0 and kept:
            break
        kept.add(id(fact))
    return [replace(segment, facts=tuple(f for f in segment.facts if id(f) in kept)) for segment in segments]
