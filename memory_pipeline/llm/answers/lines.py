"""Lists: lines with a bullet or a priority, each with its continuation lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memory_pipeline.llm.answers.marks import leading
from memory_pipeline.text.spaces import CODE, run_together

MAX_LINE = 4_000
"""Maximum characters of a line that are read; facts are much shorter."""
MAX_ENTRIES = 2_000
"""Maximum lines of a list, ten times the number of facts that are kept."""

_BULLET = re.compile(r"[ \t]*(?:[-*•](?=[ \t🔴🟡🟢✅\[])|\d{1,3}[.)](?=[ \t]))[ \t]*")
_BREAK = re.compile(
    r"[ \t]*(?:$|#{1,6}[ \t]|`{3}|~{3}|</?[a-z-]{3,20}>[ \t]*$|[-=_*|]{3,}[ \t]*$|dates?:|\d{4}-\d\d-\d\d:?$"
    r"|\[#\d+ [^\]\n]{0,40}\b(?:user|assistant|tool|injected)\b)",
    re.I,
)
"""A line that neither is nor continues an entry: a heading, a fence, a tag, a day, or a message header."""
TRACE = re.compile(r"[\s*_(\[]{0,8}(?:decision[ _-])?trace\s?[*_]{0,2}[:：][*_]{0,2}\s?", re.I)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*/])([^*\n]{1,300}?)(?<=\S)\*\*(?![\w*])")


@dataclass(frozen=True, slots=True)
class Entry:
    """A list line with the lines below it that belong to it; each part is a line with its continuations."""

    indent: int
    parts: list[str]


def entries(lines: Iterable[str]) -> list[Entry]:
    """The entries of a list. A line without a bullet continues the entry directly above it, or one above which it is
    indented further; others are left out."""
    found: list[Entry] = []
    after_gap = True
    for line in lines:
        if _BREAK.match(line):
            after_gap = True
            continue
        line = line[:MAX_LINE]
        bullet = _BULLET.match(line)
        body = line[bullet.end() if bullet else 0 :].strip()
        indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
        above = found[-1] if found else None
        marks, _ = leading(body)
        is_own = bool(marks.priority or marks.is_done)
        is_below = above is not None and indent > above.indent and not is_own
        if above and ((bullet and is_below) or TRACE.match(body)):
            above.parts.append(body)
        elif bullet or is_own:
            found.append(Entry(indent, [body]))
        elif above and (is_below or not after_gap):
            above.parts[-1] = f"{above.parts[-1]} {body}"[:MAX_LINE]
        else:
            continue
        after_gap = False
        if len(found) >= MAX_ENTRIES:
            break
    return found


def tidy(text: str) -> str:
    """The text on one line, without bold marks outside code; all other characters are kept."""
    parts = CODE.split(run_together(text[:MAX_LINE]))
    words = "".join(part if i % 2 else _BOLD.sub(r"\1", part) for i, part in enumerate(parts))
    # the opening mark was at the start of the line
    if words.count("**") == 1 and words.startswith("**") != words.endswith("**"):
        words = words.removeprefix("**").removesuffix("**")
    return words.strip()
