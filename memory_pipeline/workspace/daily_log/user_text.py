"""Notes of a user in a daily log: its paragraphs and list items, without our blocks.

Headings, code, tables, quotes, comments, front matter, to-do boxes, and links or tags alone are not notes. Generated
text must never be read as a user's: a block that lost one of its fences counts as generated as far as it may extend,
and so does everything under a generated heading without a fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_pipeline.markdown.blocks import split_lines
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.sentences import sentences

LONG = 300
"""Minimum characters of a paragraph whose sentences are separate notes."""

_FENCE = deferred(r"<!--\s*(?P<closing>/)?\s*memory:")
_OUR_HEADING = deferred(
    r"#{2,4} +(🔭 *(?:Observations|Reflected)\b|💭 *Reflection\b|Decisions on memory proposals\b"
    r"|Memory proposals that ended\b)"
)
_SECTION = deferred(r"#{1,3}\s")
_COMMENT = deferred(r"<!--.*?-->", re.DOTALL)
_CODE = deferred(r"\s*(?P<fence>`{3,}|~{3,})")
_INDENTED = deferred(r" {4}|\t")
_ITEM = deferred(r"\s*(?:[-*+•‣]|\d{1,3}[.)])\s+(?P<box>\[[^\]]?\](?:\s|$))?")
_NO_TEXT = deferred(
    r"\s*(#{1,6}(\s|$)|[>|]|\*\*[^*]*[^*.!]\*\*:?\s*$|__[^_]*[^_.!]__:?\s*$|([-*_=+]\s*){3,}$|\[[^\]]+\]:\s|:?-{2,}:?(\s*\|.*)?$)"
)
"""A heading, a quote or table, a rule, or a link definition; a bold line that is a sentence is not included."""
_UNDERLINE = deferred(r"\s{0,3}(=+|-+)\s*$")
_LINKS = deferred(
    r"!?\[\[[^\]]*\]\]|!?\[[^\]]*\]\([^)]*\)|<?\b[a-z][a-z0-9+.-]*://\S+|\bwww\.\S+|\[(redacted:[^\]]*|private)\]"
    r"|(?<!\S)[#@][\w/-]+|</?private>",
    re.I,
)
"""Elements without meaning of their own: links, tags, and marks of omissions."""
_WORD = deferred(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]{2,}")
"""A word, or a character of a language without spaces."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, list item or sentence, verbatim."""

    line: int
    """The number of the first line, from 1."""
    text: str


def own_words(log: str) -> str:
    """The log with blank lines in place of generated blocks and comments, so that line numbers stay the same."""
    lines = split_lines(log.removeprefix("\ufeff"))
    ours = [False] * len(lines)
    since, is_open, is_our_section = 0, False, False
    for number, line in enumerate(lines):
        if "<!--" in line and (fence := _FENCE.search(line)):
            # its opening fence is gone, so it may begin anywhere since the last one
            if fence["closing"] and not is_open:
                ours[since:number] = [True] * (number - since)
            is_open, is_our_section, since = not fence["closing"], False, number + 1
            ours[number] = True
            continue
        if line.startswith("#") and (_SECTION.match(line) or _OUR_HEADING.match(line)):
            is_our_section = bool(_OUR_HEADING.match(line))
        ours[number] = is_open or is_our_section
    text = "".join("\n" if is_ours else line for line, is_ours in zip(lines, ours, strict=True))
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def paragraphs(own: str) -> list[Paragraph]:
    """The notes in the result of `own_words`, in order."""
    return [note for block in _blocks(own) for note in _parts(block) if _has_content(note.text)]


def _blocks(own: str) -> Iterator[Paragraph]:
    """Paragraphs and items, without code, to-do boxes and the like."""
    lines = own.split("\n")
    taken: list[str] = []
    begin, is_box, in_list, code = 0, False, False, ""
    start = _after_front_matter(lines)

    def block() -> Iterator[Paragraph]:
        if taken and not is_box:
            yield Paragraph(begin + 1, "\n".join(taken))
        taken.clear()

    for number, line in enumerate(lines[start:], start):
        if code:
            code = "" if line.strip().startswith(code) and not line.strip().strip(code[0]) else code
            continue
        if not line.strip():  # tested first, as most lines are blank: generated blocks were blanked
            if taken:
                yield from block()
            continue
        item = _ITEM.match(line)
        if fence := _CODE.match(line):
            yield from block()
            code = fence["fence"]
        elif taken and not in_list and _UNDERLINE.match(line):
            taken.clear()  # the text above is a heading
        elif _NO_TEXT.match(line):
            yield from block()
            in_list, is_box = False, False
        elif item:
            yield from block()
            begin, is_box, in_list = number, bool(item["box"]), True
            taken.append(line[item.end() :])
        elif taken:
            taken.append(line)
        elif _INDENTED.match(line) and not in_list:
            continue
        else:
            if not line[0].isspace():
                in_list, is_box = False, False
            begin = number
            taken.append(line)
    yield from block()


def _after_front_matter(lines: list[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    ends = (n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    return next(ends, -1) + 1


def _parts(block: Paragraph) -> Iterator[Paragraph]:
    if len(block.text) <= LONG:
        yield block
        return
    for sentence in sentences(block.text):
        above = block.text.count("\n", 0, sentence.start)
        yield Paragraph(block.line + above, block.text[sentence.start : sentence.end])


def _has_content(text: str) -> bool:
    """Whether the text is more than a link, a tag, a number or a single word."""
    words = _WORD.findall(_LINKS.sub(" ", text))
    return len(words) > 1
