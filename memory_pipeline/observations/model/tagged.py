"""The format of an answer without a JSON schema: elements, a list of facts, and list lines with marks.

A tag counts if it begins a line or follows another tag; a closing tag also if it ends a line. Any other tag is part of
a sentence ("the <title> is missing") and counts as text, as do misspelt tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memory_pipeline.llm.answers.lines import Entry, entries, tidy
from memory_pipeline.llm.answers.structured import numbers_in

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
