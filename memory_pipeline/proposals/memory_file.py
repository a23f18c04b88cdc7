"""MEMORY.md: insertion of approved lines without changing the rest, striking through of replaced ones, and reading.

Adding only inserts: without the inserted lines the file is byte for byte the same. A replaced line stays in place,
struck through and readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.markdown.blocks import insert_lines, newline_of, one_line, split_lines
from memory_pipeline.markdown.safe_write import decode, encode
from memory_pipeline.scope import noted, with_note, without_note
from memory_pipeline.text.sentences import run_together

PROPOSAL_ID = re.compile(r"[pf]-\d{8}-\d{3,}")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?P<title>[ \t].*|\s*)$")
_UNDERLINE = re.compile(r" {0,3}(?:={3,}|-{3,})\s*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}\s*$")
_BULLET = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+]|\d+[.)])(?:[ \t]+|$)")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?!.*`)|~{3,})")
_DATE = re.compile(r"^\(\d{4}-\d{2}-\d{2}\)\s*")


@dataclass(frozen=True)
class Promotion:
    """An approved proposal that is added to a section of MEMORY.md; ``day`` is the date of its line."""

    proposal_id: str
    section: str
    text: str
    day: date
    projects: tuple[str, ...] = ()
    """The projects, in brackets after the text."""


class AddedLines(NamedTuple):
    """The new bytes, and the ids whose words were already there in a line without the id."""

    data: bytes
    present: list[str]


@dataclass(frozen=True)
class MemoryLine:
    """A list item or paragraph of MEMORY.md on one line, without bullet, date, projects and comment.

    ``line_number`` counts from 1; ``section`` is the title of the nearest heading above ("" before the first).
    """

    line_number: int
    section: str
    text: str
    proposal_id: str | None
    project: str | None = None
    """The project of the line from its note, if there is only one."""
    lines: int = field(default=1, compare=False)
    """The number of lines of the file that it covers."""

    @property
    def is_struck(self) -> bool:
        """Whether it is struck through and no longer active."""
        return self.text.startswith("~~")


@dataclass(frozen=True)
class _Heading:
    """``start`` is the index of its line, ``first`` of the first line below it."""

    level: int
    title: str
    start: int
    first: int


def add_lines(current: bytes | None, promotions: Sequence[Promotion], sections: Sequence[str]) -> AddedLines:
    """Insert ``- (YYYY-MM-DD) text (project: x) <!-- p-… -->`` at the end of each promotion's section, in their order.

    The section is found by its heading, at any level and in any case, and created at the end of the file if missing.
    Its own content ends at the next heading of any level. Without a file (None or no bytes) ``# Memory`` is created
    with all ``sections``. Raises ValueError for a text without visible characters and for an invalid id.
    """
    empty = "\n\n".join(["# Memory", *(f"## {one_line(name)}" for name in sections)]) + "\n"
    text = decode(current) if current else empty
    newline = newline_of(text)
    lines = split_lines(text)
    sought: dict[str, list[Promotion]] = {}
    for promotion in promotions:
        if not PROPOSAL_ID.fullmatch(promotion.proposal_id) or not one_line(promotion.text):
            raise ValueError(f"{promotion.proposal_id!r} cannot be promoted: its id or its text is invalid")
        sought.setdefault(_heading_title(one_line(promotion.section)).casefold(), []).append(promotion)
    added, before = set[str](), -1
    while before < len(added):  # once more after the last: our comments may close a comment that a user left open
        before = len(added)
        for group in sought.values():  # one section at a time: thousands may be approved at once
            added |= _insert(lines, [promotion for promotion in group if promotion.proposal_id not in added], newline)
    ids = [promotion.proposal_id for promotion in promotions]
    ours = added | {line.proposal_id for line in _memory_lines(lines)}
    return AddedLines(encode("".join(lines)), [i for i in ids if i not in ours])


def lines_of(current: bytes | None) -> list[MemoryLine]:
    """Every list item and paragraph in the order of the file; code, comments, front matter and headings are left
    out."""
    return list(_memory_lines(split_lines(decode(current or b""))))


def read_lines(path: Path) -> list[MemoryLine]:
    """The lines of the file, none if it is missing."""
    return lines_of(path.read_bytes() if path.exists() else None)


def read_active_lines(path: Path) -> list[MemoryLine]:
    """The lines of the file that are not struck through."""
    return [line for line in read_lines(path) if not line.is_struck]


def normalised(text: str) -> str:
    """The normal form for comparing lines: case, spaces, date, comment, projects and the final full stop are
    ignored."""
    return without_note(_DATE.sub("", one_line(_COMMENT.sub(" ", text)), count=1)).rstrip(". ").casefold()


def _insert(lines: list[str], promotions: Sequence[Promotion], newline: str) -> set[str]:
    """Add the missing promotions of one section at its end; returns their ids."""
    if not promotions:
        return set()
    headings, section = _headings(lines, hidden_lines(lines)), one_line(promotions[0].section)
    wanted = _heading_title(section).casefold()
    heading = next((heading for heading in headings if heading.title.casefold() == wanted), None)
    new = _missing_promotions(lines, promotions, range(0) if heading is None else _extent(lines, headings, heading))
    if new and heading is None:
        gap = [""] if lines and lines[-1].strip("\ufeff \t\r\n") else []
        insert_lines(lines, len(lines), [*gap, f"## {section}", *(_rendered(p, "-") for p in new)], newline)
    elif new and heading:
        end = _end_of_content(lines, headings, heading)
        bullet = _bullet_in(lines[heading.first : end])
        insert_lines(lines, end, [_rendered(p, bullet) for p in new], newline)
    return {promotion.proposal_id for promotion in new}


def _end_of_content(lines: Sequence[str], headings: Sequence[_Heading], heading: _Heading) -> int:
    """The index after the section's own last line with content; a rule before the next heading separates sections."""
    end = next((other.start for other in headings if other.start >= heading.first), len(lines))
    while end > heading.first and (not lines[end - 1].strip() or _RULE.match(lines[end - 1])):
        end -= 1
    return end


