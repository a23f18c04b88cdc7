"""The lines of a reflector's answer: `* 🔴 section | kind [o3 o7 -o2] text`, and what models make of it.

Nothing raises, and time is linear in the answer. What names no observation is no line: talk, headings, tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.observations.parsing.cleaning import (
    cleaned,
    is_too_little,
    shortened,
    without_loops,
    without_thinking,
)
from memory_pipeline.observations.parsing.facts import BULLET, HEADING, tidy
from memory_pipeline.observations.parsing.marks import KINDS
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM

MAX_LINES = 300
MAX_LINE = 4_000
"""Characters of a line that are looked at."""
MAX_SOURCES = 60

_BRACKET = re.compile(r"[\[(（【]([^\[\]()（）【】\n]{1,600})[\])）】]")
_SEPARATOR = re.compile(r"[\s,;、&+]+")
_NUMBER = re.compile(r"([-–−]?)[oO#]{1,2}(\d{1,5})(?:[-–]{1,2}[oO#]{0,2}(\d{1,5}))?")
_MARK = re.compile(
    r"([🔴❗🟠🟡🟢🔵⚪])\ufe0f?|\[([!?iI])\]|\b(critical|high|important|medium|note|low)\b(?=\s*[|:：)\]—–-])", re.I
)
_PRIORITY = {
    **{"🔴": HIGH, "❗": HIGH, "🟠": MEDIUM, "🟡": MEDIUM, "🟢": LOW, "🔵": LOW, "⚪": LOW},
    **{"!": HIGH, "?": MEDIUM, "i": LOW, "critical": HIGH, "high": HIGH},
    **{"important": MEDIUM, "medium": MEDIUM, "note": LOW, "low": LOW},
}
_BETWEEN = re.compile(r"[\s|:：·,;/()*_`—–-]+")
_KIND = re.compile(rf"(?:{'|'.join(k.replace('_', '[ _-]') for k in KINDS)})s?(?![\w'’-])", re.I)
_LEFT = re.compile(r"^[\s|:：·,;)\]*_—–-]+|[\s|:：(\[*_—–-]+$")
_WIDEST_RANGE = 20


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """One line, taken apart; None where it does not say."""

    text: str
    sources: tuple[int, ...]
    """Numbers of observations."""
    replaced: tuple[int, ...]
    section: int | None
    kind: str | None
    priority: str | None


@dataclass(frozen=True, slots=True)
class ParsedReflection:
    lines: tuple[ParsedLine, ...]
    loops: bool = False
    """Whether it said the same again and again."""


def parse_reflection(text: str, sections: Sequence[str], *, is_cut: bool = False) -> ParsedReflection:
    """The lines of an answer that name observations, in order. `sections` are the names of the sections.

    Of an answer that was cut off the last line goes: half of it may say the opposite.
    """
    words, _ = without_thinking(cleaned(text))
    words, has_loops = without_loops(words)
    known = {name.casefold(): i for i, name in reversed(list(enumerate(sections)))} | {"user": 0}
    names = re.compile("|".join(re.escape(n) for n in sorted(known, key=len, reverse=True)) + r"(?![\w'’])", re.I)
    found: list[ParsedLine] = []
    under: int | None = None
    entries = list(_entries(words))
    for line in entries[:-1] if is_cut else entries:
        heading = HEADING.match(line)
        if heading:
            name = names.search(heading["words"])
            under = known[name[0].casefold()] if name else None
        elif (parsed := _parsed(line, names, known, under)) and len(found) < MAX_LINES:
            found.append(parsed)
    return ParsedReflection(tuple(found), has_loops)


def _entries(text: str) -> Iterator[str]:
    """Lines with what goes on below them."""
    entry: list[str] = []
    for line in text.split("\n"):
        begins = BULLET.match(line) or HEADING.match(line) or _MARK.match(line.lstrip()) or _is_sources(line.strip())
        if begins or not line.strip() or line.lstrip().startswith(("<", "```")):
            if entry:
                yield " ".join(entry)
            entry = []
        if begins or (entry and line.strip()):
            entry.append(line.strip() if entry else line)
    if entry:
        yield " ".join(entry)


def _is_sources(line: str) -> bool:
    found = _BRACKET.match(line)
    return bool(found and _numbers(found[1]))


def _parsed(line: str, names: re.Pattern[str], known: dict[str, int], under: int | None) -> ParsedLine | None:
    bullet = BULLET.match(line)
    line = line[bullet.end() if bullet else 0 :][:MAX_LINE]
    brackets = [(b, numbers) for b in _BRACKET.finditer(line) if (numbers := _numbers(b[1]))]
    if not brackets:
        return None
    pieces, end = [], 0
    for bracket, _ in brackets:
        pieces.append(line[end : bracket.start()])
        end = bracket.end()
    head, tail = pieces[0], " ".join([*pieces[1:], line[end:]])
    priority, section, kind, rest = _marks(head, names, known)
    said = tidy(_LEFT.sub("", f"{rest} {tail}" if len(rest.split()) > 1 else tail) or rest)
    said = re.sub(r"\s+([.,;:!?])", r"\1", said)
    if is_too_little(said):
        return None
    numbers = [n for _, found in brackets for n in found][:MAX_SOURCES]
    replaced = tuple(dict.fromkeys(-n for n in numbers if n < 0))
    sources = tuple(dict.fromkeys(n for n in numbers if n > 0 and n not in replaced))
    return ParsedLine(shortened(said), sources, replaced, under if section is None else section, kind, priority)


def _marks(head: str, names: re.Pattern[str], known: dict[str, int]) -> tuple[str | None, int | None, str | None, str]:
    """Priority, section and kind that the head of a line has, and what else stands there."""
    priority: str | None = None
    section: int | None = None
    kind: str | None = None
    position = 0
    while position < len(head):
        if found := _BETWEEN.match(head, position):
            pass
        elif priority is None and (found := _MARK.match(head, position)):
            priority = _PRIORITY[next(filter(None, found.groups())).lower()]
        elif section is None and (found := names.match(head, position)):
            section = known[found[0].casefold()]
        elif kind is None and (found := _KIND.match(head, position)):
            kind = next(k for k in KINDS if found[0].lower().replace(" ", "_").replace("-", "_").startswith(k))
        else:
            break
        position = found.end()
    return priority, section, kind, head[position:].strip()


def _numbers(inside: str) -> list[int]:
    """The observations in a bracket, those that are replaced negative; none if anything else is in it."""
    found: list[int] = []
    for word in filter(None, _SEPARATOR.split(inside.strip())):
        if word.lower() in ("and", "replaces", "sources:", "from"):
            continue
        number = _NUMBER.fullmatch(word)
        if not number:
            return []
        first, last = int(number[2]), int(number[3] or number[2])
        if not first <= last <= first + _WIDEST_RANGE:
            found += [first, last]
            continue
        found += [-n if number[1] else n for n in range(first, last + 1)]
    return found
