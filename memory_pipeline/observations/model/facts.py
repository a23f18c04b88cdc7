"""The facts of an answer: one for each list line, or for each paragraph if there is no list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory_pipeline.llm.answers.degenerate import is_nothing, is_placeholder, is_too_little, shortened
from memory_pipeline.llm.answers.lines import TRACE, Entry, leading, tidy, trailing
from memory_pipeline.text.kinds import PROGRESS, STATEMENT, is_noise
from memory_pipeline.text.priorities import LOW, MEDIUM
from memory_pipeline.text.sentences import sentences

MAX_REFS = 20
MAX_STEPS, MAX_STEP = 6, 300
MAX_PARAGRAPHS, MAX_PARAGRAPH = 10, 300
"""Maximum number of facts from a raw answer, and maximum characters of each."""
MAX_PARAGRAPHS_READ, MAX_CHARACTERS_READ = 100, 2_000
"""Maximum number of paragraphs of a raw answer that are read, and of characters of each."""
_TEMPLATE_FACT = re.compile(r"\[#(?:NUMBER|N)\b|^\{observation\}", re.I)
_TRACE_INSIDE = re.compile(
    r"(?:[ ]?[;(][ ]?|(?<=[.!?。])[ ])(?:decision[ _-])?trace:[ ](?=[^\n]{1,600}(?:->|→|=>))", re.I
)
ARROW = re.compile(r"\s?(?:->|→|=>|➜|↳)\s?")
_CHATTER = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are)|let me know|i hope|based on (?:the|this|your)"
    r"|would you like|if you (?:need|want|would)|feel free|below (?:is|are)|i(?:['’]ve| have) (?:read|reviewed))\b",
    re.I,
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact without marker, kind, time and numbers in its text."""

    text: str
    priority: str
    kind: str
    """One of `KINDS`; `statement` if the kind was missing or unknown."""
    clock: str | None
    """`HH:MM` from the beginning of the line."""
    refs: tuple[int, ...]
    """Message numbers, sorted and unique."""
    is_done: bool = False
    """Whether the model marked it as finished."""
    trace: tuple[str, ...] = ()
    """The steps that led to it: the cause, the investigation, the decision, the reason."""


def key_of(fact: ParsedFact) -> str:
    """A key that is equal for facts that differ only in case, space and punctuation."""
    return " ".join(_WORD.findall(fact.text.casefold()))


def fact_in_entry(entry: Entry) -> tuple[ParsedFact, bool] | None:
    """The fact of a list line, and whether the line gave a priority."""
    first, *below = entry.parts
    marks, words = trailing(*leading(first))
    inside = _TRACE_INSIDE.search(words)
    trace = words[inside.end() :].removesuffix(")") if inside else ""
    text, refs = tidy(words[: inside.start()] if inside else words), list(marks.refs)
    if text.endswith((":", "：")) and not below:
        return None
    for part in below[:MAX_REFS]:
        if begins := TRACE.match(part):
            trace = trace or part[begins.end() :].rstrip(" )]")
            continue
        more, words = trailing(*leading(ARROW.sub("", part, count=1) if ARROW.match(part) else part))
        refs += more.refs
        text += f" {tidy(words)}" if text.endswith(tuple(".:;,!?…。：！？")) else f"; {tidy(words)}"
    priority = marks.priority or (MEDIUM if marks.is_done else None)
    kind = PROGRESS if marks.is_done and marks.kind in (None, "question") else marks.kind or STATEMENT
    fact = fact_for(text, priority or LOW, kind, marks.clock, refs, ARROW.split(trace))
    return (replace(fact, is_done=marks.is_done), priority is not None) if fact else None


def fact_for(
    words: str, priority: str, kind: str, clock: str | None, refs: Iterable[int], trace: Iterable[str]
) -> ParsedFact | None:
    """The cleaned fact; None if the text says too little or repeats the instructions."""
    text, named = tidy(words), tuple(dict.fromkeys(refs))
    if is_too_little(text) or is_placeholder(text) or _TEMPLATE_FACT.search(words) or (not named and is_nothing(text)):
        return None
    steps = tuple(shortened(step, MAX_STEP) for part in trace if (step := tidy(part)))
    trace_steps = steps[:MAX_STEPS] if len(steps) > 1 else ()  # a single step is no trace
    return ParsedFact(shortened(text), priority, kind, clock, named[:MAX_REFS], trace=trace_steps)


def facts_in_paragraphs(text: str) -> list[ParsedFact]:
    """A fact of low priority for each paragraph with content; remarks of the answer about itself are left out."""
    facts: dict[str, ParsedFact] = {}
    for paragraph in re.split(r"\n[ \t]*\n", text)[:MAX_PARAGRAPHS_READ]:
        part = paragraph.strip()[:MAX_CHARACTERS_READ]
        said = (tidy(part[s.start : s.end]) for s in sentences(part) if s.kind != "heading")
        words = " ".join(w for w in said if not (w.endswith((":", "：")) or _CHATTER.match(w) or is_noise(w)))
        fact = ParsedFact(shortened(words, MAX_PARAGRAPH), LOW, STATEMENT, None, ())
        if not (is_too_little(words) or is_placeholder(words)) and len(facts) < MAX_PARAGRAPHS:
            facts.setdefault(key_of(fact), fact)
    return list(facts.values())
