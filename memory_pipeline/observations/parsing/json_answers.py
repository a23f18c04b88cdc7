"""An answer that is JSON although it was to be tags."""

from __future__ import annotations

import json
import re
from typing import Any

from memory_pipeline.observations.parsing.marks import TEXTS, element_of, fact_line
from memory_pipeline.observations.parsing.structure import Draft, Structure, read_structure
from memory_pipeline.text.spaces import run_together

TRIED = 3
"""Places where JSON may begin that are tried; each costs one pass over the text."""
_BEGINS = re.compile(
    r"^[ \t]{0,8}(?:`{3,}(?:json)?[ \t]*\n?[ \t]{0,8})?(?=\{[ \t]{0,8}[\n\"}]|\[[ \t]{0,8}[\n{\"\]])", re.M
)
_OBJECT = re.compile(r"\{[^{}]{1,4000}\}")
_TEXT_KEYS = ("text", "fact", "observation", "content", "statement", "description")


def read_json(text: str) -> Structure | None:
    """The structure of the first JSON in a text that holds observations; None when there is none."""
    decoder = json.JSONDecoder(strict=False)
    for _, begin in zip(range(TRIED), _BEGINS.finditer(text), strict=False):
        try:
            value, _ = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            return _salvaged(text[begin.end() :])
        structure = _structure(value)
        if structure:
            return structure
    return None


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
    flat: Draft | None = None
    for item in items:
        facts = (
            next((item[key] for key in ("facts", "observations") if key in item), None)
            if isinstance(item, dict)
            else None
        )
        if isinstance(facts, list):
            flat, structure.has_segments = None, True
            first, last = _number(item.get("from")), _number(item.get("to"))
            title, narrative = _words(item.get("title")), _words(item.get("narrative") or item.get("summary"))
            lines = [line for fact in facts if (line := _line(fact))]
            structure.inside.append(Draft(title, narrative, first, last, lines))
        elif line := _line(item):
            if flat is None:
                flat = Draft()
                structure.inside.append(flat)
            flat.lines.append(line)
    return structure


def _line(fact: Any) -> str | None:
    if isinstance(fact, str):
        return fact_line(fact, {})
    if not isinstance(fact, dict):
        return None
    words = next((fact[key] for key in _TEXT_KEYS if isinstance(fact.get(key), str)), None)
    attributes = {
        str(key).lower(): " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in fact.items()
        if key not in _TEXT_KEYS and isinstance(value, str | int | list)
    }
    return fact_line(f"{words}{_trace(attributes)}", attributes) if words else None


def _trace(attributes: dict[str, str]) -> str:
    """What led to it, as it stands behind a fact on its line."""
    steps = [attributes[name] for name in ("trigger", "investigation", "decision", "rationale") if name in attributes]
    trace = attributes.get("trace") or attributes.get("decision_trace") or " -> ".join(steps)
    return f" (trace: {trace})" if trace else ""


def _salvaged(text: str) -> Structure | None:
    """The whole objects of JSON that was cut or is not quite JSON."""
    lines = []
    for found in _OBJECT.finditer(text):
        try:
            line = _line(json.loads(found[0], strict=False))
        except (ValueError, RecursionError):
            continue
        lines += [line] if line else []
    if not lines:
        return None
    return Structure(inside=[Draft(lines=lines)], has_tags=True, guesses=["the JSON is cut or damaged"])


def _number(value: Any) -> int | None:
    found = re.fullmatch(r"\s*#?(\d{1,6})\s*", str(value))
    return int(found[1]) if found else None


def _words(value: Any) -> str | None:
    return (run_together(value) or None) if isinstance(value, str) else None
