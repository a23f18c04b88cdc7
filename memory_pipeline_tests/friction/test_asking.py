"""Answers about friction."""

import json

from memory_pipeline.friction.asking import GROUPS, Group, GroupsForm, read_groups

GROUPED = [Group("again", 0, [3, 17]), Group("over", 7, [11, 30])]
AS_JSON = {"groups": [group._asdict() for group in GROUPED]}


def test_the_groups_of_an_answer() -> None:
    GroupsForm.model_validate(AS_JSON)
    answers = (
        json.dumps(AS_JSON),
        f"<think>again: 1, 2</think>\n```json\n{json.dumps(AS_JSON, indent=1)}\n```",
        json.dumps(AS_JSON).replace("}]", "},]"),
        json.dumps(AS_JSON)[:-2],
    )
    assert {answer: found for answer in answers if (found := read_groups(answer)) != GROUPED} == {}


def test_no_group_is_an_answer_and_no_answer_is_none() -> None:
    assert read_groups('{"groups": []}') == []
    assert [read_groups(text) for text in ("", "There are two groups.", '{"groups": [{"wh', "{}")] == [None] * 4


def test_the_schema_asks_for_every_field() -> None:
    assert json.loads(GROUPS.schema)["$defs"]["GroupForm"]["required"] == ["what", "line", "remarks"]
