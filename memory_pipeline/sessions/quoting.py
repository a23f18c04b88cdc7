"""Pasted parts of a user's message: output, code, diffs, documents, reviews.

They are recognised by form, and for some kinds by English words. When in doubt the words count as the user's own: a
wish taken for a paste would be lost, while the observer has other checks for a paste taken for a wish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from memory_pipeline.sessions import quoting_cues as cues
from memory_pipeline.sessions.quoting_documents import MAX_WIDTH, Lines, own_ending, spans_of_documents

MAX_CHARACTERS = 60_000
"""Maximum characters that are examined; nobody types more, so the rest counts as pasted, except its ending."""
DUMP_LINES, DUMP_SHARE = 5, 0.3
"""Minimum lines of a block that counts as pasted as a whole, and minimum share of them that are certain."""
LISTING_LINES = 15
"""Minimum lines without a full stop in a block that nobody types, and minimum certain lines of a message that is mostly
a paste."""


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """The spans `text[start:end]` of pasted parts, in order and without overlaps."""
    if len(text) > MAX_CHARACTERS:
        rest = text.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
        return _merged_spans(text, [*quoted_spans(text[:rest]), (rest, own_ending(text, rest))])
    lines = _lines(text)
    starts = _output_columns(text, lines)
    spans = [(start, end) for start, (_, end) in zip(starts, lines, strict=True) if start >= 0]
    spans += spans_of_documents(text, lines)
    return _merged_spans(text, spans)


def _lines(text: str) -> Lines:
    """Start and end of each line."""
    ends = [found.start() for found in re.finditer("\n", text)]
    return list(zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True))


def _output_columns(text: str, lines: Lines) -> list[int]:
    """The column at which each line's pasted part starts; -1 if it has none."""
    clipped = [text[start : min(end, start + MAX_WIDTH)] for start, end in lines]
    columns = [-1] * len(clipped)
    for i, column in _fenced(clipped):
        columns[i] = column
    certain = [columns[i] < 0 and _is_certain(clipped, i) for i in range(len(clipped))]
    for i, line in enumerate(clipped):
        if certain[i]:
            columns[i] = 0
        elif columns[i] < 0 and cues.MACHINE.match(line, after := _after_colon(line)):
            columns[i] = after
    for first, last in _blocks(clipped):
        for i in _extended(clipped, certain, first, last):
            columns[i] = max(columns[i], 0)
    found = [i for i, column in enumerate(columns) if column >= 0]
    if sum(certain) >= LISTING_LINES:
        found += _ends_of_dump(clipped, found[-1])
    for i in _gap_lines(clipped, certain, found):
        columns[i] = 0
    for i, (line, below) in enumerate(pairwise(clipped)):
        if columns[i] < 0 == columns[i + 1] and below.strip() and not cues.LIST_ITEM.match(below):
            # the paste begins in the line that announces it
            columns[i] = after if (after := _after_colon(line)) < len(line) else -1
    return [start + column if column >= 0 else -1 for (start, _), column in zip(lines, columns, strict=True)]


def _after_colon(line: str) -> int:
    """The position after the first colon, or the end of the line."""
    colon = None if cues.IMAGE.search(line) else cues.COLON.search(line)
    return colon.end() if colon else len(line)


def _fenced(clipped: list[str]) -> Iterator[tuple[int, int]]:
    """The lines of code blocks, closed or not, with the column from which they are code."""
    fence = ""
    for i, line in enumerate(clipped):
        if fence:
            yield i, 0
            bare = line.strip()
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        elif found := cues.FENCE.match(line):
            fence = found[1] or found[2]
            yield i, found.start(1 if found[1] else 2)


def _is_certain(clipped: list[str], i: int) -> bool:
    return (bool(cues.MACHINE.match(clipped[i])) and not _is_list_item(clipped[i])) or _is_in_run(clipped, i)


def _is_list_item(line: str) -> bool:
    return (
        bool(cues.LIST_ITEM.match(line)) and not line.rstrip().endswith((";", "{")) and not re.match(r"\s*\+ ?\d", line)
    )


def _is_in_run(clipped: list[str], i: int) -> bool:
    """Whether the line and its neighbours are equal, a diff, or rows of a table of values."""
    near, line = clipped[max(0, i - 2) : i + 3], clipped[i]
    if near.count(line) > 1 and len(line) > 3:
        return True
    if cues.SIGNED.match(line):
        return len({other[0] for other in near if cues.SIGNED.match(other)}) == 2 or any(
            o.startswith("@@") for o in near
        )
    row = cues.ROW.match(line)
    if not row or row[1] + " " in line or line.count(row[1]) < (1 if row[1] == "\t" else 2):
        return False
    return sum(other.count(row[1]) == line.count(row[1]) for other in near) >= 3


