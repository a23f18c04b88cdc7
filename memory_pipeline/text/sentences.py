"""Sentences of chat text with their positions; code, tables and headings are distinguished from prose; and texts
on one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_pipeline.text.regex import deferred

_FENCE = deferred(r"^\s*(```|~~~)")
_MARKS = r"\s*(?:(?:[-*•‣]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)+"
"""The markers of a list item, and of one nested in it on the same line."""
_BULLET = deferred("^" + _MARKS)
_NEXT_ITEM = deferred(r"(:)?[;,.]?[ \t]*\n" + _MARKS)
_BLANK_LINES = deferred(r"\n[ \t\n]*\n")
_HEADING = deferred(r"^\s*#{1,6}\s+\S|^\s*\*\*[^*]+\*\*:?\s*$")
_TABLE_OR_RULE = deferred(r"^\s*\||^\s*[-=_*]{3,}\s*$|^\s{4,}\S.*[;{}()=]\s*$")
_END = deferred(r"(?<![.!?…])[.!?…]+[\"'”’)`*]*(?=\s)|[。！？]+")
_ABBREVIATION = deferred(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no)|\s[A-Za-z]|(?<![\w./:-])\d{1,2})\.$", re.I)
_CLOSING_PUNCTUATION = ".!?…:;,。！？)\"'”’"
"""Characters at the end of a line after which the paragraph continues; a line without them counts as an item of a
list."""
MAX_ABBREVIATION = 8
_EMPHASIS = deferred(
    r"(?<![\w(*])\*\*(?=[^\s*])([^*\n]{1,300}?)(?<!\s)\*\*(?!\w)"
    r"|(?<!\w)__(?=[^\s_])([^_\n]{1,300}? [^_\n]{1,300}?)__(?!\w)"
)
"""Bold text, but not the power in "1000**3", the arguments "**kwargs" or the name `__init__`."""
_LINK = deferred(r"!?\[([^\]\[]{0,500})\]\([^)\s]*\)")
# including the joiner after an emoji
_DECORATION = deferred(r"[\U0001F300-\U0001FAFF\u2600-\u27BF\u2B00-\u2BFF](?:\uFE0F?\u200D)?|\uFE0F")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text[start:end]` of its source, without bullet and surrounding space."""

    start: int
    end: int
    kind: str
    """`prose`, `bullet` or `heading`."""
    paragraph: int
    """Sentences with the same number are in one paragraph or list item."""


def sentences(text: str) -> Iterator[Sentence]:
    """Every sentence outside code blocks and tables, in order."""
    offset, fenced, paragraph = 0, False, 0
    for line in text.splitlines(keepends=True):
        start, offset = offset, offset + len(line)
        if _FENCE.match(line):
            fenced = not fenced
            paragraph += 1
        elif fenced or not line.strip() or _TABLE_OR_RULE.match(line):
            paragraph += 1
        elif _HEADING.match(line):
            paragraph += 1
            yield _trimmed(text, start, start + len(line), "heading", paragraph)
        else:
            bullet = _BULLET.match(line)
            paragraph += bool(bullet)
            begin = start + (bullet.end() if bullet else 0)
            yield from _sentences_of_line(text, begin, start + len(line), "bullet" if bullet else "prose", paragraph)
            paragraph += line.rstrip()[-1] not in _CLOSING_PUNCTUATION  # without closing punctuation: an item of a list


def _sentences_of_line(text: str, start: int, end: int, kind: str, paragraph: int) -> Iterator[Sentence]:
    begin = start
    for stop in _END.finditer(text, start, end):
        if _ABBREVIATION.search(text, max(begin, stop.start() - MAX_ABBREVIATION), stop.start() + 1):
            continue
        yield _trimmed(text, begin, stop.end(), kind, paragraph)
        begin = stop.end()
    if text[begin:end].strip():
        yield _trimmed(text, begin, end, kind, paragraph)


def _trimmed(text: str, start: int, end: int, kind: str, paragraph: int) -> Sentence:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Sentence(start, end, kind, paragraph)


def squeeze(text: str) -> str:
    """The text on one line, without Markdown emphasis, bullets, emoji and link targets; list items are joined."""
    text = _EMPHASIS.sub(r"\1\2", _DECORATION.sub("", _LINK.sub(r"\1", text)))
    text = _BLANK_LINES.sub("\n", text)  # a paste is thousands, in each of which the next item would be looked for
    return " ".join(_NEXT_ITEM.sub(lambda end: ": " if end[1] else "; ", _BULLET.sub("", text)).split())


def clip(text: str, limit: int) -> str:
    """The text on one line, cut at a word with an ellipsis if it is longer."""
    line = run_together(text)
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[limit // 2 :] else cut).rstrip() + "…"


CODE = re.compile(r"(`[^`\n]{1,300}`)")
"""Inline code in Markdown; the odd parts of `split` are code."""
_CODE_OVER_LINES = re.compile(r"(`[^`]{1,300}`)")
_BREAK = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def run_together(text: str) -> str:
    """The text on one line with runs of white space reduced to one space, except inside code, where each character
    counts.

    The function is idempotent.
    """
    if "`" not in text:
        return " ".join(text.split())
    parts = _CODE_OVER_LINES.split(text)
    parts = [_BREAK.sub(" ", part) if i % 2 else _squeezed(part) for i, part in enumerate(parts)]
    return "".join(parts).strip()


def _squeezed(text: str) -> str:
    """The text with runs of spaces reduced to one space."""
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"
