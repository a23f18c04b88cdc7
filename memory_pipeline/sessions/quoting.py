"""Pasted parts of a user's message: output, code and diffs, and text by others (documents, reviews, mails, chats,
quotations).

They are recognised by form, and for some kinds by English words. When in doubt the words count as the user's own: a
wish taken for a paste would be lost, while the observer has other checks for a paste taken for a wish.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from memory_pipeline.sessions import quoting_cues as cues
from memory_pipeline.text.similarity import words
from memory_pipeline.text.specifics import CODE_PLACE

MAX_CHARACTERS = 60_000
"""Maximum characters that are examined; nobody types more, so the rest counts as pasted, except its ending."""
DUMP_LINES, DUMP_SHARE = 5, 0.3
"""Minimum lines of a block that counts as pasted as a whole, and minimum share of them that are certain."""
LISTING_LINES = 15
"""Minimum lines without a full stop in a block that nobody types, and minimum certain lines of a message that is mostly
a paste."""
MAX_WIDTH = 400
"""Maximum characters of a line that are examined."""
ENDING = 500
"""Maximum characters of the last paragraphs that can be the user's own words after a paste."""
MIN_ANNOUNCED = 200
"""Minimum characters of a review after the words that announce it."""
MIN_DOCUMENT = 400
MIN_HEADINGS, MIN_TITLES = 3, 2
"""Minimum marked headings of a document, and minimum unmarked ones of a document without first person."""
MIN_FINDING = 130
"""Minimum characters of a reviewer's paragraph."""
MIN_TURNS = 3
"""Minimum lines that begin with a speaker for a chat without times."""
MIN_REPORTED = 3
"""Minimum words in quotation marks; fewer may be a name."""

Lines = list[tuple[int, int]]
"""Start and end of each line of a text."""


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """The spans `text[start:end]` of pasted parts, in order and without overlaps."""
    if len(text) > MAX_CHARACTERS:
        rest = text.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
        return _merged_spans(text, [*quoted_spans(text[:rest]), (rest, _own_ending(text, rest))])
    lines = _lines(text)
    starts = _output_columns(text, lines)
    spans = [(start, end) for start, (_, end) in zip(starts, lines, strict=True) if start >= 0]
    spans += _spans_of_documents(text, lines)
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
    return bool(cues.MACHINE.match(clipped[i])) or _is_in_run(clipped, i)


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


def _spans_of_documents(text: str, lines: Lines) -> Iterator[tuple[int, int]]:
    """The spans of text by others, which may overlap."""
    yield from _articles(text, lines)
    yield from _chats(text, lines)
    yield from _findings(text)
    yield from (found.span() for found in cues.QUOTATION.finditer(text) if "\n" in found[0])
    yield from _reported(text)


def _reported(text: str) -> Iterator[tuple[int, int]]:
    """The words of others, in quotation marks, or to the end of the sentence in a document."""
    for pattern in cues.REPORTED:
        for found in pattern.finditer(text):
            start, end = found.span(found.lastgroup or 0)
            is_own = cues.OWN_SAYING.search(text, max(0, found.start() - 40), found.start())
            if not is_own and len(words(text[start:end])) >= MIN_REPORTED:
                yield start, end


def _articles(text: str, lines: Lines) -> Iterator[tuple[int, int]]:
    """The first review, mail or document of the message, up to the user's own last words."""
    begins = []
    last_wish = max((found.start() for found in cues.WISH.finditer(text)), default=-1)
    headings = [start for start, end in lines if cues.HEADING.match(text, start, end)]
    if len(headings) >= MIN_HEADINGS and len(text) - headings[0] >= MIN_DOCUMENT and headings[0] > last_wish:
        begins.append(headings[0])
    titles = list(_titles(text, lines))
    if len(titles) >= MIN_TITLES and _is_read(text, titles[0]):
        begins.append(titles[0])
    mail = [start for start, end in lines if cues.MAIL.match(text, start, min(end, start + MAX_WIDTH))]
    if len(mail) >= 2 or any(text.startswith("On ", start) for start in mail):
        begins.append(mail[0])
    for start, end in lines:
        end = min(end, start + MAX_WIDTH)
        if cues.REVIEW.match(text, start, end):
            begins.append(_with_title(text, start))
            break
        announced = cues.REVIEW_FOLLOWS.match(text, start, end)
        if announced and len(text) - announced.end() >= MIN_ANNOUNCED and announced.end() > last_wish:
            begins.append(announced.end())
            break
    if begins:
        yield min(begins), _own_ending(text, min(begins))


