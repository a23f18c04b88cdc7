"""An answer that is JSON: as the schema has it, or in whatever shape, also cut or damaged."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

from pydantic_core import from_json

from memory_pipeline.observations.model.parsing.cleaning import plain
from memory_pipeline.observations.model.parsing.facts import FactList, read_facts
from memory_pipeline.observations.model.parsing.marks import TEXTS, element_of, fact_line
from memory_pipeline.observations.model.parsing.schema import fact_in
from memory_pipeline.observations.model.parsing.structure import Draft, Structure, read_structure
from memory_pipeline.text.spaces import run_together

TRIED = 3
"""Places where JSON may begin that are tried; each costs one pass over the text."""
MAX_DEPTH = 8
"""Of lists and objects in each other: a step of a trace lies at the sixth."""
_BEGINS = re.compile(
    r"^[ \t]{0,8}(?:`{3,}(?:json)?[ \t]*\n?[ \t]{0,8})?(?=\{[ \t]{0,8}[\n\"}]|\[[ \t]{0,8}[\n{\"\]])", re.M
)
_OBJECT = re.compile(r"\{[^{}]{1,4000}\}")
_HALF = re.compile(
    r"\\u[dD][89abAB][\da-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][\da-fA-F]{2})\\u[dD][c-fC-F][\da-fA-F]{2}"
)
"""Half of a character, escaped; the library does not read on from there."""
_DAMAGED = "the JSON is cut or damaged"
_TEXT_KEYS = ("text", "fact", "observation", "content", "statement", "description")


def read_json(text: str) -> Structure | None:
    """The structure of the first JSON in a text that holds observations; None when there is none."""
    decoder = json.JSONDecoder(strict=False)
    for _, begin in zip(range(TRIED), _BEGINS.finditer(text), strict=False):
        try:
            value, _ = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            return _cut(text[begin.end() :]) or _salvaged(text[begin.end() :])
        structure = _structure(_plain(value))
        if structure:
            return structure
    return None


def _plain(value: Any, depth: int = MAX_DEPTH) -> Any:
    """With its texts cleaned, as all text is before it is read: in JSON the characters may have been escaped."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in value] if depth else []
    if isinstance(value, dict):
        return {key: _plain(item, depth - 1) for key, item in value.items()} if depth else {}
    return value


def _structure(value: Any) -> Structure | None:
    fields = {"observations": value} if isinstance(value, list) else value
    if not isinstance(fields, dict):
        return None
    named = {element_of(str(key)) or str(key).lower(): item for key, item in fields.items()}
    items = next(
        (named[name] for name in ("observations", "segments", "segment", "facts", "fact") if name in named), None
    )
    if isinstance(items, str):
        structure = read_structure(f"<observations>\n{items}\n</observations>")
    elif isinstance(items, list) and all(isinstance(item, str | dict) for item in items):
        structure = _of_items(items)
    else:
        return None
    for name in TEXTS[2:]:
        reported = named.get(name)
        words = " ".join(map(str, reported)) if isinstance(reported, list) else reported
        if isinstance(words, str) and words.strip():
            structure.texts[name] = run_together(words)
    return structure


def _of_items(items: list[Any]) -> Structure:
    """Segments, or facts alone; facts between segments get a segment of their own."""
    structure = Structure(has_tags=True, has_observations=True)
    for are_segments, group in groupby(items, lambda item: _facts_in(item) is not None):
        if not are_segments:
            structure.inside.append(_draft([*group]))
            continue
        structure.has_segments = True
        for item in group:
            draft = _draft(_facts_in(item) or [])
            draft.first, draft.last = _number(item.get("from")), _number(item.get("to"))
            draft.title, draft.narrative = (
                _words(item.get("title")),
                _words(item.get("narrative") or item.get("summary")),
            )
            if draft.facts and draft.narrative:
                draft.lines.append(draft.narrative)  # by which a refusal is known
            structure.inside.append(draft)
    return structure


def _facts_in(item: Any) -> list[Any] | None:
    """The facts of a segment, None of what is none."""
    facts = next((item[key] for key in ("facts", "observations") if key in item), None) if type(item) is dict else None
    return facts if isinstance(facts, list) else None


def _draft(items: list[Any]) -> Draft:
    """Facts, each as the schema has it, or else what can be read of it; texts alone belong together, as lines do."""
    draft = Draft(lines=[line for item in items if (line := _line(item))])
    if not items or any(isinstance(item, dict) for item in items):
        draft.facts = FactList()
        for item in items:
            fact = fact_in(item)
            line = None if fact else _line(item)
            read = read_facts([line], only_listed=True) if line else FactList([fact] if fact else [])
            draft.facts.facts += read.facts
            draft.facts.unmarked += read.unmarked
    return draft


def _line(fact: Any) -> str | None:
    if isinstance(fact, str):
        return fact_line(fact, {})
    if not isinstance(fact, dict):
        return None
    words = next((fact[key] for key in _TEXT_KEYS if isinstance(fact.get(key), str)), None)
    attributes = {
        str(key).lower(): (" -> " if "trace" in key else " ").join(map(str, value))
        if isinstance(value, list)
        else str(value)
        for key, value in fact.items()
        if key not in _TEXT_KEYS and isinstance(value, str | int | list)
    }
    return fact_line(f"{words}{_trace(attributes)}", attributes) if words else None


def _trace(attributes: dict[str, str]) -> str:
    """What led to it, as it stands behind a fact on its line."""
    steps = [attributes[name] for name in ("trigger", "investigation", "decision", "rationale") if name in attributes]
    trace = attributes.get("trace") or attributes.get("decision_trace") or " -> ".join(steps)
    return f" (trace: {trace})" if trace else ""


def _cut(text: str) -> Structure | None:
    """Of JSON that was cut what is whole before the cut: of a fact at least its text."""
    try:
        structure = _structure(_plain(from_json(_HALF.sub(r"\\ufffd", text), allow_partial=True)))
    except ValueError:
        return None
    if structure:
        structure.guesses.append(_DAMAGED)
        structure.is_closed = False
    return structure


def _salvaged(text: str) -> Structure | None:
    """The whole objects of what is not quite JSON."""
    lines = []
    for found in _OBJECT.finditer(text):
        try:
            line = _line(_plain(json.loads(found[0], strict=False)))
        except (ValueError, RecursionError):
            continue
        lines += [line] if line else []
    if not lines:
        return None
    return Structure(inside=[Draft(lines=lines)], has_tags=True, guesses=[_DAMAGED])


def _number(value: Any) -> int | None:
    found = re.fullmatch(r"\s*#?(\d{1,6})\s*", str(value))
    return int(found[1]) if found else None


def _words(value: Any) -> str | None:
    return (run_together(value) or None) if isinstance(value, str) else None
