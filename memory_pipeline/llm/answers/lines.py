"""Lists: lines with a bullet or a priority, each with its continuation lines and its marks.

The marks are priority, kind, time and message numbers, in any order before the text, numbers also after it. Anything
that is not certainly a mark is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory_pipeline.text.kinds import KINDS, STATEMENT
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.sentences import CODE, run_together

MAX_MARKS = 8
"""Maximum number of marks before a fact."""
WIDEST_RANGE = 20
"""Maximum length of a range like `#3-#7`; of a wider one only the two ends count."""
TAIL = 160
"""Characters at the end of a line that are searched for numbers."""

_LEVELS = {
    **{"🔴": HIGH, "🟡": MEDIUM, "🟢": LOW, "!": HIGH, "?": MEDIUM, "i": LOW},
    **{"critical": HIGH, "high": HIGH, "important": MEDIUM, "medium": MEDIUM, "note": LOW, "low": LOW},
}
_CLOCK = r"(?P<hour>\d{1,2})[:：](?P<minute>\d\d)(?:[:：]\d\d)?(?:\s?(?P<half>[ap])\.?m\b\.?)?"
_DATE = r"\d{4}-\d\d-\d\d[T ]?"
_MARK_BEGINS = r"\s?[\[(（【](?=[#~\d!?]|early|late|HH:|no time)"
_ENDS = rf"[*_]*(?:\s?[:：|](?=[\s*_]|$)|\s[-–—]+\s|{_MARK_BEGINS}|\s?[🔴🟡🟢✅]|\s\d{{1,2}}:\d\d\b)"
"""The end of a word that is a mark."""
_BRACKET_FOLLOWS = deferred(_MARK_BEGINS)
_SENTENCE = r"(?-i:(?=\s[A-Z`\"“'一-鿿]))"
_MARKER = deferred(r"([🔴🟡🟢])\ufe0f?|\[([!?iI])\]")
_DONE = deferred(r"[✅☑✔]\ufe0f?")
_ENDS_DONE = deferred(r"\s*[✅☑✔]\ufe0f?\s*$")
_LEVEL = deferred(
    rf"(?-i:(?P<capitals>CRITICAL|IMPORTANT|NOTE))(?=\s)(?:\s{_CLOCK}(?=\s))?"
    rf"|(?P<word>critical|high|important|medium|note|low)(?:[ -]priority)?(?=[*_]*(?:{_ENDS}))",
    re.I,
)
_KIND = deferred(
    rf"(?P<word>[a-z]+(?:[ _-](?:cause|change))?|[一-鿿]{{2,6}})(?:(?P<ends>(?={_ENDS}))|{_SENTENCE})", re.I
)
_TIME = deferred(rf"{_CLOCK}(?:(?={_ENDS})|{_SENTENCE})", re.I)
_BRACKET = deferred(r"[\[(（【]([^\[\]()（）【】\n]{1,120})[\])）】]")
_TAIL_BRACKET = deferred(r"\s*[\[(（【]\s?((?=#)[#\d\s,，、–-]{2,120})[\])）】]\s*([.。]?)\s*$")
_IN_BRACKET = deferred(rf"(?:{_DATE})?{_CLOCK}|{_DATE}", re.I)
_REF = deferred(r"#?\d{1,6}")
_RANGE = deferred(r"(#\d{1,6})\s?[-–]\s?(#\d{1,6})")
_SPLIT = deferred(r"[\s,，、;|~·–—-]+")
_SAYS_NOTHING = frozenset(
    {"", "early", "late", "later", "in", "session", "hh:mm", "user", "assistant", "tool", "injected"}
)
_SPACE = deferred(r"[\s*_]*")
_AFTER = deferred(r"(?:[*_]+(?=[\s:：]|$))?\s*(?:(?:[：]|[:|·,](?=[\s*_]|$)|[-–—]{1,3}(?=\s)|->)(?:[*_]+(?=\s|$))?)?")


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a line; None for a missing one."""

    priority: str | None = None
    kind: str | None = None
    clock: str | None = None
    refs: tuple[int, ...] = ()
    is_done: bool = False
    """Whether it is marked as finished."""


def leading(line: str) -> tuple[Marks, str]:
    """The marks at the beginning of a line (without its bullet), and its text."""
    marks, position = Marks(), 0
    for _ in range(MAX_MARKS):
        space = _SPACE.match(line, position)
        step = _next_mark(line, space.end() if space else position, marks)
        if step is None:
            break
        marks, end = step
        after = _AFTER.match(line, end)
        position = after.end() if after else end
    return marks, line[position:].strip()