def _missing_promotions(lines: Sequence[str], promotions: Sequence[Promotion], section: range) -> list[Promotion]:
    """Promotions whose id is not in the file and whose words are not in the section, given its line numbers.

    Of several with the same words only the first, as the others are compared with the file after it was inserted.
    """
    ids = {found for comment in _COMMENT.findall("".join(lines)) for found in PROPOSAL_ID.findall(comment)}
    there = {normalised(line.text) for line in _memory_lines(lines) if line.line_number in section}
    absent = []
    for promotion in promotions:
        words = normalised(one_line(promotion.text))
        if promotion.proposal_id not in ids and words not in there:
            absent.append(promotion)
            there.add(words)
            ids.add(promotion.proposal_id)
    return absent


def _extent(lines: Sequence[str], headings: Sequence[_Heading], heading: _Heading) -> range:
    """The line numbers of a section with its subsections, to which a user may have moved a line."""
    later = (other.start for other in headings if other.start >= heading.first and other.level <= heading.level)
    return range(heading.first + 1, next(later, len(lines)) + 1)


def _rendered(promotion: Promotion, bullet: str) -> str:
    text = with_note(one_line(promotion.text), promotion.projects)
    return f"{bullet} ({promotion.day.isoformat()}) {text} <!-- {promotion.proposal_id} -->"


def _bullet_in(lines: Sequence[str]) -> str:
    """The marker of the last outer list item, so that a new line continues the user's list."""
    outer = [found["mark"] for line in lines if (found := _BULLET.match(line)) and len(found["indent"]) < 2]
    return outer[-1] if outer and outer[-1] in "-*+" else "-"


def _heading_title(text: str) -> str:
    return " ".join(re.sub(r"(?:^|[ \t]+)#+$", "", text.strip()).split())


