"""Where vectors that can be written by hand turn to another topic."""

import random
from math import cos, inf, nan, sin

from memory_pipeline.observations.quotes.segmentation import Vector, deep_places, topic_shifts
from memory_pipeline_tests.cases import each

QUEUE, STYLE, BILLS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def noisy(topic: Vector, count: int, seed: int) -> list[Vector]:
    """Messages around one topic, none like another."""
    numbers = random.Random(seed)
    return [[x + numbers.uniform(-0.2, 0.2) for x in topic] for _ in range(count)]


def test_another_direction_is_another_topic() -> None:
    assert topic_shifts([QUEUE] * 6 + [STYLE] * 5 + [BILLS] * 4) == [6, 11]


def test_one_message_about_something_else_is_no_topic() -> None:
    """A digression is shallower than a change that lasts."""
    assert topic_shifts([QUEUE] * 6 + [STYLE] + [QUEUE] * 6 + [BILLS] * 6) == [13]


@each("vectors", [[], [QUEUE], [None], [None] * 5, [None, QUEUE, None], [QUEUE, STYLE]])
def test_too_little_to_compare_shifts_nowhere(vectors: list[Vector | None]) -> None:
    """Two messages are one place, which nothing is deeper than."""
    assert topic_shifts(vectors) == []


@each("count", [2, 3, 50])
def test_one_thing_said_again_and_again_shifts_nowhere(count: int) -> None:
    """Noise of the arithmetic is no topic."""
    for angle in (0.1, 0.7, 1.3):
        assert topic_shifts([[cos(angle), sin(angle), 1 / 3]] * count) == []


def test_messages_without_words_are_passed_over() -> None:
    """Positions are those of all messages, and a shift is where somebody speaks."""
    assert topic_shifts([None, *[QUEUE] * 5, None, None, *[STYLE] * 5, None]) == [8]


@each("nowhere", [(nan, 0.0, 0.0), (nan,) * 3, (inf, 0.0, 0.0), (0.0,) * 3])
def test_a_vector_that_points_nowhere_is_passed_over(nowhere: Vector) -> None:
    assert topic_shifts([nowhere, *[QUEUE] * 5, nowhere, *[STYLE] * 5, nowhere]) == [7]
    assert topic_shifts([nowhere] * 4) == []


def test_opposite_topics_may_cancel_out() -> None:
    """What was said before sums up to nothing, which is like nothing."""
    assert topic_shifts([(1.0, 0.0), (-1.0, 0.0), (1.0, 0.0)], fade=1.0, clear=9.0) == []


@each(
    ("likeness", "clear", "deep"),
    [
        ([], 0.0, []),
        ([0.2], 0.0, []),
        ([0.9, 0.1, 0.9], 1.0, [1]),
        # what lies between two valleys is a peak, though there are higher ones
        ([0.9, 0.6, 0.7, 0.6, 0.9], 0.0, [1, 3]),
        # the way up goes on over what is level: 0.3 lies below 0.9 twice, and deeper than 0.4
        ([0.9, 0.7, 0.7, 0.3, 0.7, 0.7, 0.9, 0.4, 0.9], 1.8, [3]),
        # and it ends where it goes down: 0.3 lies below 0.5 and 0.4
        ([0.9, 0.1, 0.5, 0.3, 0.4, 0.1, 0.9], 0.5, [1, 5]),
        # at an end there is a peak on one side only
        ([0.9, 0.8, 0.7, 0.6], 1.0, [3]),
        ([0.4, 0.4, 0.4], 0.0, []),
    ],
)
def test_depth_is_measured_from_the_peaks_on_both_sides(likeness: list[float], clear: float, deep: list[int]) -> None:
    assert deep_places(likeness, clear) == deep
