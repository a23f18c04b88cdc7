"""A line of which a number has changed is over."""

import pytest

from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.stale import stale_lines
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.rows import day_after

LINE = Rule("MEMORY.md", "A kiln holds at most 8 trays at once.", day_after(-20))


def stale(*texts: str) -> list[str]:
    return [rule.text for rule in stale_lines([event(text, f"s{number}") for number, text in enumerate(texts)], [LINE])]


@pytest.mark.parametrize(
    "texts",
    [
        ("at most 6 trays since the new shelves, formerly 8", "the limit of trays came down from 8 to 6"),
        ("6 trays at the most; 8 trays was the old number", "from 8 trays we went to 6"),
        ("höchstens 6 Trays, früher waren es 8 Trays", "6 trays now, it used to be 8"),
    ],
)
def test_a_number_that_was_said_to_be_another_before_is_over(texts: tuple[str, str]) -> None:
    assert stale(*texts) == [LINE.text]
    assert stale(texts[0]) == []  # said in one session it may be of one kiln


@pytest.mark.parametrize(
    "text",
    [
        "load 6 of the 8 trays",
        "why are there 6 trays and not 8?",
        "the 8 trays were full, so I took 2 more kilns",
        "from 6 trays we went to 8",
        "of the old 8 plates 6 are broken",
    ],
)
def test_two_numbers_alone_say_nothing_of_it(text: str) -> None:
    assert stale(text, f"{text} ") == []
