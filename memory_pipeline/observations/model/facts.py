"""The formats of an answer: JSON by a schema; else elements with list lines and marks; else paragraphs.

The classes of the schema also validate an answer and count the items left out. Without a schema, a tag counts if it
begins a line or follows another tag; a closing tag also if it ends a line. Any other tag is part of a sentence ("the
<title> is missing") and counts as text, as do misspelt tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from memory_pipeline.llm.answers.degenerate import is_nothing, is_placeholder, is_too_little, shortened
from memory_pipeline.llm.answers.lines import TRACE, Entry, entries, leading, tidy, trailing
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
    numbers_in,
    only_valid,
    schema_for,
)
from memory_pipeline.text.kinds import PROGRESS, STATEMENT, is_noise
from memory_pipeline.text.priorities import LOW, MEDIUM
from memory_pipeline.text.sentences import sentences

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


MAX_REFS = 20
MAX_STEPS, MAX_STEP = 6, 300
MAX_PARAGRAPHS, MAX_PARAGRAPH = 10, 300
"""Maximum number of facts from a raw answer, and maximum characters of each."""
MAX_PARAGRAPHS_READ, MAX_CHARACTERS_READ = 100, 2_000
"""Maximum number of paragraphs of a raw answer that are read, and of characters of each."""
_TEMPLATE_FACT = re.compile(r"\[#(?:NUMBER|N)\b|^\{observation\}", re.I)
_TRACE_INSIDE = re.compile(
    r"(?:[ ]?[;(][ ]?|(?<=[.!?。])[ ])(?:decision[ _-])?trace:[ ](?=[^\n]{1,600}(?:->|→|=>))", re.I
)
ARROW = re.compile(r"\s?(?:->|→|=>|➜|↳)\s?")
_CHATTER = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are)|let me know|i hope|based on (?:the|this|your)"
    r"|would you like|if you (?:need|want|would)|feel free|below (?:is|are)|i(?:['’]ve| have) (?:read|reviewed))\b",
    re.I,
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact without marker, kind, time and numbers in its text."""

    text: str
    priority: str
    kind: str
    """One of `KINDS`; `statement` if the kind was missing or unknown."""
    clock: str | None
    """`HH:MM` from the beginning of the line."""
    refs: tuple[int, ...]
    """Message numbers, sorted and unique."""
    is_done: bool = False
    """Whether the model marked it as finished."""
    trace: tuple[str, ...] = ()
    """The steps that led to it: the cause, the investigation, the decision, the reason."""


def key_of(fact: ParsedFact) -> str:
    """A key that is equal for facts that differ only in case, space and punctuation."""
    return " ".join(_WORD.findall(fact.text.casefold()))


def fact_in_entry(entry: Entry) -> tuple[ParsedFact, bool] | None:
    """The fact of a list line, and whether the line gave a priority."""
    first, *below = entry.parts
    marks, words = trailing(*leading(first))
    inside = _TRACE_INSIDE.search(words)
    trace = words[inside.end() :].removesuffix(")") if inside else ""
    text, refs = tidy(words[: inside.start()] if inside else words), list(marks.refs)
    if text.endswith((":", "：")) and not below:
        return None
    for part in below[:MAX_REFS]:
        if begins := TRACE.match(part):
            trace = trace or part[begins.end() :].rstrip(" )]")
            continue
        more, words = trailing(*leading(ARROW.sub("", part, count=1) if ARROW.match(part) else part))
        refs += more.refs
        text += f" {tidy(words)}" if text.endswith(tuple(".:;,!?…。：！？")) else f"; {tidy(words)}"
    priority = marks.priority or (MEDIUM if marks.is_done else None)
    kind = PROGRESS if marks.is_done and marks.kind in (None, "question") else marks.kind or STATEMENT
    fact = fact_for(text, priority or LOW, kind, marks.clock, refs, ARROW.split(trace))
    return (replace(fact, is_done=marks.is_done), priority is not None) if fact else None


def fact_for(
    words: str, priority: str, kind: str, clock: str | None, refs: Iterable[int], trace: Iterable[str]
) -> ParsedFact | None:
    """The cleaned fact; None if the text says too little or repeats the instructions."""
    text, named = tidy(words), tuple(dict.fromkeys(refs))
    if is_too_little(text) or is_placeholder(text) or _TEMPLATE_FACT.search(words) or (not named and is_nothing(text)):
        return None
    steps = tuple(shortened(step, MAX_STEP) for part in trace if (step := tidy(part)))
    trace_steps = steps[:MAX_STEPS] if len(steps) > 1 else ()  # a single step is no trace
    return ParsedFact(shortened(text), priority, kind, clock, named[:MAX_REFS], trace=trace_steps)


