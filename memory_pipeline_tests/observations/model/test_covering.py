"""Segments of an answer get the messages that they are about, and every message gets a segment."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.observations.model.answer import ParsedAnswer, ParsedSegment, covering
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.talking import parsed


def topic(title: str, first: int | None = None, last: int | None = None, *refs: int) -> ParsedSegment:
    """A segment with a fact for each of these messages."""
    facts = tuple(parsed(f"{title} {ref}", refs=[ref]) for ref in refs)
    return ParsedSegment(title, f"About {title}.", first, last, facts)


def places(whole: range, *segments: ParsedSegment) -> list[tuple[str | None, int, int]]:
    """Title, first and last number of each."""
    found = covering(ParsedAnswer(segments, parsed=True), whole)
    return [(segment.title, at.start + 1, at.stop) for segment, at in found]


WHOLE = range(10)


@each(
    ("segments", "expected"),
    [
        ([topic("a", 1, 4), topic("b", 5, 10)], [("a", 1, 4), ("b", 5, 10)]),
        ([topic("a", 1, 10)], [("a", 1, 10)]),
        ([topic("a", 3, 4), topic("b", 7, 8)], [("a", 1, 6), ("b", 7, 10)]),  # gaps
        ([topic("a", 1, 7), topic("b", 5, 10)], [("a", 1, 4), ("b", 5, 10)]),  # overlaps
        ([topic("b", 5, 10), topic("a", 1, 4)], [("a", 1, 4), ("b", 5, 10)]),  # another order
        ([topic("a", 1, 4), topic("b", 99, 120)], [("a", 1, 4), ("b", 5, 10)]),  # numbers that were not shown
        ([topic("a", 1), topic("b", None, None, 8, 6)], [("a", 1, 5), ("b", 6, 10)]),  # the first that its facts name
        ([topic("a", 1), topic("b", 42, None, 6)], [("a", 1, 5), ("b", 6, 10)]),
        ([topic("a", 1, 4), topic("b")], [("a", 1, 4), ("b", 5, 10)]),  # after the one before it
        ([topic("a", None, 4), topic("b", None, 7), topic("c")], [("a", 1, 4), ("b", 5, 7), ("c", 8, 10)]),
        ([topic("a", 1, 10), topic("b")], [("a", 1, 10)]),
        ([topic("a"), topic("b")], [("a", 1, 10)]),  # nothing is known of where they part
        ([topic("a", 0, 4), topic("b", -3)], [("a", 1, 4), ("b", 5, 10)]),
    ],
)
def test_where_segments_stand(segments: list[ParsedSegment], expected: list[tuple[str, int, int]]) -> None:
    assert places(WHOLE, *segments) == expected


def test_an_answer_without_segments_has_an_empty_one() -> None:
    ((segment, at),) = covering(ParsedAnswer(), WHOLE)
    assert (segment.title, segment.facts, at) == (None, (), WHOLE)


def test_numbers_are_those_of_the_window_also_in_a_later_part() -> None:
    assert places(range(20, 30), topic("a", 21, 24), topic("b", 25, 30)) == [("a", 21, 24), ("b", 25, 30)]
    assert places(range(20, 30), topic("a", 1, 4), topic("b", 25, 30)) == [("a", 21, 24), ("b", 25, 30)]


def test_two_that_begin_together_are_one() -> None:
    found = covering(ParsedAnswer((topic("a", 1, 3, 2), topic("b", 1, 9, 4)), parsed=True), WHOLE)
    ((segment, at),) = found
    assert (segment.title, segment.narrative, at) == ("a", "About a. About b.", WHOLE)
    assert [fact.text for fact in segment.facts] == ["a 2", "b 4"]


NUMBER = st.none() | st.integers(-2, 45)
SEGMENT = st.builds(
    lambda title, first, last, refs: topic(title, first, last, *refs),
    st.sampled_from("abc"),
    NUMBER,
    NUMBER,
    st.lists(st.integers(-2, 45), max_size=3),
)


@given(st.lists(SEGMENT, max_size=8), st.integers(0, 30), st.integers(1, 12))
def test_every_message_is_in_one_segment_and_no_fact_is_lost(
    segments: list[ParsedSegment], start: int, length: int
) -> None:
    whole = range(start, start + length)
    found = covering(ParsedAnswer(tuple(segments), parsed=True), whole)
    assert [i for _, at in found for i in at] == list(whole)
    assert all(len(at) for _, at in found)
    texts = sorted(fact.text for segment in segments for fact in segment.facts)
    assert sorted(fact.text for segment, _ in found for fact in segment.facts) == texts
