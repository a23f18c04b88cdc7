"""The JSON schema of the observer's answer, and the classes that validate one and count the items left out."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from memory_pipeline.llm.answers.lines import leading, trailing
from memory_pipeline.llm.answers.structured import (
    Clock,
    FactKind,
    Form,
    Names,
    Number,
    Numbers,
    Priority,
    Text,
    Words,
    only_valid,
    schema_for,
)
from memory_pipeline.observations.model.facts import ARROW

_MARKED = re.compile(r"\W{0,8}(?:[🔴🟡🟢]|\[#\d)")


def _fact_fields(value: Any) -> Any:
    """The fields of a fact, also if it is given as a line; missing fields are unknown."""
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return value
    fields: dict[str, Any] = {"priority": None, "kind": None, "time": "", "places": []} | value
    if not _MARKED.match(value["text"]):
        return fields
    marks, text = trailing(*leading(value["text"]))
    told = {"priority": marks.priority, "kind": marks.kind, "time": marks.clock, "places": list(marks.refs)}
    return fields | {"text": text} | {name: mark for name, mark in told.items() if mark and not value.get(name)}


def _steps(value: Any) -> list[str]:
    steps = ARROW.split(value) if isinstance(value, str) else value
    return [str(step) for step in steps] if isinstance(steps, list) else []


# the schema has the names of these classes and the order of their fields, and is a part of a request's cache key


class FactForm(Form):
    priority: Priority
    kind: FactKind
    time: Clock
    places: Numbers
    text: Text
    trace: Annotated[list[str], BeforeValidator(_steps), Field(default_factory=list)]

    _fields = model_validator(mode="before")(_fact_fields)


class SegmentForm(Form):
    first: Number = Field(alias="from")
    last: Number = Field(alias="to")
    title: Words
    narrative: Words
    facts: Annotated[list[FactForm], BeforeValidator(only_valid(FactForm))]

    @model_validator(mode="before")
    @classmethod
    def _unnamed(cls, value: Any) -> Any:
        return {"from": 0, "to": 0} | value if isinstance(value, dict) else value


class AnswerForm(Form):
    segments: Annotated[list[SegmentForm], BeforeValidator(only_valid(SegmentForm))]
    current_task: Words
    suggested_response: Words
    used: Names
    ended: Names

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        """Wrap facts without segments into one segment."""
        fields = {"observations": value} if isinstance(value, list) else value
        if isinstance(fields, dict) and "segments" not in fields:
            facts = fields.get("observations", fields.get("facts"))
            if isinstance(facts, list):
                return fields | {"segments": [{"facts": facts}] if facts else []}
        return fields


# the smaller schema for a model with a small context; the answer is validated with the classes above
class SmallFactForm(Form):
    priority: Priority
    kind: FactKind
    places: Numbers
    text: Text


class SmallSegmentForm(Form):
    title: Words
    narrative: Words
    facts: list[SmallFactForm]


class SmallAnswerForm(Form):
    segments: list[SmallSegmentForm]


def schema(*, is_small: bool = False) -> str:
    """The JSON schema of an answer, as text."""
    return schema_for(SmallAnswerForm if is_small else AnswerForm)
