"""Removal from a file, database or index, and the cleaning of texts."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.redaction.forgotten import MARK

BY_HAND = "lines of yours"


class Found(NamedTuple):
    """A stored line to be removed, and its place."""

    place: str
    line: str


@dataclass(frozen=True)
class Change:
    """Lines to be removed from one place, and the function that removes them, which is safe to repeat."""

    place: str
    lines: Sequence[str]
    apply: Callable[[], object]
    by_hand: Sequence[str] = ()
    """Lines that a user wrote, which are kept."""

    @property
    def found(self) -> list[Found]:
        """The lines to show to the user."""
        kept = [Found(BY_HAND, line) for line in self.by_hand]
        return [Found(self.place, line) for line in self.lines] + kept


def says(text: str, request: ForgetRequest) -> bool:
    """Whether the text has the words, or repeats a passage of the forgotten text, including HTML-escaped forms."""
    forms = (text, html.unescape(text)) if "&" in text else (text,)
    return any(request.wanted.are_in(form) or request.repeated.are_in(form) for form in forms)


def redact(value: Any, request: ForgetRequest) -> Any:
    """A text or JSON value with marks in place of the words and of lines that repeat forgotten text. JSON inside a text
    is redacted as JSON."""
    if isinstance(value, str):
        if value[:1] in ("{", "[") and isinstance(inner := _loaded(value), dict | list):
            new = redact(inner, request)
            return value if new == inner else json.dumps(new)
        return "\n".join(_redact_line(line, request) for line in value.split("\n")) if says(value, request) else value
    if isinstance(value, list):
        return [redact(one, request) for one in value]
    if isinstance(value, dict):
        return {redact(key, request): redact(one, request) for key, one in value.items()}
    return value


def first_line(value: Any, request: ForgetRequest) -> str:
    """The first matching line of a text or JSON value; empty if there is none."""
    if isinstance(value, str):
        if value[:1] in ("{", "[") and isinstance(inner := _loaded(value), dict | list):
            return first_line(inner, request)
        return next((line for line in value.split("\n") if says(line, request)), "")
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (first_line(one, request) for one in inside)), "")


def _redact_line(line: str, request: ForgetRequest) -> str:
    line = request.wanted.without(line)
    return MARK if says(line, request) else line


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
