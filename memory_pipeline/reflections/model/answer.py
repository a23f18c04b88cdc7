"""The answer of the reflector: its schema, and the lines of an answer in any format.

An answer is JSON, or has lines like `* 🔴 section | kind {tag} [o3 o7 -o2] text` followed by a `<summary>`. `[o3
m1a2b3c]` says that a line of MEMORY.md already says it, `-m1a2b3c` that one contradicts it. An item without an
observation is not a line. Parsing never raises and takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, model_validator

from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.degenerate import before_repetition, is_too_little, shortened
from memory_pipeline.llm.answers.lines import MAX_LINE, entries, kind_named, leading, priority_named, tidy
from memory_pipeline.llm.answers.structured import (
    FactKind,
    Form,
    Names,
    Numbers,
    Priority,
    Text,
    Words,
    json_values,
    only_valid,
    schema_for,
)
from memory_pipeline.reflections.types import UNFILED
from memory_pipeline.text.priorities import MEDIUM

MAX_LINES = 300
MAX_SOURCES = 60
MAX_SUMMARY = 600
MAX_TAGS, MAX_TAG = 5, 40
WIDEST_RANGE = 20
"""Maximum length of a range like `o3-o7`; of a wider one only the two ends count."""
_NAMES = re.compile(r"\[([^\[\]\n]{2,600})\]")
_NAME = re.compile(
    r"(?P<minus>[-–−]?)(?:[oO](?P<first>\d{1,5})(?:[-–][oO]?(?P<last>\d{1,5}))?|[mM](?P<line>[0-9a-f]{6}))"
)
_SEPARATOR = re.compile(r"[\s,;]+")
_TAGS = re.compile(r"\{([^{}\[\]\n]{1,200})\}")
_TAG = re.compile(rf"[\w.+#/@ -]{{1,{MAX_TAG}}}")
_PARTS = re.compile(r"\s*[|·:]\s*|\s[-–—](?:\s|$)")
_DECORATION = " \t*_|:-–—"
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.I | re.S)


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The parts of a line; None for a missing part."""

    text: str
    sources: tuple[int, ...]
    """Numbers of observations."""
    replaced: tuple[int, ...]
    section: int | None
    kind: str | None
    priority: str | None
    tags: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    """Ids of lines of MEMORY.md."""
    known: tuple[str, ...] = ()
    """Ids of lines of MEMORY.md that already say it; then it has no text."""


@dataclass(frozen=True, slots=True)
class ParsedReflection:
    """The content of an answer."""

    lines: tuple[ParsedLine, ...] = ()
    loops: bool = False
    """Whether the answer loops."""
    summary: str | None = None


def _line_fields(value: Any) -> Any:
    """The fields of a line; missing fields are unknown."""
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = {"kind": None, "observations": [], "replaces": []} | value
    return fields | {"priority": priority_named(str(value.get("priority"))) or MEDIUM}


# the schema has the names of these classes and the order of their fields, and is a part of a request's cache key


class LineForm(Form):
    priority: Priority
    section: Words
    kind: FactKind
    tags: Names
    observations: Numbers
    replaces: Numbers
    contradicts: Names
    text: Text

    _fields = model_validator(mode="before")(_line_fields)


class KnownForm(Form):
    observations: Numbers
    memory: Names


class ReflectionForm(Form):
    lines: Annotated[list[LineForm], BeforeValidator(only_valid(LineForm))]
    known: Annotated[list[KnownForm], BeforeValidator(only_valid(KnownForm))]
    summary: Words

    @model_validator(mode="before")
    @classmethod
    def _unnamed(cls, value: Any) -> Any:
        return {"known": []} | value if isinstance(value, dict) else value


def schema() -> str:
    """The JSON schema of an answer, as text."""
    return schema_for(ReflectionForm)


def parse_reflection(text: str, sections: Sequence[str], *, is_cut: bool = False) -> ParsedReflection:
    """The lines of an answer that name observations, in order. `sections` are the names of the sections. The last line
    of a truncated answer is dropped: half of it may say the opposite."""
    words, _ = without_thinking(cleaned(text))
    words, has_loops = before_repetition(words)
    known = {name.casefold(): i for i, name in reversed(list(enumerate(sections)))} | {"user": 0}
    found, summary = _from_json(words, known) or _from_lines(words, known, is_cut=is_cut)
    told = shortened(tidy(summary), MAX_SUMMARY)
    return ParsedReflection(tuple(found[:MAX_LINES]), has_loops, None if is_too_little(told) else told)


