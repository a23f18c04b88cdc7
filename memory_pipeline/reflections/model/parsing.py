"""The lines of a reflector's answer: `* 🔴 section | kind {tag} [o3 o7 -o2] text`, and what models make of it.

`[o3 m1a2b3c]` says that a line of MEMORY.md says it already, `-m1a2b3c` that one says something else; a `<summary>`
tells what was new. Nothing raises, and time is linear in the answer. What names no observation is no line: talk,
headings, tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.degenerate import is_too_little, shortened, without_loops
from memory_pipeline.llm.answers.lines import tidy
from memory_pipeline.reflections.types import UNFILED
from memory_pipeline.text.kinds import KINDS
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM

BULLET = re.compile(r"[ \t]*(?:[-*•](?=[ \t🔴🟡🟢✅\[])|\d{1,3}[.)](?=[ \t]))[ \t]*")
HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<words>[^\n]*)")
MAX_LINES = 300
MAX_LINE = 4_000
"""Characters of a line that are looked at."""
MAX_SOURCES = 60
MAX_SUMMARY = 600
MAX_TAGS, MAX_TAG = 5, 40

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
_NO_SECTION = re.compile(
    rf"(?:(?:none|reflected)[ *_]*\||[^|{{}}\[\]\n]{{1,40}}\|(?=[\s*_]*(?:{_KIND.pattern}|\{{)))", re.I
)
"""What stands in the section's place and is none of them."""
_UNFILED = re.compile(r"\W*(?:none|reflected)\b", re.I)
_TAGS = re.compile(r"\{([^{}\[\]\n]{1,200})\}")
_TAG = re.compile(rf"[\w.+#/@ -]{{1,{MAX_TAG}}}")
_MEMORY = re.compile(r"([-–−]?)m([0-9a-f]{6})", re.I)
"""A line of MEMORY.md, as `context_files.py` numbers them."""
_SUMMARY, _SUMMARY_ENDS = re.compile(r"<summary>", re.I), re.compile(r"</summary>", re.I)
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
    tags: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    """Ids of lines of MEMORY.md."""


