"""All finders, with the triggers that show whether a finder must search a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from memory_pipeline.redaction.assignments import ASSIGNED, assignments
from memory_pipeline.redaction.columns import COLUMNS, INSERTED, columns, inserted
from memory_pipeline.redaction.contexts import (
    COMMANDS,
    CONTEXTS,
    COOKIES,
    FOLDED_CONTEXTS,
    SECRET_OBJECTS,
    cookies,
    secret_objects,
)
from memory_pipeline.redaction.decoding import CODES, ENCODED
from memory_pipeline.redaction.detectors import LEFT_OUT, PRIVATE, Span
from memory_pipeline.redaction.spoken import CREDENTIAL_LITERALS, KEYS, SPOKEN, credentials, keys, spoken
from memory_pipeline.redaction.tokens import TOKENS

Finder = Callable[[str, str], Iterable[Span]]
_CLOSE = "</private>"


def all_finders() -> Iterator[tuple[list[str], Finder]]:
    """Triggers and finder of each kind of secret; if secrets overlap, the first finder determines the kind. The first
    two only have triggers: the redactor decodes what they indicate."""
    yield list(CODES), _nothing
    yield list(ENCODED), _nothing
    yield [PRIVATE], _private
    for detector in (*TOKENS, *CONTEXTS, *COMMANDS):
        yield list(detector.triggers), partial(_unfolded, detector.spans)
    for detector in FOLDED_CONTEXTS:
        yield _in_any_case(detector.triggers), detector.spans
    yield _in_any_case(ASSIGNED), assignments
    yield _in_any_case(COLUMNS), columns
    yield _in_any_case(INSERTED), inserted
    yield _in_any_case(COOKIES), cookies
    yield _in_any_case(SECRET_OBJECTS), secret_objects
    yield _in_any_case(SPOKEN), spoken
    yield _in_any_case(CREDENTIAL_LITERALS), credentials
    yield _in_any_case(KEYS), keys


def _private(text: str, _folded: str) -> Iterator[Span]:
    start = text.find(PRIVATE)
    while start >= 0:
        start += len(PRIVATE)
        end = text.find(_CLOSE, start)
        # without a closing mark, later openings have none either
        if end < 0:
            return
        if text[start:end] != LEFT_OUT:
            yield Span(start, end, LEFT_OUT)
        start = text.find(PRIVATE, end)


def _nothing(_text: str, _folded: str) -> Iterable[Span]:
    return ()


def _unfolded(spans: Finder, text: str, _folded: str) -> Iterable[Span]:
    return spans(text, text)


def _in_any_case(triggers: Iterable[str]) -> list[str]:
    return [f"(?i:{trigger})" for trigger in triggers]