def facts_in_paragraphs(text: str) -> list[ParsedFact]:
    """A fact of low priority for each paragraph with content; remarks of the answer about itself are left out."""
    facts: dict[str, ParsedFact] = {}
    for paragraph in re.split(r"\n[ \t]*\n", text)[:MAX_PARAGRAPHS_READ]:
        part = paragraph.strip()[:MAX_CHARACTERS_READ]
        said = (tidy(part[s.start : s.end]) for s in sentences(part) if s.kind != "heading")
        words = " ".join(w for w in said if not (w.endswith((":", "：")) or _CHATTER.match(w) or is_noise(w)))
        fact = ParsedFact(shortened(words, MAX_PARAGRAPH), LOW, STATEMENT, None, ())
        if not (is_too_little(words) or is_placeholder(words)) and len(facts) < MAX_PARAGRAPHS:
            facts.setdefault(key_of(fact), fact)
    return list(facts.values())


CONTAINERS = ("observations", "segment", "facts")
TEXTS = ("title", "narrative", "current-task", "suggested-response", "used", "ended")
TAG = re.compile(rf"<[ \t]?(/?)({'|'.join((*CONTAINERS, *TEXTS))})\b([^<>\n]{{0,200}}?)(/?)>", re.I)
_ENDS_LINE = re.compile(r"\s*(?:`{3}|<|\Z)")
_CUT_TAG = re.compile(r"^[ \t]*</?[a-z][^<>\n]{0,200}\Z", re.I | re.M)
_UNDERSCORE = re.compile(r"(?<=<)(/?(?:current|suggested))_(?=task>|response>)", re.I)


@dataclass(slots=True)
class Draft:
    """A segment as it is being read; `first` and `last` are numbers of messages."""

    title: str | None = None
    narrative: str | None = None
    first: int | None = None
    last: int | None = None
    lines: list[str] = field(default_factory=list)
    is_cut: bool = False
    """Whether the answer ends within the last line."""

    @property
    def entries(self) -> list[Entry]:
        """The list lines, without a last one that may be cut: half of it may say the opposite."""
        found = entries(self.lines)
        return found[:-1] if self.is_cut else found


@dataclass(slots=True)
class Tagged:
    """An answer split into its elements."""

    inside: list[Draft] = field(default_factory=lambda: [Draft()])
    """The segments within the tags."""
    outside: list[str] = field(default_factory=list)
    """The lines outside of all segments."""
    texts: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)
    """The open elements; after parsing, those that were never closed."""

    @property
    def content(self) -> str:
        """The lines of all segments."""
        return "\n".join(line for draft in self.inside for line in draft.lines).strip()


def without_cut_tag(text: str) -> str:
    """The text without an incomplete tag at its end."""
    return _CUT_TAG.sub("", text)


def read_tagged(text: str) -> Tagged:
    """The elements of a text, read line by line."""
    found = Tagged()
    for line in _UNDERSCORE.sub(r"\1-", text).split("\n"):
        _read_line(found, line)
    last_tag = max((tag.end() for tag in TAG.finditer(line)), default=0)
    in_list = bool(found.open) and found.open[-1] not in TEXTS
    found.inside[-1].is_cut = in_list and bool(line[last_tag:].strip())
    return found


def _read_line(found: Tagged, line: str) -> None:
    start = scanned = 0
    in_text = False
    for tag in TAG.finditer(line):
        in_text = in_text or bool(line[scanned : tag.start()].strip(" \t`"))
        scanned = tag.end()
        closes = tag[1] and tag[2].lower() in found.open and _ENDS_LINE.match(line, tag.end())
        if in_text and not closes:
            continue
        _add(found, line[start : tag.start()])
        start, in_text = tag.end(), False
        name = tag[2].lower()
        if tag[1]:
            _close(found, name)
        else:
            _open(found, name, tag)
    if not start or line[start:].strip():
        _add(found, line[start:])


def _add(found: Tagged, text: str) -> None:
    element = found.open[-1] if found.open else None
    if element in TEXTS:
        found.texts[element] = f"{found.texts.get(element, '')}\n{text}"
    else:
        (found.inside[-1].lines if element else found.outside).append(text)


def _open(found: Tagged, name: str, tag: re.Match[str]) -> None:
    if found.open and found.open[-1] in TEXTS:
        _close(found, found.open[-1])
    if name == "segment":
        if "segment" in found.open:
            _close(found, "segment")
        numbers = numbers_in(tag[3].replace('"', " ").replace("'", " ").replace("=", " "))
        found.inside.append(Draft(first=next(iter(numbers), None), last=numbers[-1] if numbers else None))
    found.seen.add(name)
    if not tag[4]:
        found.open.append(name)
        found.texts.pop(name, None)  # the last one counts; earlier ones are drafts


def _close(found: Tagged, name: str) -> None:
    """Close an element and all elements that are open in it."""
    while name in found.open:
        element = found.open.pop()
        if element in ("title", "narrative"):
            words = tidy(found.texts.pop(element, "")) or None
            setattr(found.inside[-1], element, words)
        elif element == "segment":
            found.inside.append(Draft())
