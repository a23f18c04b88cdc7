"""Token counts are estimates, but dependable ones: never 0 for a word, never less for more text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.tokens import estimate


@pytest.mark.parametrize(
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
