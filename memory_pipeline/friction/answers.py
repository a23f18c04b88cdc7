"""Questions to a model about numbered remarks, and the groups in its answers: JSON, with a schema if the model takes
one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, ValidationError

from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.structured import (
    Form,
    Number,
    Numbers,
    json_values,
    only_valid,
    schema_for,
)

# the schema has the names of these classes and the order of their fields, and is a part of a request's cache key


class GroupForm(Form):
    what: Annotated[Literal["again", "broken", "over"], BeforeValidator(lambda value: str(value).lower())]
    line: Number
    remarks: Numbers


class GroupsForm(Form):
    groups: Annotated[list[GroupForm], BeforeValidator(only_valid(GroupForm))]


@dataclass(frozen=True)
class Question:
    """A question: the names of its prompts, and the schema of its answer."""

    system: str
    turn: str
    format: str
    """The prompt with the format of the answer."""
    form: type[Form]

    @property
    def schema(self) -> str:
        """The JSON schema of the answer, as text."""
        return schema_for(self.form)


GROUPS = Question("friction_groups", "friction_groups_turn", "friction_groups_json", GroupsForm)


class Group(NamedTuple):
    """The numbers of the remarks in a group, and the number of a rule; 0 if they are not about one."""

    what: str
    line: int
    remarks: list[int]


def read_groups(answer: str) -> list[Group] | None:
    """The groups of an answer; None if it has none without saying so."""
    text, _ = without_thinking(cleaned(answer))
    for value, is_damaged in json_values(text):
        try:
            form = GroupsForm.model_validate(value)
        except ValidationError:
            continue
        found = [Group(each.what, each.line, sorted(each.remarks)) for each in form.groups]
        return found if found or not is_damaged else None
    return None