def _blocks(clipped: list[str]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of non-empty lines."""
    empty = [-1, *(i for i, line in enumerate(clipped) if not line or line.isspace()), len(clipped)]
    yield from ((before + 1, after - 1) for before, after in pairwise(empty) if after - before > 1)


def _extended(clipped: list[str], certain: list[bool], first: int, last: int) -> Iterator[int]:
    """Lines of the block that belong to its certain lines: output of a command, and text that is no sentence."""
    known = [i for i in range(first, last + 1) if certain[i]]
    size = last - first + 1
    if (size >= DUMP_LINES and len(known) >= DUMP_SHARE * size) or _is_listing(clipped[first : last + 1]):
        while first < last and not certain[first] and _is_opening(clipped, first):
            first += 1
        while last > first and not certain[last] and _is_closing(clipped, last):
            last -= 1
        yield from range(first, last + 1)
    elif not known and _is_announced_output(clipped, first):
        yield from range(first, last + 1)
    else:
        for i, after in pairwise([*known, last + 1]):
            printed = bool(cues.PROMPT.match(clipped[i]))
            for j in range(i + 1, after):
                line = clipped[j]
                if cues.PERSONAL.search(line) or cues.LIST_ITEM.match(line) or (_is_sentence(line) and not printed):
                    break
                if not line.rstrip().endswith(":"):
                    yield j


def _is_listing(block: list[str]) -> bool:
    """Whether the block is a long run of lines that are neither sentences nor a list."""
    if len(block) < LISTING_LINES:
        return False
    return sum(bool(cues.LIST_ITEM.match(line)) or line.rstrip()[-1] in ".,;!?。，" for line in block) < 0.2 * len(
        block
    )


def _is_announced_output(clipped: list[str], first: int) -> bool:
    before = next((clipped[i] for i in range(first - 1, max(-1, first - 3), -1) if clipped[i].strip()), "")
    return bool(cues.OUTPUT_FOLLOWS.match(before)) and not cues.PERSONAL.search(clipped[first])


def _is_opening(clipped: list[str], number: int) -> bool:
    """Whether the line is the user's own, the first of the message, or announces what follows."""
    line = clipped[number]
    return bool(cues.PERSONAL.search(line)) or line.rstrip().endswith(":") or (number == 0 and _is_sentence(line))


def _is_closing(clipped: list[str], number: int) -> bool:
    """Whether the user's own words start again at this line, or the message ends."""
    line = clipped[number]
    is_last = number == len(clipped) - 1
    return bool(cues.PERSONAL.search(line)) or (is_last and (bool(cues.ORDER.match(line)) or _is_sentence(line)))


def _is_sentence(line: str) -> bool:
    return len(cues.WORD.findall(line)) >= 4 and sum(c.isalpha() or c in " ,.'!" for c in line) >= 0.85 * len(line)


def _gap_lines(clipped: list[str], certain: list[bool], found: list[int]) -> Iterator[int]:
    """Lines between two pasted ones that nobody types, and in a large paste also lines that somebody could type."""
    total, before = sum(certain), 0
    for i, after in pairwise(found):
        before += certain[i]
        gap = [line for line in clipped[i + 1 : after] if line.strip()]
        is_large = min(before, total - before) >= DUMP_LINES or total >= LISTING_LINES
        if not any(
            cues.PERSONAL.search(line) or cues.ORDER.match(line) or (_is_text(line) and not is_large) for line in gap
        ):
            yield from range(i + 1, after)


def _ends_of_dump(clipped: list[str], last: int) -> list[int]:
    """The last line of each block below a large paste that is more than a remark of the user."""
    after = [(i, j) for i, j in _blocks(clipped) if i > last and (j - i >= 2 or not _is_sentence(clipped[i]))]
    return [after[-1][1]] if after else []


def _is_text(line: str) -> bool:
    return len(cues.WORD.findall(line)) >= 2 or line.rstrip().endswith(":") or bool(cues.LIST_ITEM.match(line))


def _merged_spans(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, joined if only space separates them, without the marks of images."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and (start <= joined[-1][1] or text[joined[-1][1] : start].isspace()):
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    parts = []
    for start, end in joined:
        for mark in cues.IMAGE.finditer(text, start, end):
            parts.append((start, mark.start()))
            start = mark.end()
        parts.append((start, end))
    trimmed = [(end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())) for start, end in parts]
    return [(start, end) for start, end in trimmed if start < end]