def _titles(text: str, lines: Lines) -> Iterator[int]:
    """The starts of headings, marked or as short lines above a paragraph, as copied from a browser."""
    for i, (start, end) in enumerate(lines):
        above, below = lines[i - 1] if i else (0, 0), lines[i + 1 : i + 3]
        has_paragraph = any(b - a > len(text[start:end]) for a, b in below)
        is_apart = above[0] == above[1] and bool(below)
        if has_paragraph and (
            cues.HEADING.match(text, start, end) or (is_apart and cues.TITLE.fullmatch(text, start, end))
        ):
            yield start


def _is_read(text: str, start: int) -> bool:
    """Whether the text from here on is long and written for readers: without first person and questions."""
    end = _own_ending(text, start)
    return end - start >= MIN_DOCUMENT and not cues.SELF.search(text, start, end)


def _with_title(text: str, start: int) -> int:
    """The start including the title above a severity, which is a short line that names the finding."""
    above = text[:start].rstrip()
    begin = above.rfind("\n") + 1
    title = above[begin:]
    is_title = (
        0 < len(title) <= 120 and title[0].isupper() and title[-1] not in ".:?" and not cues.PERSONAL.search(title)
    )
    return begin if is_title else start


def _own_ending(text: str, start: int) -> int:
    """The start of the user's own words after the paste that begins at `start`, or the end of the text."""
    end = len(text)
    while (begin := text.rfind("\n\n", start, end)) >= 0 and len(text) - begin <= ENDING:
        last = text[begin:end].strip()
        is_own = cues.PERSONAL.search(last) or (last[:1].islower() and cues.ORDER.match(last))
        if last and (not is_own or cues.REVIEW.match(last) or cues.HEADING.match(last)):
            break
        end = begin
    return end


def _chats(text: str, lines: Lines) -> Iterator[tuple[int, int]]:
    """The span from the first to the last turn of a chat: lines that begin with a time and a name, or with a name that
    occurs again after another one. The last turn ends at the next empty line."""
    turns = [
        (i, found)
        for i, (start, end) in enumerate(lines)
        if (found := cues.TURN.match(text, start, min(end, start + MAX_WIDTH)))
    ]
    names = [(found["name"] or found["nick"] or found["who"]).casefold() for _, found in turns]
    counts, changes = Counter(names), sum(one != other for one, other in pairwise(names))
    is_timed = sum(bool(found["time"] or found["later"]) for _, found in turns) >= 2
    if len(counts) < 2 or not (is_timed or (len(turns) >= MIN_TURNS and changes >= 2 and max(counts.values()) >= 2)):
        return
    last = turns[-1][0]
    while last + 1 < len(lines) and text[slice(*lines[last + 1])].strip():
        last += 1
    yield lines[turns[0][0]][0], lines[last][1]


def _findings(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs that read like a reviewer's: sentences about code and its faults, without first person."""
    is_announced = False
    for found in cues.PARAGRAPH.finditer(text):
        start, end = found.span()
        head = cues.HEAD.match(text, start, end)
        if head and _is_finding(text[head.end() : end], True):
            yield head.end(), end
        elif _is_finding(text[start:end], is_announced):
            yield start, end
        is_announced = text.endswith(":", start, end)


def _is_finding(paragraph: str, is_announced: bool) -> bool:
    if len(paragraph) < MIN_FINDING or cues.PERSONAL.search(paragraph) or cues.ORDER.match(paragraph):
        return False
    minimum = 1 if is_announced else 2
    return len(CODE_PLACE.findall(paragraph)) > minimum and len(cues.FINDING.findall(paragraph)) >= minimum