def _headings(lines: Sequence[str], hidden: Collection[int]) -> list[_Heading]:
    """Headings outside hidden lines, marked by # or underlined by = or -."""
    headings: list[_Heading] = []
    for index, line in enumerate(lines):
        if index in hidden:
            continue
        if found := _HEADING.match(line.removeprefix("\ufeff")):
            headings.append(_Heading(len(found["marks"]), _heading_title(found["title"]), index, index + 1))
        elif _is_underlined(lines, index) and index + 1 not in hidden:
            level = 1 if "=" in lines[index + 1] else 2
            headings.append(_Heading(level, " ".join(line.removeprefix("\ufeff").split()), index, index + 2))
    return headings


def _is_underlined(lines: Sequence[str], index: int) -> bool:
    """Whether the line is a paragraph of one line, underlined by = or - (longer ones are not supported)."""
    line = lines[index].removeprefix("\ufeff")
    if index + 1 == len(lines) or not _UNDERLINE.match(lines[index + 1]):
        return False
    alone = index == 0 or not lines[index - 1].strip() or _HEADING.match(lines[index - 1]) is not None
    return alone and bool(line.strip()) and not line.startswith(("    ", "\t", ">")) and not _BULLET.match(line)


def hidden_lines(lines: Sequence[str]) -> set[int]:
    """Indices of lines in fenced code, in multi-line comments and in front matter; an unclosed block hides nothing."""
    hidden: set[int] = set()
    index = 0
    while index < len(lines):
        line = lines[index].removeprefix("\ufeff")
        first, end = index, None
        if index == 0 and line.rstrip() == "---":
            end = _next_line(lines, index, r"(?:---|\.\.\.)\s*$")
        elif fence := _FENCE.match(line):
            end = _next_line(lines, index, rf" {{0,3}}{fence['fence']}{fence['fence'][0]}*\s*$")
        elif "<!--" in line and "-->" not in line.rpartition("<!--")[2]:
            end = _next_line(lines, index, r".*-->")
            first = index if line.strip().startswith("<!--") else index + 1
        if end is not None:
            hidden.update(range(first, end + 1))
            index = end
        index += 1
    return hidden


def _next_line(lines: Sequence[str], index: int, pattern: str) -> int | None:
    return next((below for below in range(index + 1, len(lines)) if re.match(pattern, lines[below])), None)


def _memory_lines(lines: Sequence[str]) -> Iterator[MemoryLine]:
    hidden = hidden_lines(lines)
    headings = _headings(lines, hidden)
    starts = {heading.start: heading for heading in headings}
    titles = {index for heading in headings for index in range(heading.start, heading.first)}
    section, number, parts = "", 0, list[str]()
    for index, raw in enumerate([*lines, ""]):
        line = raw.removeprefix("\ufeff")
        bullet = _BULLET.match(line)
        ends = index in hidden or index in titles or not line.strip() or _RULE.match(line) is not None
        if (ends or bullet) and parts:
            yield from _joined(number, section, parts)
            parts = []
        section = starts[index].title if index in starts else section
        if not ends:
            number = number if parts else index + 1
            parts.append(line[bullet.end() :] if bullet else line)


def _joined(number: int, section: str, parts: Sequence[str]) -> Iterator[MemoryLine]:
    raw = run_together(" ".join(part.strip() for part in parts))
    ids = [found for comment in _COMMENT.findall(raw) for found in PROPOSAL_ID.findall(comment)]
    words = _DATE.sub("", run_together(_COMMENT.sub(" ", raw)), count=1)
    text = re.sub(r"[\ud800-\udfff]", "\ufffd", without_note(words))
    if text:
        yield MemoryLine(number, section, text, ids[0] if ids else None, noted(words), len(parts))


