"""The answer as JSON that a provider holds its model to: the schema that is sent, and a fact that fits it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from memory_pipeline.observations.model.parsing.facts import ParsedFact, fact_of
from memory_pipeline.observations.model.parsing.marks import Kind, clock_in, leading

_MARKED = re.compile(r"\W{0,8}(?:[🔴🟡🟢]|\[#\d)")


def _unmarked(text: str) -> str:
    """Without the marks of a line, which have fields of their own here."""
    return leading(text)[1] if _MARKED.match(text) else text


_Words = Annotated[str, Field(default_factory=str)]


class _Form(BaseModel):
    """Of the schema every field is required, as some providers want it; an answer without one is read all the same."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class FactForm(_Form):
    priority: Literal["high", "medium", "low"]
    kind: Kind
    time: _Words
    places: list[int]
    text: Annotated[str, AfterValidator(_unmarked)]
    trace: list[str] = Field(default_factory=list)


class SegmentForm(_Form):
    first: int = Field(alias="from")
    last: int = Field(alias="to")
    title: _Words
    narrative: _Words
    facts: list[FactForm]


class AnswerForm(_Form):
    segments: list[SegmentForm]
    current_task: _Words
    suggested_response: _Words
    used: list[str] = Field(default_factory=list)
    ended: list[str] = Field(default_factory=list)


class _Untitled(GenerateJsonSchema):
    """Without the titles of fields, which say nothing but their names again and are paid for with every request."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema() -> str:
    """The JSON schema of an answer, as text. Models write the fields in its order: a text before the trace, so that an
    answer that is cut within a trace still has the fact."""
    return json.dumps(AnswerForm.model_json_schema(mode="serialization", schema_generator=_Untitled))


def fact_in(value: Any) -> ParsedFact | None:
    """The fact in JSON that fits the schema; None where it does not, or says too little."""
    try:
        form = FactForm.model_validate(value)
    except ValidationError:
        return None
    return fact_of(form.text, form.priority, form.kind, clock_in(form.time), form.places, form.trace)