@dataclass(frozen=True, slots=True)
class KnownToMemory:
    """Observations, by number, that say what lines of MEMORY.md, by id, say already."""

    sources: tuple[int, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedReflection:
    lines: tuple[ParsedLine, ...]
    loops: bool = False
    """Whether it said the same again and again."""
    known: tuple[KnownToMemory, ...] = ()
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class _Refs:
    """What a bracket names; what is replaced or contradicted has a minus."""

    observations: tuple[int, ...]
    memory: tuple[str, ...] = ()


def parse_reflection(text: str, sections: Sequence[str], *, is_cut: bool = False) -> ParsedReflection:
    """The lines of an answer that name observations, in order. `sections` are the names of the sections.

    Of an answer that was cut off the last line goes: half of it may say the opposite.
    """
    words, _ = without_thinking(cleaned(text))
    words, has_loops = without_loops(words)
    words, summary = _without_summary(words)
    known = {name.casefold(): i for i, name in reversed(list(enumerate(sections)))} | {"user": 0}
    names = re.compile("|".join(re.escape(n) for n in sorted(known, key=len, reverse=True)) + r"(?![\w'’])", re.I)
    found: list[ParsedLine] = []
    repeated: list[KnownToMemory] = []
    under: int | None = None
    entries = list(_entries(words))
    for line in entries[:-1] if is_cut else entries:
        heading = HEADING.match(line)
        if heading:
            name = names.search(heading["words"])
            under = known[name[0].casefold()] if name else UNFILED if _UNFILED.match(heading["words"]) else None
            continue
        parsed = _parsed(line, names, known, under)
        if isinstance(parsed, KnownToMemory) and len(repeated) < MAX_LINES:
            repeated.append(parsed)
        elif isinstance(parsed, ParsedLine) and len(found) < MAX_LINES:
            found.append(parsed)
    return ParsedReflection(tuple(found), has_loops, tuple(repeated), None if is_too_little(summary) else summary)


def _without_summary(text: str) -> tuple[str, str]:
    """The text without its summary, which goes on to the end where it is not closed, and this on one line."""
    begin = _SUMMARY.search(text)
    if not begin:
        return text, ""
    end = _SUMMARY_ENDS.search(text, begin.end())
    inside = text[begin.end() : end.start() if end else len(text)]
    rest = f"{text[: begin.start()]}\n{text[end.end() :] if end else ''}"
    return rest, shortened(tidy(inside), MAX_SUMMARY)


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
    return bool(found and _refs(found[1]))


def _parsed(
    line: str, names: re.Pattern[str], known: dict[str, int], under: int | None
) -> ParsedLine | KnownToMemory | None:
    bullet = BULLET.match(line)
    line = line[bullet.end() if bullet else 0 :][:MAX_LINE]
    brackets = [(b, refs) for b in _BRACKET.finditer(line) if (refs := _refs(b[1]))]
    if not brackets:
        return None
    pieces, end = [], 0
    for bracket, _ in brackets:
        pieces.append(line[end : bracket.start()])
        end = bracket.end()
    head, tail = pieces[0], _joined([*pieces[1:], line[end:]])
    numbers = [n for _, refs in brackets for n in refs.observations][:MAX_SOURCES]
    memory = [m for _, refs in brackets for m in refs.memory][:MAX_SOURCES]
    replaced = tuple(dict.fromkeys(-n for n in numbers if n < 0))
    sources = tuple(dict.fromkeys(n for n in numbers if n > 0 and n not in replaced))
    if repeated := tuple(m for m in memory if not m.startswith("-")):
        return KnownToMemory(sources, repeated)
    marks, rest = _marks(head, names, known)
    said = tidy(_LEFT.sub("", _joined([rest, tail]) if len(rest.split()) > 1 else tail) or rest)
    if is_too_little(said):
        return None
    contradicted = tuple(dict.fromkeys(m[1:] for m in memory))
    section = under if marks.section is None else marks.section
    return ParsedLine(shortened(said), sources, replaced, section, marks.kind, marks.priority, marks.tags, contradicted)


def _joined(pieces: Sequence[str]) -> str:
    """What stood between brackets, without a space where a sentence goes on with its full stop."""
    whole, *others = pieces
    for piece in others:
        whole = whole.rstrip() + piece if piece.startswith(tuple(".,;:!?")) else f"{whole} {piece}"
    return whole


@dataclass(frozen=True, slots=True)
class _Marks:
    priority: str | None
    section: int | None
    kind: str | None
    tags: tuple[str, ...]


def _marks(head: str, names: re.Pattern[str], known: dict[str, int]) -> tuple[_Marks, str]:
    """What the head of a line says of it, and what else stands there."""
    priority: str | None = None
    section: int | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
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
        elif not tags and (found := _TAGS.match(head, position)):
            tags = _tags(found[1])
        elif section is None and (found := _NO_SECTION.match(head, position)):
            section = UNFILED
        else:
            break
        position = found.end()
    return _Marks(priority, section, kind, tags), head[position:].strip()


def _tags(inside: str) -> tuple[str, ...]:
    words = (" ".join(word.split()).lstrip("#").lower() for word in re.split(r"[,;、，|]", inside))
    return tuple(dict.fromkeys(word for word in words if _TAG.fullmatch(word)))[:MAX_TAGS]


def _refs(inside: str) -> _Refs | None:
    """The observations and lines of MEMORY.md in a bracket; None if there are none, or anything else is in it."""
    found: list[int] = []
    memory: list[str] = []
    for word in filter(None, _SEPARATOR.split(inside.strip())):
        if word.lower() in ("and", "replaces", "sources:", "from"):
            continue
        if line := _MEMORY.fullmatch(word):
            memory.append(f"{'-' if line[1] else ''}m{line[2].lower()}")
            continue
        number = _NUMBER.fullmatch(word)
        if not number:
            return None
        first, last = int(number[2]), int(number[3] or number[2])
        if not first <= last <= first + _WIDEST_RANGE:
            found += [first, last]
            continue
        found += [-n if number[1] else n for n in range(first, last + 1)]
    return _Refs(tuple(found), tuple(memory)) if found or memory else None
