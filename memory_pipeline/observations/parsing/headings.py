"""Headings and labels, with which models tell segments apart that were to be in tags."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_pipeline.observations.parsing.facts import BULLET, DATE, HEADING
from memory_pipeline.observations.parsing.marks import priority_in
from memory_pipeline.observations.parsing.tags import TEXTS, element_of

LONGEST_NAME = 30
"""Characters of a heading that names an element."""

_LABEL = re.compile(
    r"[ \t]{0,12}(?:[-*•>][ \t]{1,4})?[*_#]{0,6}[ \t]{0,4}(title|narrative|summary|(?:key[ -])?facts|current[ _-]?task"
    r"|suggested[ _-]?(?:response|continuation)|next[ -]steps?|(?:used|ended)(?:[ -]observations)?)"
    r"[*_]{0,3}[ \t]{0,4}[:：][*_]{0,3}[ \t]{0,4}([^\n]*)",
    re.I,
)
_BOLD_HEADING = re.compile(
    r"[ \t]*(?:\*\*|__)?(?P<words>segment\s+\d+[^\n]{0,200})|[ \t]*\*\*(?P<bold>[^*\n]{3,80})\*\*:?[ \t]*$", re.I
)
_NUMBERED = re.compile(r"(?:segment|topic)\s*\d*\s*(?:[:：.–—-]\s*)?", re.I)
_FROM_TO = re.compile(r"[(\[（]?(?:messages?\s*)?#?(\d{1,6})\s?(?:-|–|—|to|\.\.)\s?#(\d{1,6})[)\]）]?")
_PLAIN_HEADING = re.compile(
    r"\W*(?:key |extracted |session )?(?:observations?|facts?|segments$|memor(?:y|ies)|answer|output)\b.{0,60}", re.I
)


@dataclass(frozen=True, slots=True)
class Heading:
    """What a heading begins: an element, a list of one priority, a segment, or nothing of these."""

    element: str | None = None
    priority: str | None = None
    title: str | None = None
    first: int | None = None
    last: int | None = None


def begins_other(text: str) -> bool:
    """Whether a line is a heading or a label."""
    return bool(HEADING.match(text) or _LABEL.match(text) or _BOLD_HEADING.match(text))


def label_of(text: str) -> tuple[str, str] | None:
    """The element that a line names ("Current task: …"), and what it says of it. A list line that is not bold names
    only what belongs to the whole answer: in a list, "* Summary: …" is a fact."""
    found = _LABEL.match(text)
    name = element_of(found[1]) if found else None
    if not found or not name or (BULLET.match(text) and "**" not in text and name not in TEXTS[2:]):
        return None
    return name, found[2].strip(" \t*_")


def heading_of(text: str) -> Heading | None:
    """What a line begins, if it is a heading: with #, in bold type alone, or "Segment 3: …"."""
    found = HEADING.match(text) or _BOLD_HEADING.match(text)
    if not found:
        return None
    words = next(filter(None, found.groups()), "").strip(" \t*_#:：")
    name = element_of(words) if len(words) < LONGEST_NAME else None
    if name in TEXTS:
        return Heading(element=name)
    if name or not words or _PLAIN_HEADING.fullmatch(words) or DATE.fullmatch(words):
        return Heading()
    if not _NUMBERED.match(words) and (priority := priority_in(words)):
        return Heading(priority=priority)
    place = _FROM_TO.search(words)
    first, last = (int(place[1]), int(place[2])) if place else (None, None)
    title = _NUMBERED.sub("", _FROM_TO.sub("", words), count=1).strip(" \t*_:：–—-")
    return Heading(None, None, title or words, first, last)
