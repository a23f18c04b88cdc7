"""Gives the segments of a model's answer their place, so that together they cover every message that it was shown."""

from __future__ import annotations

from memory_pipeline.observations.parsing.answer import ParsedAnswer, ParsedSegment

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
    told = " ".join(filter(None, (one.narrative, other.narrative))) or None
    return ParsedSegment(one.title or other.title, told, one.first, other.last, (*one.facts, *other.facts))
