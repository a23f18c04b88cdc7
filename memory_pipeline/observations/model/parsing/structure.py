"""The tags, headings and labels of an answer: which of its lines are whose.

A tag counts where it begins a line or follows another one; a closing tag also where it ends what is open. Any other
stands in somebody's sentence ("the <title> is missing") and is text. Headings and labels are how models separate
segments that were to be in tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memory_pipeline.observations.model.parsing.facts import BULLET, DATE, HEADING, FactList
from memory_pipeline.observations.model.parsing.marks import (
    CONTAINERS,
    TEXTS,
    attributes_of,
    element_of,
    fact_line,
    from_to,
    priority_in,
)
from memory_pipeline.text.spaces import run_together

MAX_NAME = 30
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
    name = element_of(words) if len(words) < MAX_NAME else None
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


TAG = re.compile(r"<[ \t]{0,3}(/?)[ \t]{0,3}([A-Za-z][A-Za-z_-]{2,24})([^<>\n]{0,300}?)(/?)(?:>|\n|\Z)")
_ENDS = re.compile(r"\s*(?:<|\Z|`{3})")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w-]{0,20}[ \t]*(?=\n|\Z|[<*\-\[{#])")
_QUOTE = re.compile(r"\A[ \t]{0,3}>[ \t](?=[ \t]*\S)")


@dataclass(slots=True)
class Draft:
    """A segment as it is being read."""

    title: str | None = None
    narrative: str | None = None
    first: int | None = None
    last: int | None = None
    lines: list[str] = field(default_factory=list)
    facts: FactList | None = None
    """What the lines say, where that need not be read out of them."""


@dataclass(slots=True)
class Structure:
    """What stands where in an answer."""

    inside: list[Draft] = field(default_factory=list)
    """What the tags hold."""
    outside: list[Draft] = field(default_factory=lambda: [Draft()])
    texts: dict[str, str] = field(default_factory=dict)
    has_tags: bool = False
    has_observations: bool = False
    has_segments: bool = False
    is_closed: bool = True
    """False when the text ends while something is open: it was cut, or a tag forgotten."""
    is_last_cut: bool = False
    """It ends so within a line of facts, which may be half of it."""
    guesses: list[str] = field(default_factory=list)
    """What had to be guessed, in words."""


def read_structure(text: str) -> Structure:
    """What the tags, headings and labels of a text say."""
    reader = _Reader()
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        reader.line(_QUOTE.sub("", line[fence.end() :] if fence else line, count=1), is_fence=bool(fence))
    structure = reader.end()
    structure.is_last_cut = structure.is_last_cut and not text.endswith("\n")
    return structure


class _Reader:
    """Goes through an answer line by line."""

    def __init__(self) -> None:
        self.found = Structure()
        self.open: list[str] = []
        """The elements that are open, the innermost last; a label ("Current task:") opens one in `label` instead."""
        self.label: str | None = None
        self.words: list[str] = []
        """Of the element or label that is open."""
        self.attributes: dict[str, str] = {}
        self.seen: set[str] = set()
        self.is_after_segment = False
        self.is_in_line = False
        """The last thing was a line of a draft."""

    def line(self, line: str, *, is_fence: bool = False) -> None:
        start = scanned = 0
        in_text, had_tag = False, is_fence
        for tag in TAG.finditer(line):
            before = line[scanned : tag.start()]
            in_text = in_text or bool(before.strip(" \t*-•"))
            name = element_of(tag[2]) or element_of(tag[2] + tag[3].split("=")[0])
            if name and self._counts(line, tag, name, in_text=in_text, is_listed=bool(before.strip())):
                self._feed(line[start : tag.start()], is_part=True)
                start, in_text, had_tag, self.is_in_line = tag.end(), False, True, False
                if tag[1]:
                    self._close(name)
                else:
                    self._start(name, tag)
            scanned = tag.end()
        self._feed(line[start:], is_part=had_tag)

    def end(self) -> Structure:
        self._end_label()
        if self.open:
            self.found.is_closed = False
            self.found.is_last_cut = self.is_in_line or (self.open[-1] == "fact" and bool(self.words))
            self._guess(f"the answer ends within <{self.open[-1]}>")
        while self.open:
            self._pop()
        if self.found.has_tags and self.found.has_segments and "segment" not in self.seen:
            self._guess("the segments have headings instead of tags")
        if self.found.has_tags and not self.found.has_observations:
            self._guess("there is no <observations>")
        return self.found

    @property
    def draft(self) -> Draft:
        """Where what comes next belongs."""
        if not any(name in CONTAINERS for name in self.open):
            return self.found.outside[-1]
        if not self.found.inside or self.is_after_segment:
            self.found.inside.append(Draft())
            self.is_after_segment = False
        return self.found.inside[-1]

    def _counts(self, line: str, tag: re.Match[str], name: str, *, in_text: bool, is_listed: bool) -> bool:
        if not tag[1]:
            return not in_text and (not is_listed or name == "fact")
        if self.open and self.open[-1] == name and name not in CONTAINERS:
            return True
        return not in_text or (name in (*self.open, "fact") and bool(_ENDS.match(line, tag.end())))

    def _start(self, name: str, tag: re.Match[str]) -> None:
        self._end_label()
        if self.open and self.open[-1] not in CONTAINERS:
            self._leave(self.open[-1])
        if name == "observations" and self.open:
            self._leave(self.open[0])
        elif name in ("title", "narrative", "facts") and "facts" in self.open:
            self._leave("facts")
        elif name == "segment":
            self._leave(next((other for other in self.open if other != "observations"), None))
        self.seen.add(name)
        self.found.has_observations = self.found.has_observations or name == "observations"
        self.found.has_tags = self.found.has_tags or name in (*CONTAINERS, "fact")
        self.attributes = attributes_of(tag[3])
        if name == "segment":
            self._new_draft(*from_to(self.attributes))
            self.found.has_segments = True
        elif name in ("title", "narrative") and "segment" not in self.open and _has(self.draft, name):
            self._new_draft()
        self.open.append("observations" if name == "fact" and not self.open else name)
        if self.open[-1] != name:
            self.open.append(name)
        if tag[4]:
            self._pop()

    def _close(self, name: str) -> None:
        self._end_label()
        if name == "fact" and name not in self.open:
            name = "observations"
        if name not in self.open:
            self._guess(f"</{name}> closes nothing")
            return
        if self.open[-1] != name:
            self._leave(self.open[self.open.index(name) + 1])
        self._pop()

    def _leave(self, name: str | None) -> None:
        """Close it and what is in it, although nobody wrote so."""
        while name in self.open:
            self._guess(f"<{self.open[-1]}> is never closed")
            self._pop()

    def _pop(self) -> None:
        name = self.open.pop()
        if name == "segment":
            self.is_after_segment = True
        elif name not in CONTAINERS:
            self._end_of_words(name)

    def _end_label(self) -> None:
        if self.label:
            name, self.label = self.label, None
            self._end_of_words(name)

    def _end_of_words(self, name: str) -> None:
        lines, self.words = self.words, []
        text = run_together("\n".join(lines))
        if name == "fact":
            self.draft.lines += lines if any(map(BULLET.match, lines)) else [fact_line(text, self.attributes)]
        elif name == "title":
            self.draft.title = self.draft.title or text or None
        elif name == "narrative":
            self.draft.narrative = self.draft.narrative or text or None
        elif text:
            self.found.texts[name] = text  # the last one: others are drafts

    def _new_draft(self, first: int | None = None, last: int | None = None, title: str | None = None) -> None:
        inside = any(name in CONTAINERS for name in self.open) or title is None
        (self.found.inside if inside else self.found.outside).append(Draft(title, None, first, last))
        self.is_after_segment = False

    def _feed(self, text: str, *, is_part: bool) -> None:
        """A line, or what stands of it before, between or after tags."""
        if is_part and not text.strip():
            return
        if self.open and self.open[-1] not in CONTAINERS:
            self.words.append(text)
        elif not self._is_of_label(text) and (
            "facts" in self.open or not (self._is_label(text) or self._is_heading(text))
        ):
            self.draft.lines.append(text)
            self.is_in_line = self.is_in_line or bool(text.strip())

    def _is_of_label(self, text: str) -> bool:
        """Whether it goes on with what a label began."""
        if not self.label:
            return False
        bullet = BULLET.match(text)
        ends = not text.strip() and self.words
        if ends or begins_other(text) or (bullet and (self.words or self.label in ("title", "narrative"))):
            self._end_label()
            return False
        self.words += [text[bullet.end() if bullet else 0 :]] if text.strip() else []
        return True

    def _is_label(self, text: str) -> bool:
        label = label_of(text)
        if not label:
            return False
        name, rest = label
        if name == "facts":
            self.draft.lines += [rest] if rest else []
            return True
        if name in ("title", "narrative") and "segment" not in self.open and _has(self.draft, name):
            self._new_draft(title="")
        self.label, self.words = name, [rest] if rest else []
        if name in ("title", "used", "ended") and rest:
            self._end_label()
        return True

    def _is_heading(self, text: str) -> bool:
        heading = heading_of(text)
        if not heading or heading.priority:
            return False
        if heading.element:
            self.label, self.words = heading.element, []
        elif heading.title and "segment" in self.open:
            self.draft.title = self.draft.title or heading.title
        elif heading.title:
            self._new_draft(heading.first, heading.last, title=heading.title)
            self.found.has_segments = self.found.has_segments or bool(self.open)
        return True

    def _guess(self, words: str) -> None:
        if words not in self.found.guesses:
            self.found.guesses.append(words)


def _has(draft: Draft, name: str) -> bool:
    """Whether an element of this name would be its second one, or comes after its facts."""
    return bool(draft.title if name == "title" else draft.narrative) or any(line.strip() for line in draft.lines)
