"""Answers that a provider holds to the schema: what fits it, and what is left of what does not."""

from __future__ import annotations

import copy
import json
from typing import Any

from memory_pipeline.observations.model.answer import ParsedAnswer, parse_answer
from memory_pipeline.observations.model.facts import AnswerForm, ParsedFact, schema
from memory_pipeline.text.kinds import KINDS
from memory_pipeline.text.priorities import PRIORITIES

STEPS = ["logins were lost", "Redis has no volume", "sessions in Postgres"]
ANSWER: dict[str, Any] = {
    "segments": [
        {
            "from": 1,
            "to": 9,
            "title": "Deploying parcels",
            "narrative": "The person laid down\nwhen to deploy.",
            "facts": [
                {
                    "priority": "high",
                    "kind": "rule",
                    "time": "09:00",
                    "places": [1, 3],
                    "text": "Parcels are never deployed on a Friday.",
                    "trace": [],
                },
                {
                    "priority": "medium",
                    "kind": "decision",
                    "time": "",
                    "places": [4],
                    "text": "Sessions are kept in `**Postgres**`.",
                    "trace": STEPS,
                },
            ],
        },
        {
            "from": 10,
            "to": 12,
            "title": "The worker",
            "narrative": "It was restarted.",
            "facts": [
                {
                    "priority": "low",
                    "kind": "progress",
                    "time": "10:05",
                    "places": [12],
                    "text": "The worker runs again with 3 threads.",
                    "trace": [],
                }
            ],
        },
    ],
    "current_task": "Move to uv",
    "suggested_response": "Ask about CI",
    "used": ["o2", "o5"],
    "ended": ["o1"],
}
TAGGED = """<observations>
<segment from="#1" to="#9">
<title>Deploying parcels</title>
<narrative>The person laid down when to deploy.</narrative>
<facts>
* 🔴 rule (09:00) [#1 #3] Parcels are never deployed on a Friday.
* 🟡 decision [#4] Sessions are kept in `**Postgres**`.
  trace: logins were lost -> Redis has no volume -> sessions in Postgres
</facts>
</segment>
<segment from="#10" to="#12">
<title>The worker</title>
<narrative>It was restarted.</narrative>
<facts>
* 🟢 progress (10:05) [#12] The worker runs again with 3 threads.
</facts>
</segment>
</observations>
<current-task>Move to uv</current-task>
<suggested-response>Ask about CI</suggested-response>
<used>o2 o5</used>
<ended>o1</ended>
"""


def parsed(answer: Any) -> ParsedAnswer:
    return parse_answer(json.dumps(answer, ensure_ascii=False))


def facts(answer: ParsedAnswer) -> list[ParsedFact]:
    return [fact for segment in answer.segments for fact in segment.facts]


def changed(fact: int = 0, **fields: Any) -> dict[str, Any]:
    """The answer with fields of a fact of its first segment changed; None leaves one out."""
    answer = copy.deepcopy(ANSWER)
    target = answer["segments"][0]["facts"][fact]
    target |= fields
    answer["segments"][0]["facts"][fact] = {name: value for name, value in target.items() if value is not None}
    return answer


def test_the_same_content_is_the_same_answer_in_json_and_in_tags() -> None:
    AnswerForm.model_validate(ANSWER)
    assert parsed(ANSWER) == parse_answer(TAGGED)
    assert parsed(ANSWER).parsed and len(facts(parsed(ANSWER))) == 3


def test_what_stands_around_it_is_left_out() -> None:
    wrapped = ("```json\n%s\n```", "Here it is:\n%s\nThat is all.", "<think>\nLet me see.\n</think>\n%s")
    read = {form: parse_answer(form % json.dumps(ANSWER, indent=1)) for form in wrapped}
    assert {form for form, answer in read.items() if answer != parse_answer(TAGGED)} == set()


def test_the_schema_has_the_words_of_the_format_in_the_order_in_which_they_are_to_be_written() -> None:
    fact = json.loads(schema())["$defs"]["FactForm"]
    assert list(fact["properties"]) == ["priority", "kind", "time", "places", "text", "trace"] == fact["required"]
    assert tuple(fact["properties"]["kind"]["enum"]) == KINDS
    assert tuple(fact["properties"]["priority"]["enum"]) == PRIORITIES


def test_what_looks_like_a_mark_in_a_text_stays_there() -> None:
    """In a line of tags these would be taken for marks."""
    text = "Question: (10:30) is when the deploy begins (see #12)"
    assert facts(parsed(changed(text=text)))[0].text == text


def test_nothing_worth_keeping() -> None:
    answer = parsed({"segments": [], "current_task": "Move to uv"})
    assert (answer.form, answer.parsed, answer.segments, answer.current_task) == ("nothing", True, (), "Move to uv")
    empty = parsed({"segments": [{"from": 1, "to": 3, "title": "", "narrative": "", "facts": []}]})
    assert (empty.form, empty.parsed, empty.segments) == ("nothing", True, ())


def test_a_refusal_in_it_is_one() -> None:
    part = {"from": 1, "to": 3, "title": "Refused", "narrative": "I'm sorry, I can't help with that.", "facts": []}
    assert parsed({"segments": [part]}).form == "refusal"


