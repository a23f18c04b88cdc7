"""Striking through the lines of MEMORY.md whose place an approved line takes: they stay where they are, to be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from memory_pipeline.files.blocks import split_lines
from memory_pipeline.files.safe_write import decode, encode
from memory_pipeline.proposals.memory_file import hidden_lines

_START = re.compile(r"\s*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


def strike_lines(current: bytes, replaced: Mapping[str, tuple[str, date]]) -> bytes:
    """Strike through the lines that carry these ids; ``replaced`` says by which proposal, approved on which day.

    ``- (day) text <!-- p-old -->`` becomes ``- ~~(day) text~~ (superseded by p-new, day) <!-- p-old -->``. A line that
    a person moved is found, one that they removed or struck through is let be. Nothing else changes by a byte.
    """
    if not replaced:
        return current
    lines = split_lines(decode(current))
    hidden = hidden_lines(lines)
    for index, line in enumerate(lines):
        comment = re.search(r"<!--[^>]*?\b(?P<id>p-\d{8}-\d{3,})(?!\d)[^>]*?-->", line)
        if comment is None or index in hidden or comment["id"] not in replaced:
            continue
        first = _first_of_item(lines, index)
        if "~~" in lines[first]:
            continue
        by, day = replaced[comment["id"]]
        for part in range(first, index):
            lines[part] = _struck(lines[part], len(lines[part].rstrip()), "")
        lines[index] = _struck(line, comment.start(), f" (superseded by {by}, {day.isoformat()})")
    return encode("".join(lines))


def _first_of_item(lines: list[str], index: int) -> int:
    """Where the list item begins that the line ends: a person may have wrapped it."""
    for start in range(index, -1, -1):
        if _START.match(lines[start]):
            return start
        if not lines[start].strip() or not lines[start].startswith((" ", "\t")):
            break
    return index


def _struck(line: str, end: int, note: str) -> str:
    """The line with its text up to ``end`` struck through, the note behind it."""
    mark = _START.match(line)
    begin = mark.end() if mark else len(line) - len(line.lstrip())
    text = line[begin:end].rstrip()
    return f"{line[:begin]}~~{text}~~{note}{line[begin + len(text) :]}" if text else line