def trailing(marks: Marks, text: str) -> tuple[Marks, str]:
    """The marks with the numbers in the last brackets and the done mark at the end, and the text before them."""
    if done := _ENDS_DONE.search(text[-TAIL:]):
        marks, text = replace(marks, is_done=True), text[: len(text) - len(done[0])]
    if found := _TAIL_BRACKET.search(text[-TAIL:]):
        marks = replace(marks, refs=marks.refs + _message_numbers(_split(found[1])))
        text = text[: len(text) - len(found[0])] + found[2]
    return marks, text


def kind_named(word: str) -> str | None:
    """The kind of this name: `Root cause` is root_cause."""
    name = re.sub(r"[ -]", "_", word.strip().lower())
    return next((kind for kind in KINDS if name in (kind, f"{kind}s")), None)


def priority_named(word: str) -> str | None:
    """The priority of this name or marker."""
    return _LEVELS.get(word.strip(" []\ufe0f").lower())


def clock_in(words: str) -> str | None:
    """The time of day as `HH:MM`, with or without its day; None if the text is not one."""
    found = _IN_BRACKET.fullmatch(words.strip())
    return _clock(found) if found else None


def _next_mark(line: str, start: int, marks: Marks) -> tuple[Marks, int] | None:
    """The marks with the one that begins here, and the position of its end."""
    if found := _MARKER.match(line, start):
        return replace(marks, priority=marks.priority or _LEVELS[(found[1] or found[2]).lower()]), found.end()
    if found := _DONE.match(line, start):
        return replace(marks, is_done=True), found.end()
    if found := _BRACKET.match(line, start):
        more = _bracket_marks(found[1], marks, is_square=found[0][0] in "[【")
        return (more, found.end()) if more else None
    if found := _LEVEL.match(line, start):
        if marks.priority and found["capitals"]:
            return None  # "🔴 CRITICAL sections of the worker …"
        named = _LEVELS[(found["word"] or found["capitals"]).lower()]
        return replace(marks, priority=marks.priority or named, clock=marks.clock or _clock(found)), found.end()
    if not marks.clock and (found := _TIME.match(line, start)) and (marks.priority or marks.kind):
        return replace(marks, clock=_clock(found)), found.end()
    return _kind(line, start, marks)


def _kind(line: str, start: int, marks: Marks) -> tuple[Marks, int] | None:
    """The marks with the kind given by a bare word that is not part of the sentence: "Rule: …", not "Rule 3 …". An
    unknown word in place of a kind is accepted: "🔴 bugfix (14:03) …" is a statement."""
    found = None if marks.kind else _KIND.match(line, start)
    if not found:
        return None
    named = kind_named(found["word"])
    is_lower = found["word"] == found["word"].lower()
    if named and (found["ends"] is not None or (is_lower and marks.priority)):
        return replace(marks, kind=named), found.end()
    is_made_up = is_lower and marks.priority and _BRACKET_FOLLOWS.match(line, found.end())
    return (replace(marks, kind=STATEMENT), found.end()) if is_made_up and not named else None


def _bracket_marks(content: str, marks: Marks, *, is_square: bool) -> Marks | None:
    """The marks with all those in brackets; None if a part is no mark, so that the brackets are text."""
    clock = _IN_BRACKET.search(content)
    if clock:
        marks = replace(marks, clock=marks.clock or _clock(clock))
        content = _IN_BRACKET.sub(" ", content)
    words = _split(content)
    for word in words:
        if named := priority_named(word):
            marks = replace(marks, priority=marks.priority or named)
        elif named := kind_named(word):
            marks = replace(marks, kind=marks.kind or named)
        elif not (_REF.fullmatch(word) and (is_square or "#" in word)) and word.lower() not in _SAYS_NOTHING:
            return None
    return replace(marks, refs=marks.refs + _message_numbers(words))


def _split(content: str) -> list[str]:
    """The words in brackets; a range of numbers is one word."""
    return _SPLIT.split(_RANGE.sub(_expand_range, content))


def _expand_range(found: re.Match[str]) -> str:
    one, other = int(found[1][1:]), int(found[2][1:])
    numbers = range(one, other + 1) if one <= other <= one + WIDEST_RANGE else (one, other)
    return " ".join(f"#{number}" for number in numbers)


def _message_numbers(words: list[str]) -> tuple[int, ...]:
    return tuple(int(word.lstrip("#")) for word in words if _REF.fullmatch(word))


def _clock(found: re.Match[str]) -> str | None:
    if not found["hour"]:
        return None
    hour, minute = int(found["hour"]), int(found["minute"])
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"].lower() == "p")
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else None


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
