"""Answers that only repeat themselves, and words of the format that are copied."""

from __future__ import annotations

import json
import re

from memory_pipeline.llm.answers.degenerate import before_repetition, copied, is_placeholder
from memory_pipeline.llm.prompts import text_of
from memory_pipeline.observations.model.answer import parse_answer
from memory_pipeline_tests.cases import each

THREE = ("The parcels api uses cursor pagination.", "Timestamps in the api are in UTC.", "Tests run with `make test`.")


def lines(numbers: range, order: int = 1) -> str:
    return "".join(f"* 🔴 rule [#{n}] {THREE[n * order % 3]}\n" for n in numbers)


def test_it_is_cut_where_three_sentences_come_again_under_other_numbers() -> None:
    answer = f"<observations>\n* 🔴 rule [#1] Never push to main on a Friday.\n{lines(range(40))}</observations>"
    read = parse_answer(answer)
    assert [fact.text for fact in read.segments[0].facts] == ["Never push to main on a Friday.", *THREE]
    assert (read.form, read.parsed) == ("degenerate", False)


def test_it_is_cut_in_json_and_in_another_order() -> None:
    facts = [{"priority": "high", "kind": "rule", "places": [n], "text": THREE[n * n % 7 % 3]} for n in range(40)]
    answer = json.dumps({"segments": [{"title": "", "narrative": "", "facts": facts}]})
    text, repeats = before_repetition(answer)
    assert repeats and len(text) < len(answer) / 3
    read = parse_answer(answer)
    assert not read.parsed and {fact.text for fact in read.segments[0].facts} <= set(THREE)


@each(
    "answer",
    [
        "",
        "\n".join(THREE),
        lines(range(3)) + lines(range(2)),
        lines(range(9))
        + "".join(f"* 🔴 rule [#{n}] The module {name} must stay as it is.\n" for n, name in enumerate("abcd")),
        '"priority": "high", "kind": "rule",\n' * 40,
    ],
)
def test_an_answer_that_goes_on_or_is_brief_is_left(answer: str) -> None:
    assert before_repetition(answer) == (answer, False)


@each(
    ("text", "expected"),
    [
        ("up to 8 words", True),
        ("“Up to 8 words”", True),
        ("The fact.", True),
        ("What was wanted, what was done, how it ended.", True),
        ("In shop-api the tests run with `make test-db`, never with `pytest` alone.", True),
        ("A title has up to 8 words.", False),
        ("The fact that ids can be probed is why 404 is returned.", False),
        ("", False),
    ],
)
def test_a_placeholder_is_known_by_its_beginning(text: str, expected: bool) -> None:
    assert is_placeholder(text) is expected


def test_the_formats_of_the_prompts_are_known() -> None:
    """Whoever words them anew has to name the new places."""
    for name, least in (("format_tags", 5), ("format_json", 5), ("format_small_tags", 3), ("format_small_json", 1)):
        assert copied(text_of(name)) >= least, name
    (form,) = re.findall(r"(?s)<observations>\n.*?</observations>", text_of("format_small_tags"))[:1]
    read = parse_answer(form)
    assert not any(segment.facts or segment.title or segment.narrative for segment in read.segments)