def test_the_words_of_the_instructions_are_no_facts() -> None:
    assert len(facts(parsed(changed(text="the fact")))) == 2
    answer = ANSWER | {"current_task": "what the person is working on at the end, one line"}
    assert parsed(answer).current_task is None


SLIPS: list[tuple[dict[str, Any], str | None, tuple[int, ...]]] = [
    ({"places": ["1", "3"]}, "09:00", (1, 3)),
    ({"places": ["#1", "#3"]}, "09:00", (1, 3)),
    ({"places": "1, 3"}, "09:00", (1, 3)),
    ({"places": 1}, "09:00", (1,)),
    ({"places": [1, 3, 1]}, "09:00", (1, 3)),
    ({"places": []}, "09:00", ()),
    ({"time": "9:00"}, "09:00", (1, 3)),
    ({"time": "2026-03-05 09:00"}, "09:00", (1, 3)),
    ({"time": None}, None, (1, 3)),
    ({"time": "99:99"}, None, (1, 3)),
    ({"time": "early in session"}, None, (1, 3)),
    ({"trace": None}, "09:00", (1, 3)),
    ({"trace": ["only one step"]}, "09:00", (1, 3)),
    ({"kind": "Rule"}, "09:00", (1, 3)),
    ({"priority": "HIGH"}, "09:00", (1, 3)),
    ({"priority": "🔴"}, "09:00", (1, 3)),
    ({"text": "🔴 rule (09:00) [#1 #3] Parcels are never deployed on a Friday."}, "09:00", (1, 3)),
    ({"more": {"of": "it"}}, "09:00", (1, 3)),
]


def test_slips_that_cost_nothing_else() -> None:
    wrong = []
    for fields, clock, refs in SLIPS:
        answer = parsed(changed(**fields))
        expected = ParsedFact("Parcels are never deployed on a Friday.", "high", "rule", clock, refs)
        others = facts(parse_answer(TAGGED))[1:]
        if (facts(answer), answer.parsed, answer.used) != ([expected, *others], True, ("o2", "o5")):
            wrong.append((fields, answer))
    assert wrong == []


def test_what_is_not_known_is_guessed_for_that_fact_alone() -> None:
    no_priority = "1 of 3 facts have no priority."
    for field, value, priority, kind, problem in (
        ("priority", None, "low", "rule", no_priority),
        ("priority", "urgent", "low", "rule", no_priority),
        ("kind", "hint", "high", "statement", None),
        ("kind", None, "high", "statement", None),
    ):
        answer = parsed(changed(**{field: value}))
        first, *others = facts(answer)
        assert (first.text, first.priority, first.kind) == ("Parcels are never deployed on a Friday.", priority, kind)
        assert others == facts(parse_answer(TAGGED))[1:]
        assert answer.problem == problem


def test_a_fact_without_words_is_left_out_alone() -> None:
    for text in (None, "", 7, ["a", "b"]):
        answer = parsed(changed(text=text))
        assert facts(answer) == facts(parse_answer(TAGGED))[1:], text
        assert answer.problem == (None if text == "" else "1 item(s) do not fit the schema."), text


def test_an_answer_that_was_cut_keeps_what_was_whole() -> None:
    """Wherever the cut is: no half of a fact, no fact lost that stood before it, and it says that it is not whole."""
    text, whole = json.dumps(ANSWER), [fact.text for fact in facts(parsed(ANSWER))]
    for at in range(0, len(text), 7):
        answer = parse_answer(text[:at])
        assert [fact.text for fact in facts(answer)] == [fact for fact in whole if json.dumps(fact) in text[:at]], at
        assert not answer.parsed, at
        if facts(answer):
            first = answer.segments[0]
            assert (first.title, first.first, first.last) == ("Deploying parcels", 1, 9), at
            assert answer.problem == "The JSON is truncated or damaged.", at
        else:
            assert answer.form in ("empty", "segments"), at  # not even as raw text


def test_of_json_that_is_damaged_in_the_middle_the_part_before_is_kept() -> None:
    answer = parse_answer(json.dumps(ANSWER).replace('"title": "The worker",', '"title": The worker,'))
    assert facts(answer) == facts(parse_answer(TAGGED))[:2]
    assert (answer.parsed, answer.problem) == (False, "The JSON is truncated or damaged.")


ESCAPED = r"half \ud83d of it, \u0000 nothing, \u001b[31mred\u001b[0m, \u200bhidden and whole \ud83d\ude00"


def test_characters_that_were_escaped_in_json_are_cleaned_like_others() -> None:
    """What cannot be written as UTF-8 would break the tables."""
    fact = f'{{"priority": "high", "kind": "rule", "time": "", "places": [1], "trace": [], "text": "Never {ESCAPED}"'
    for ending in ("}]}]}", "", "}]}] nonsense"):
        answer = parse_answer(f'{{"segments": [{{"from": 1, "to": 2, "title": "{ESCAPED}", "facts": [{fact}{ending}')
        (found,) = facts(answer)
        assert found.text == "Never half \ufffd of it, nothing, red, hidden and whole \U0001f600"
        assert answer.segments[0].title == found.text.removeprefix("Never ")
        repr(answer).encode()
