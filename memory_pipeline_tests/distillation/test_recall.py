"""A high counts as kept only while a whole line says all of it: however the content is destroyed, it is a loss."""

from collections.abc import Callable

import pytest

from memory_pipeline.distillation.stage import recall
from memory_pipeline_tests.cases import each

FACTS = {
    "uv": "Always use uv, never pip install.",
    "leipzig": "The depot in Leipzig must not be asked more than twice a minute.",
    "queue": "The queue overflowed since retries had no limit.",
}


def as_they_are(*left_out: str) -> list[tuple[str, list[str]]]:
    return [(text, [i]) for i, text in FACTS.items() if i not in left_out]


def test_the_facts_themselves_lose_nothing() -> None:
    found = recall(FACTS, FACTS, as_they_are())
    assert (found.highs, found.kept, found.loss) == (3, 3, 0.0)


def test_a_high_that_no_line_was_made_from_is_lost() -> None:
    found = recall(FACTS, FACTS, as_they_are("leipzig"))
    assert round(found.loss, 3) == round(1 / 3, 3)
    assert f"{found}" == "2 of 3 high observations are still contained"


@each(
    "destroyed",
    [
        pytest.param(lambda text: " ".join(w for w in text.split() if len(w) > 4), id="short words dropped"),
        pytest.param(lambda text: text.replace("never ", "").replace("not ", "").replace("no ", ""), id="negation"),
        pytest.param(lambda text: text.replace("uv, ", "").replace("Leipzig ", "").replace("queue", ""), id="object"),
        pytest.param(lambda text: text.split(",")[0][:30], id="cut off"),
        pytest.param(lambda text: text.split(",")[-1].strip().rsplit(" ", 1)[0], id="a piece of it, word for word"),
        pytest.param(lambda text: text.lower(), id="another letter"),
        pytest.param(lambda text: "something else", id="other words"),
    ],
)
def test_a_line_that_lost_anything_says_nothing(destroyed: Callable[[str], str]) -> None:
    """As it once was: the rare words stay and are found, and the rule says its opposite."""
    lines = [(destroyed(text), [i]) for i, text in FACTS.items()]
    assert recall(FACTS, FACTS, lines).loss == 1.0


def test_a_line_may_say_several_highs_that_are_the_same() -> None:
    facts = {"old": "Use uv, never pip.", "new": "Here we use uv, never pip."}
    assert recall(facts, facts, [(facts["new"], ["new", "old"])]).loss == 0.0
    assert recall(facts, facts, [(facts["old"], ["new", "old"])]).loss == 0.5  # "here" is lost
    assert recall(facts, facts, [(facts["new"], ["new"])]).loss == 0.5  # nothing leads back to the old one


def test_what_is_whole_but_said_of_another_fact_does_not_count() -> None:
    assert recall(FACTS, ["uv"], [(FACTS["queue"], ["uv"]), (FACTS["uv"], ["queue"])]).loss == 1.0


def test_without_highs_there_is_nothing_to_lose() -> None:
    assert recall(FACTS, [], []).loss == 0.0
    assert recall({}, [], []).highs == 0