def _from_json(text: str, sections: dict[str, int]) -> tuple[list[ParsedLine], str] | None:
    """The lines of a JSON answer with its summary; None if no JSON in the text fits the schema."""
    for value, _ in json_values(text):
        try:
            form = ReflectionForm.model_validate(value)
        except ValidationError:
            continue
        found = [line for each in form.lines if (line := _line_of(each, sections))]
        found += [_known(k.observations, ids) for k in form.known if (ids := _lines_of_memory(k.memory))]
        return found, form.summary
    return None


def _line_of(form: LineForm, sections: dict[str, int]) -> ParsedLine | None:
    text = tidy(form.text)
    if not form.observations or is_too_little(text):
        return None
    replaced = tuple(form.replaces)
    return ParsedLine(
        text=shortened(text),
        sources=tuple(n for n in form.observations[:MAX_SOURCES] if n not in replaced),
        replaced=replaced,
        section=sections.get(form.section.casefold(), UNFILED) if form.section else None,
        kind=form.kind,
        priority=form.priority,
        tags=_tags(form.tags),
        contradicted=tuple(_lines_of_memory(form.contradicts)),
    )


def _known(sources: Iterable[int], lines: Iterable[str]) -> ParsedLine:
    return ParsedLine("", tuple(sources), (), None, None, None, known=tuple(lines))


def _lines_of_memory(names: Iterable[str]) -> list[str]:
    return [f"m{name['line'].lower()}" for word in names if (name := _NAME.fullmatch(word.strip())) and name["line"]]


def _from_lines(text: str, sections: dict[str, int], *, is_cut: bool) -> tuple[list[ParsedLine], str]:
    summary = _SUMMARY.search(text)
    if summary:
        text = f"{text[: summary.start()]}\n{text[summary.end() :]}"
    listed = entries(text.split("\n"))
    listed = listed[:-1] if is_cut else listed
    found = [line for entry in listed if (line := _parse_line(" ".join(entry.parts)[:MAX_LINE], sections))]
    return found, summary[1] if summary else ""


def _parse_line(line: str, sections: dict[str, int]) -> ParsedLine | None:
    """A parsed list line; None if it names no observations, or says too little."""
    marks, rest = leading(line)
    named = next(((b, names) for b in _NAMES.finditer(rest) if (names := _names(b[1]))), None)
    if named is None:
        return None
    bracket, names = named
    numbers = [n for name in names if not name["line"] for n in _numbers(name)][:MAX_SOURCES]
    replaced = tuple(dict.fromkeys(-n for n in numbers if n < 0))
    sources = tuple(dict.fromkeys(n for n in numbers if n > 0 and n not in replaced))
    if repeated := [f"m{name['line']}" for name in names if name["line"] and not name["minus"]]:
        return _known(sources, repeated)
    text = tidy(rest[bracket.end() :].lstrip(_DECORATION))
    if is_too_little(text):
        return None
    section, kind, tags = _parse_head(rest[: bracket.start()], sections)
    contradicted = tuple(f"m{name['line']}" for name in names if name["line"])
    return ParsedLine(
        shortened(text), sources, replaced, section, marks.kind or kind, marks.priority, tags, contradicted
    )


def _parse_head(head: str, sections: dict[str, int]) -> tuple[int | None, str | None, tuple[str, ...]]:
    """Section, kind and tags before the numbers of a line. An unknown section counts as none."""
    tags = _TAGS.search(head)
    parts = [part.strip(_DECORATION) for part in _PARTS.split(_TAGS.sub("|", head))]
    kinds = [kind for part in parts if (kind := kind_named(part))]
    others = [part.casefold() for part in parts if part and not kind_named(part)]
    section = sections.get(others[0], UNFILED) if others else None
    return section, next(iter(kinds), None), _tags(re.split(r"[,;]", tags[1])) if tags else ()


def _names(inside: str) -> list[re.Match[str]] | None:
    """The observations and lines of MEMORY.md in a bracket; None if it contains anything else."""
    found = [_NAME.fullmatch(word) for word in _SEPARATOR.split(inside.strip()) if word]
    return [name for name in found if name] if all(found) else None


def _numbers(name: re.Match[str]) -> Iterable[int]:
    first, last = int(name["first"]), int(name["last"] or name["first"])
    numbers = range(first, last + 1) if first <= last <= first + WIDEST_RANGE else (first, last)
    return (-n if name["minus"] else n for n in numbers)


def _tags(names: Iterable[str]) -> tuple[str, ...]:
    words = (" ".join(name.split()).lstrip("#").lower() for name in names)
    return tuple(dict.fromkeys(word for word in words if _TAG.fullmatch(word)))[:MAX_TAGS]
