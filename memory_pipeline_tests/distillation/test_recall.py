"""The same questions before and after: what cannot be found any more is a loss."""

from memory_pipeline.distillation.recall import ASKED_WORDS, question_about, recall
from memory_pipeline.text.similarity import content_words

FACTS = {
    "npm": "Never use npm here because the lockfile belongs to pnpm.",
    "leipzig": "The depot in Leipzig answers slowly on Fridays.",
    "queue": "The queue overflowed since retries had no limit.",
}


def as_they_are(*left_out: str) -> list[tuple[str, list[str]]]:
    return [(text, [i]) for i, text in FACTS.items() if i not in left_out]


def test_the_facts_themselves_lose_nothing() -> None:
    found = recall(FACTS, FACTS, as_they_are())
    assert (found.questions, found.before, found.after, found.loss) == (3, 1.0, 1.0, 0.0)


def test_a_fact_that_no_line_was_made_from_is_lost() -> None:
    found = recall(FACTS, FACTS, as_they_are("leipzig"))
    assert round(found.loss, 3) == round(1 / 3, 3)
    assert f"{found}" == "of 3 questions 100% found their fact before and 67% after"


def test_a_line_without_the_words_that_are_asked_is_not_found() -> None:
    lines = [(text, [i]) if i != "npm" else ("something else", [i]) for i, text in FACTS.items()]
    assert recall(FACTS, ["npm"], lines).loss == 1.0


def test_a_line_may_come_from_several_facts() -> None:
    assert recall(FACTS, FACTS, [(" ".join(FACTS.values()), list(FACTS))]).loss == 0.0


def test_what_the_right_line_is_crowded_out_by_counts() -> None:
    crowd = [("Never use npm here because the lockfile belongs to pnpm", ["other"])] * 10
    assert recall(FACTS, ["npm"], [*crowd, ("pnpm", ["npm"])]).loss == 1.0


def test_without_a_question_there_is_nothing_to_lose() -> None:
    assert recall(FACTS, [], []).loss == 0.0
    assert recall({}, [], []).questions == 0


def test_a_question_has_some_of_the_facts_words_and_always_the_same_ones() -> None:
    asked = question_about("npm", FACTS["npm"])
    assert len(asked.split()) == ASKED_WORDS
    assert set(asked.split()) < content_words(FACTS["npm"])
    assert asked == question_about("npm", FACTS["npm"])
    assert {question_about(f"{n}", FACTS["npm"]) for n in range(9)} != {asked}
