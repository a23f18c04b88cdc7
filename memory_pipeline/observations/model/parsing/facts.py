"""Lines of a model's answer to facts. What each line leads and ends with is read by `marks.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memory_pipeline.observations.model.parsing.cleaning import is_echo_line, is_nothing, is_too_little, shortened
from memory_pipeline.observations.model.parsing.marks import PROGRESS, STATEMENT, Marks, leading, priority_in, trailing
from memory_pipeline.text.priorities import LOW, MEDIUM
from memory_pipeline.text.spaces import CODE, run_together

MAX_ENTRY = 4_000
"""Characters of a line that are looked at; facts are shorter by far."""
MAX_ENTRIES = 2_000
"""Lines of one list; ten times as many as the facts that are kept of an answer."""
MAX_REFS = 20

BULLET = re.compile(
    r"[ \t]*(?:[-*•‣▪●○◦·+](?=[ \t🔴🟡🟢✅\[])|\d{1,3}[.)](?=[ \t])|\([0-9a-z]\)(?=[ \t]))[ \t]*(?:\[[ xX]\][ \t]+)?"
)
HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<words>[^\n]*)")
_RULE = re.compile(r"[ \t]*(?:[-=_*~`|]{3,}[\w-]{0,10}|\|[^\n]*\|)[ \t]*")
DATE = re.compile(r"[\W_]*(?:dates?\b[\W_]{1,6}[^\n]{0,40}|\d{4}-\d\d-\d\d\W*)", re.I)
_ARROW = re.compile(r"(?:->|→|=>|↳)[ \t]*")
_SEVERAL = re.compile(r"(?<=\S)[ \t][*•-][ \t]+(?=[🔴🟡🟢✅])")
_TRACE = re.compile(r"[\s*_(\[]{0,8}(?:decision[ _-])?trace\s?[*_]{0,2}[:：][*_]{0,2}\s?", re.I)
_TRACE_INSIDE = re.compile(
    r"(?:[ ]?[;(][ ]?|(?<=[.!?。])[ ])(?:decision[ _-])?trace:[ ](?=[^\n]{1,600}(?:->|→|=>))", re.I
)
_STEP = re.compile(r"\s?(?:->|→|=>|➜)\s?")
MAX_STEPS, MAX_STEP = 6, 300
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*/])([^*\n]{1,300}?)(?<=\S)\*\*(?![\w*])")
_TEMPLATE = re.compile(r"\[#(?:NUMBER|N)\b|^(?:the fact\W*$|\{observation\}|MARK kind)", re.I)
_KEY = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """One line of a list, taken apart."""

    text: str
    """Without marker, kind, time and numbers."""
    priority: str
    kind: str
    """One of `KINDS`; `statement` when there was none, or none that is known."""
    clock: str | None
    """`HH:MM` as it led the line."""
    refs: tuple[int, ...]
    """Numbers of messages, in order and without repeats."""
    is_done: bool = False
    """Whether the model marked it as finished."""
    trace: tuple[str, ...] = ()
    """What led to it, in steps: what set it off, what was looked into, what was decided, why."""


@dataclass(slots=True)
class _Entry:
    """A list line with what belongs to it; each part is a line with its continuations."""

    indent: int
    priority: str | None
    """Of the heading that it stands under."""
    is_listed: bool
    parts: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class FactList:
    """The facts of one list, and what was guessed to get them."""

    facts: list[ParsedFact] = field(default_factory=list)
    unmarked: int = 0
    """Facts whose priority is not said; they count as low."""
    unlisted: bool = False
    """The lines had no bullets: each was taken for a fact."""
    is_last_kept: bool = False
    """The last line gave the last fact."""


def read_facts(lines: Iterable[str], *, only_listed: bool) -> FactList:
    """The facts of these lines. Lines without bullets are facts where there are no others, unless `only_listed`."""
    found = _entries(lines)
    listed = [entry for entry in found if entry.is_listed]
    result = FactList(unlisted=not listed and bool(found) and not only_listed)
    for entry in found if result.unlisted else listed:
        read = _fact(entry)
        result.is_last_kept = read is not None
        if read:
            fact, is_marked = read
            result.facts.append(fact)
            result.unmarked += not is_marked
    return result


def key_of(fact: ParsedFact) -> str:
    """Equal for facts that differ by case, space and punctuation only."""
    return " ".join(_KEY.findall(fact.text.casefold()))


def tidy(text: str) -> str:
    """On one line, without bold type outside of code; every other character as it was written (see `markup.py`)."""
    parts = CODE.split(run_together(text[:MAX_ENTRY]))
    words = "".join(part if i % 2 else _BOLD.sub(r"\1", part) for i, part in enumerate(parts))
    if words.count("**") == 1 and words.startswith("**") != words.endswith("**"):  # its other half led the line
        words = words.removeprefix("**").removesuffix("**")
    return words.strip()


def _entries(lines: Iterable[str]) -> list[_Entry]:
    found: list[_Entry] = []
    priority: str | None = None
    after_gap = False
    for line in _one_a_line(lines):
        heading = HEADING.match(line)
        bullet = None if heading else BULLET.match(line)
        body = line[bullet.end() if bullet else 0 :]
        if (
            not line.strip()
            or _RULE.fullmatch(line)
            or (not bullet and DATE.fullmatch(line))
            or (not bullet and is_echo_line(line))
        ):
            after_gap = True
            continue
        marks, rest = leading(body[:MAX_ENTRY])
        if heading or not rest.strip(" \t*_:：-"):
            # "🔴 High priority:" stands over what follows
            priority = priority_in(heading["words"]) if heading else marks.priority or priority
            after_gap = True
            continue
        indent = len(line[:MAX_ENTRY].expandtabs(4)) - len(line[:MAX_ENTRY].expandtabs(4).lstrip())
        above = found[-1] if found and found[-1].is_listed else None
        has_own = marks.priority or marks.is_done
        if above and not has_own and _TRACE.match(body):
            above.parts.append([body])
        elif bullet and above and indent > above.indent and not has_own:
            above.parts.append([_ARROW.sub("", body, count=1) if _ARROW.match(body) else body])
        elif bullet or has_own:
            found.append(_Entry(indent, priority, True, [[body]]))
        elif above and (not after_gap or indent > above.indent):
            above.parts[-1].append(body)
        else:
            found.append(_Entry(indent, priority, False, [[body]]))
        after_gap = False
        if len(found) >= MAX_ENTRIES:
            break
    return found


def _one_a_line(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        first, *others = _SEVERAL.split(line)
        yield first
        for other in others:
            yield f"* {other}"


def _fact(entry: _Entry) -> tuple[ParsedFact, bool] | None:
    """The fact, and whether its priority was said."""
    marks, words = _marks_and_words(entry.parts[0])
    refs = list(marks.refs)
    inside = _TRACE_INSIDE.search(words)
    trace = words[inside.end() :].removesuffix(")") if inside else ""
    text = tidy(words[: inside.start()] if inside else words)
    if text.endswith((":", "：")) and len(entry.parts) == 1:
        return None
    for part in entry.parts[1:]:
        if begins := _TRACE.match(" ".join(part)):
            trace = trace or " ".join(part)[begins.end() : MAX_ENTRY].rstrip(" )]")
            continue
        below, words = _marks_and_words(part)
        refs += below.refs
        more = tidy(words)
        text += "" if not more else f" {more}" if text.endswith(tuple(".:;,!?…。：！？")) else f"; {more}"
        if len(text) > MAX_ENTRY:
            break
    priority = marks.priority or entry.priority or (MEDIUM if marks.is_done else None)
    kind = PROGRESS if marks.is_done and marks.kind in (None, "question") else marks.kind or STATEMENT
    fact = fact_of(text, priority or LOW, kind, marks.clock, refs, _STEP.split(trace))
    return (replace(fact, is_done=marks.is_done), priority is not None) if fact else None


def fact_of(
    words: str, priority: str, kind: str, clock: str | None, refs: Iterable[int], trace: Iterable[str]
) -> ParsedFact | None:
    """The fact as it is kept; None where its words say too little or are those of the instructions."""
    text, named = tidy(words), tuple(dict.fromkeys(refs))
    if is_too_little(text) or _TEMPLATE.search(words) or (not named and is_nothing(text)):
        return None
    steps = tuple(shortened(step, MAX_STEP) for part in trace if (step := tidy(part)))
    told = steps[:MAX_STEPS] if len(steps) > 1 else ()  # one alone leads nowhere
    return ParsedFact(shortened(text), priority, kind, clock, named[:MAX_REFS], trace=told)


def _marks_and_words(lines: list[str]) -> tuple[Marks, str]:
    marks, words = leading(" ".join(lines)[:MAX_ENTRY])
    return trailing(marks, words)
