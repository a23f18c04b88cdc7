"""Text by others that a user passed on: documents, reviews, mails, chats, and quotations.

A part of `quoting`, and as cautious: only text that certainly has another author counts as quoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from memory_pipeline.sessions import quoting_cues as cues
from memory_pipeline.text.similarity import words
from memory_pipeline.text.specifics import CODE_PLACE

MAX_WIDTH = 400
"""Maximum characters of a line that are examined."""
ENDING = 500
"""Maximum characters of the last paragraphs that can be the user's own words after a paste."""
MIN_ANNOUNCED = 200
"""Minimum characters of a review after the words that announce it."""
MIN_DOCUMENT = 400
MIN_HEADINGS, MIN_TITLES = 3, 2
"""Minimum marked headings of a document, and minimum unmarked ones of a document without first person."""
MIN_FINDING, MAX_FINDING = 130, 3000
"""Minimum and maximum characters of a reviewer's paragraph."""
MIN_TURNS = 3
"""Minimum lines that begin with a speaker for a chat without times."""
MIN_REPORTED = 3
"""Minimum words in quotation marks; fewer may be a name."""

Lines = list[tuple[int, int]]
"""Start and end of each line of a text."""


def spans_of_documents(text: str, lines: Lines) -> Iterator[tuple[int, int]]:
    """The spans `text[start:end]` of such parts, which may overlap."""
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
        yield min(begins), own_ending(text, min(begins))


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
    end = own_ending(text, start)
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


def own_ending(text: str, start: int) -> int:
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
        if end - start <= MAX_FINDING:
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
