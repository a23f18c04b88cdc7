"""Answers as JSON: the schema that a provider enforces, and the JSON within an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import from_json

from memory_pipeline.llm.answers.cleaning import plain
from memory_pipeline.llm.answers.lines import clock_in, kind_named, priority_named
from memory_pipeline.text.kinds import STATEMENT, Kind
from memory_pipeline.text.priorities import LOW
from memory_pipeline.text.sentences import run_together

TRIED = 3
"""Maximum number of positions at which parsing JSON is tried; each costs one pass over the text."""
MAX_DEPTH = 8
"""Maximum nesting that is read: a step of a trace is at depth six."""
_BEGINS = re.compile(
    r"^[ \t]{0,8}(?:`{3,}(?:json)?[ \t]*\n?[ \t]{0,8})?(?=\{[ \t]{0,8}[\n\"}]|\[[ \t]{0,8}[\n{\"\]])", re.M
)
_TRAILING_COMMA = re.compile(r",(?=\s{0,40}[\]}])")
_HALF = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][\da-fA-F]{2})\\u[dD][c-fC-F][\da-fA-F]{2}"
)
"""An escaped lone surrogate, at which the library stops reading."""
_NUMBERS = re.compile(r"(?<![\w.])[oOL#]?(\d{1,6})(?![\w.:])")

Context = dict[str, int]
"""Counters of validation: `left_out` items, and facts without a priority (`unmarked`)."""


class Form(BaseModel):
    """An answer or a part of one. In the schema every field is required, as some providers demand, but an answer
    without a field is accepted. Models write fields in this order, so texts come before parts that may be truncated.
    """

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class _Untitled(GenerateJsonSchema):
    """A schema without titles of fields, which repeat their names and cost tokens in every request."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def schema_for(form: type[Form]) -> str:
    """The JSON schema of an answer, as text."""
    return json.dumps(form.model_json_schema(mode="serialization", schema_generator=_Untitled))


def numbers_in(value: Any) -> list[int]:
    """Unique numbers of messages or observations, from `[3, "#7", "o9"]` or `"3, 7"`."""
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return list(dict.fromkeys(map(int, _NUMBERS.findall(words))))


def _words(value: Any) -> str:
    return run_together(value) if isinstance(value, str) else ""


def _names(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


def _priority(value: Any, info: ValidationInfo) -> str:
    known = priority_named(str(value))
    if not known and info.context is not None:
        info.context["unmarked"] += 1
    return known or LOW


def only_valid(form: type[Form]) -> Callable[[Any, ValidationInfo], list[Form]]:
    """A validator that drops and counts the items of a list that do not fit."""

    def valid(value: Any, info: ValidationInfo) -> list[Form]:
        found = []
        for item in value if isinstance(value, list) else []:
            try:
                found.append(form.model_validate(item, context=info.context))
            except ValidationError:
                if info.context is not None:
                    info.context["left_out"] += 1
        return found

    return valid


Words = Annotated[str, BeforeValidator(_words), Field(default_factory=str)]
Names = Annotated[list[str], BeforeValidator(_names), Field(default_factory=list)]
Numbers = Annotated[list[int], BeforeValidator(numbers_in)]
Number = Annotated[int, BeforeValidator(lambda value: next(iter(numbers_in(value)), 0))]
"""A number; 0 if there is none."""
Text = Annotated[str, AfterValidator(run_together), Field()]
Priority = Annotated[Literal["high", "medium", "low"], BeforeValidator(_priority)]
FactKind = Annotated[Kind, BeforeValidator(lambda value: kind_named(str(value)) or STATEMENT)]
Clock = Annotated[str, BeforeValidator(lambda value: clock_in(str(value)) or ""), Field(default_factory=str)]


def json_values(text: str) -> Iterator[tuple[Any, bool]]:
    """The JSON objects and lists in a text, each with whether it is truncated or damaged; of such only the part before
    the damage."""
    for begin in islice(_BEGINS.finditer(text), TRIED):
        try:
            value, is_damaged = _decoded(text[begin.end() :])
        except (ValueError, RecursionError):
            continue
        yield _plain(value), is_damaged
        if is_damaged:
            return


def _decoded(text: str) -> tuple[Any, bool]:
    decoder = json.JSONDecoder(strict=False)
    try:
        return decoder.raw_decode(text)[0], False
    except json.JSONDecodeError:
        text = _TRAILING_COMMA.sub("", text)
    try:
        return decoder.raw_decode(text)[0], False
    except json.JSONDecodeError as error:
        return from_json(_HALF.sub(r"\\ufffd", text[: error.pos]), allow_partial=True), True


def _plain(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value with all texts cleaned again, as JSON may have escaped characters."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in value] if depth else []
    if isinstance(value, Mapping):
        return {key: _plain(item, depth - 1) for key, item in value.items()} if depth else {}
    return value
