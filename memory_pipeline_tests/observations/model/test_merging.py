"""The parts of a window together: nothing twice, and the most important that there is room for."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.observations.model.observer import SLACK, trimmed, without_repeats
from memory_pipeline.observations.types import Fact, Segment
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.talking import fact


def segment(*facts: Fact) -> Segment:
    return Segment("What it was about.", "m1", "m9", facts)


def texts(segments: list[Segment]) -> list[list[str]]:
    return [[f.text for f in s.facts] for s in segments]


@each(
    ("one", "other", "is_same"),
    [
        ("Never deploy on a Friday.", "Never deploy on a Friday.", True),
        ("Never deploy on a Friday.", "never deploy on the Friday", True),
        ("Never deploy on a Friday.", "Never deploy on a Monday.", False),
        (
            "The build uses Python 3.11 and uv everywhere now.",
            "The build uses Python 3.12 and uv everywhere now.",
            False,
        ),
        (  # nearly all words are the same, and it is another fact
            "The build of the worker image on the main branch now runs with Python 3.11 under uv.",
            "The build of the worker image on the main branch now runs with Python 3.12 under uv.",
            False,
        ),
        ("Moved the code to src/a.py for the worker.", "Moved the code to src/b.py for the worker.", False),
        ("…", "…", True),  # no words at all
        ("…", "!", False),
    ],
)
def test_what_says_the_same(one: str, other: str, is_same: bool) -> None:
    kept = without_repeats([segment(fact(one), fact(other))], [])
    assert texts(kept) == [[one] if is_same else [one, other]]


def test_the_first_one_stays_whichever_segment_or_part_it_is_in() -> None:
    first, again = fact("Never deploy on a Friday.", "low"), fact("Never deploy on a Friday!", "high")
    kept = without_repeats([segment(first), segment(again, fact("Use uv."))], [])
    assert texts(kept) == [["Never deploy on a Friday."], ["Use uv."]]
    assert texts(without_repeats([segment(again)], [first])) == [[]]


def test_a_fact_that_was_nothing_but_a_time_is_dropped() -> None:
    assert texts(without_repeats([segment(fact(""), fact("Use uv."))], [])) == [["Use uv."]]


def of_tokens(tokens: int, priority: str, mark: str) -> Fact:
    return fact(mark * int(tokens * 3.5), priority)


def kept_of(segments: list[Segment], room: int) -> list[str]:
    return [f"{f.text[0]}" for s in trimmed(segments, room) for f in s.facts]


@each(
    ("room", "kept"),
    [
        (100, "abcd"),
        (80, "abcd"),  # 120 with the slack
        (79, "bcd"),  # the low one goes first
        (60, "bcd"),
        (59, "bc"),  # then the later of two that are medium
        (20, "c"),
        (19, "c"),  # one stays however long it is
        (0, "c"),
    ],
)
def test_the_least_important_goes_first_then_the_last(room: int, kept: str) -> None:
    one = segment(of_tokens(30, "low", "a"), of_tokens(30, "medium", "b"))
    two = segment(of_tokens(30, "high", "c"), of_tokens(30, "medium", "d"))
    assert kept_of([one, two], room) == list(kept)


def test_segments_stay_without_facts() -> None:
    assert texts(trimmed([segment(), segment(fact("Use uv."))], 0)) == [[], ["Use uv."]]
    assert trimmed([], 10) == []


FACT = st.builds(of_tokens, st.integers(1, 60), st.sampled_from(["high", "medium", "low"]), st.sampled_from("abcdef"))


@given(st.lists(st.lists(FACT, max_size=5), max_size=4), st.integers(0, 150))
def test_what_is_kept_fits_and_is_not_less_important_than_what_is_not(facts: list[list[Fact]], room: int) -> None:
    segments = [segment(*some) for some in facts]
    kept = [f for s in trimmed(segments, room) for f in s.facts]
    everything = [f for some in facts for f in some]
    assert sum(estimate(f.text) for f in kept) <= SLACK * room or len(kept) == 1
    assert bool(kept) is bool(everything)
    dropped = list(everything)
    for f in kept:
        dropped.remove(f)
    assert all(RANK[f.priority] <= RANK[g.priority] for f in kept for g in dropped)


@given(st.lists(st.lists(FACT, max_size=4), max_size=4))
def test_without_repeats_the_second_time_nothing_is_left(facts: list[list[Fact]]) -> None:
    segments = [segment(*some) for some in facts]
    kept = without_repeats(segments, [])
    assert without_repeats(kept, []) == kept
    assert texts(without_repeats(segments, [f for s in kept for f in s.facts])) == [[] for _ in segments]