_START = re.compile(r"\s*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
Replaced = Mapping[str, tuple[str, date]]
"""Replaced lines, each with the id of the new proposal and the day of its approval."""


def strike_lines(current: bytes, replaced: Replaced) -> bytes:
    """Strike through the lines with these ids.

    ``- (day) text <!-- p-old -->`` becomes ``- ~~(day) text~~ (superseded by p-new, day) <!-- p-old -->``. A line that
    a user moved is found; one that they removed or struck through is left alone. No other byte changes.
    """
    return _strike(current, lambda line: _superseded(replaced.get(line.proposal_id or "")))


def strike_words(current: bytes, replaced: Replaced) -> bytes:
    """Strike through lines that are identified by their words alone.

    Of several equal lines the first is struck through; if there is none, the words within a longer line. Words that are
    missing or already struck through change nothing.
    """
    text = decode(current)
    done = re.findall(r"\((?:superseded by )?([pf]-\d{8}-\d{3,}), \d{4}-", text)  # written before its process died
    left = {normalised(words): (words, by) for words, by in replaced.items() if by[0] not in done}
    struck = _strike(current, lambda line: _superseded(left.pop(normalised(line.text), ("", None))[1]))
    lines = split_lines(decode(struck))
    hidden = hidden_lines(lines)
    for words, (by, day) in left.values():
        if words.strip():
            _strike_within(lines, hidden, words, f" ({by}, {day.isoformat()})")
    return encode("".join(lines))


def strike_line(current: bytes, wanted: MemoryLine, day: date) -> bytes | None:
    """The bytes with this line struck through, as a user would retire it; None if it is not active.

    The line is found by its id, section and words, at any position.
    """
    own = [(wanted.proposal_id, wanted.section, wanted.text)]

    def note(line: MemoryLine) -> str | None:
        if (line.proposal_id, line.section, line.text) not in own:
            return None
        own.clear()  # only the first one
        return f" (retired, {day.isoformat()})"

    struck = _strike(current, note)
    return None if own else struck


def _superseded(by: tuple[str, date] | None) -> str | None:
    return f" (superseded by {by[0]}, {by[1].isoformat()})" if by else None


def _strike(current: bytes, note_for: Callable[[MemoryLine], str | None]) -> bytes:
    """Strike through the active lines that get a note, and append it."""
    lines = split_lines(decode(current))
    hidden = hidden_lines(lines)
    ends = hidden | {heading.start for heading in _headings(lines, hidden)}
    for line in list(_memory_lines(lines)):
        if not line.is_struck and (note := note_for(line)):
            _strike_item(lines, line.line_number - 1, note, ends)
    return encode("".join(lines))


def _strike_item(lines: list[str], first: int, note: str, ends: Collection[int]) -> None:
    """Strike through the item or paragraph that begins at this line, and append the note."""
    last = first
    while last + 1 < len(lines) and lines[last + 1].strip() and not _BULLET.match(lines[last + 1]):
        if last + 1 in ends or _RULE.match(lines[last + 1]):
            break
        last += 1
    for part in range(first, last):
        lines[part] = _strike_through(lines[part], len(lines[part].rstrip()), "")
    comment = _COMMENT.search(lines[last])
    end = comment.start() if comment else len(lines[last].rstrip())
    lines[last] = _strike_through(lines[last], end, note)


def _strike_within(lines: list[str], hidden: Collection[int], text: str, note: str) -> None:
    """Strike through the first occurrence of a sentence within a line, and insert the note; the rest of the line stays
    valid."""
    words = re.compile(r"(?<!~~)" + r"\s+".join(map(re.escape, text.split())))
    for index, line in enumerate(lines):
        place = words.search(line) if index not in hidden else None
        if place and "<!--" not in line[: place.start()]:
            lines[index] = f"{line[: place.start()]}~~{place[0]}{note}~~{line[place.end() :]}"
            return


def _strike_through(line: str, end: int, note: str) -> str:
    """The line with its text up to ``end`` struck through, followed by the note."""
    mark = _START.match(line)
    begin = mark.end() if mark else len(line) - len(line.lstrip())
    text = line[begin:end].rstrip()
    return f"{line[:begin]}~~{text}~~{note}{line[begin + len(text) :]}" if text else line
