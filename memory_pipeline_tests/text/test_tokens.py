"""Token counts are estimates, but dependable ones: never 0 for a word, never less for more text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each


@each(
    ("characters", "prose", "tool"),
    [
        (0, 0, 0),
        (1, 1, 1),  # rounded up
        (3, 1, 1),
        (4, 2, 2),
        (7, 2, 3),  # tool text has more tokens
        (35, 10, 12),
        (3500, 1000, 1167),
    ],
)
def test_estimates(characters: int, prose: int, tool: int) -> None:
    assert estimate("x" * characters) == prose
    assert estimate("x" * characters, tool=True) == tool


@given(st.text(), st.text(min_size=1))
def test_more_text_never_has_fewer_tokens(text: str, more: str) -> None:
    assert estimate(text + more) >= max(estimate(text), 1)
    assert estimate(text, tool=True) >= estimate(text)


COUNTED = json.loads(Path(__file__).with_name("counted.json").read_text("utf-8"))


@each("counted", COUNTED, ids=lambda counted: str(counted["kind"]))
def test_the_estimate_is_within_a_fifth_of_a_tokenizer(counted: dict[str, str]) -> None:
    """That is the one that Anthropic published; `counted.json` has what it and o200k_base count."""
    assert estimate(counted["text"]) == pytest.approx(int(counted["claude"]), rel=0.2)


def test_tool_text_in_chinese_has_no_more_tokens_than_prose() -> None:
    assert estimate("数据库", tool=True) == estimate("数据库") == 3
