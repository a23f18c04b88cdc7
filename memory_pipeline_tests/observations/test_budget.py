"""How much may be written down about a window."""

import pytest

from memory_pipeline.observations.budget import MIN_BUDGET, SHORT_SHARE, token_budget
from memory_pipeline_tests.observations.talking import talk


def said(tokens: int, role: str = "user") -> str:
    return f"{role}: " + "x" * int(tokens * 3.5)


@pytest.mark.parametrize(
    ("tokens", "tenth"),
    [
        (0, 0),
        (100, 40),  # of a short window up to SHORT_SHARE of it
        (624, 249),
        (626, 250),  # up to MIN_BUDGET
        (2500, 250),
        (3000, 300),  # from there on a tenth
        (100_000, 10_000),
    ],
)
def test_a_tenth_of_what_was_said_and_more_of_a_short_window(tokens: int, tenth: int) -> None:
    assert token_budget(talk(said(tokens)), 0.1) == tenth
    assert tenth <= max(MIN_BUDGET, 0.1 * tokens, SHORT_SHARE * tokens)


def test_only_what_people_and_the_model_said_counts() -> None:
    window = talk(said(3000), said(3000, "assistant"), said(50_000, "tool"), said(50_000, "injected"))
    assert token_budget(window, 0.1) == 600
    assert token_budget(window, 0.5) == 3000


def test_a_share_of_everything_is_not_cut_and_none_leaves_the_least() -> None:
    assert token_budget(talk(said(100)), 1.0) == 100
    assert token_budget(talk(said(10_000)), 0.0) == MIN_BUDGET
    assert token_budget(talk(said(10_000)), 0.0, least=0) == 0
    assert token_budget([], 0.1) == 0
