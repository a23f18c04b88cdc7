"""How much may be written down about a window."""

from memory_pipeline.observations.model.observer import model_token_budget
from memory_pipeline.observations.quotes.observer import MIN_BUDGET, SHORT_SHARE, token_budget
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.talking import talk


def said(tokens: int, role: str = "user") -> str:
    return f"{role}: " + "x" * int(tokens * 3.5)


@each(
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


@each(
    ("tokens", "tools", "budget"),
    [
        (2_000, 0, 250),  # all is said in one message: no more than without a model
        (2_000, 99, 550),  # much is done and little said: 55 times the root of 100 messages
        (1_000, 99, 400),  # never more than `SHORT_SHARE` of what was said
        (20_000, 99, 2_000),  # much is said: a tenth of it
    ],
)
def test_a_model_may_use_more_where_much_is_done(tokens: int, tools: int, budget: int) -> None:
    assert model_token_budget(talk(said(tokens), *["tool: done"] * tools), 0.1) == budget


def test_half_the_share_is_half_of_it() -> None:
    assert model_token_budget(talk(said(2_000), *["tool: done"] * 99), 0.05) == 275
