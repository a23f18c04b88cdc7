"""What a language model answered, as segments and facts, whatever of the format it kept to.

Four levels, each tried when the one before gives nothing: tags with segments, a flat list in tags, a list without
tags, and prose. Nothing raises, and time is linear in the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from memory_pipeline.observations.model.parsing.cleaning import (
    cleaned,
    is_echo,
    is_noise_only,
    is_nothing,
    is_refusal,
    is_too_little,
    shortened,
    without_loops,
    without_tags,
    without_thinking,
)
from memory_pipeline.observations.model.parsing.facts import FactList, ParsedFact, key_of, read_facts, tidy
from memory_pipeline.observations.model.parsing.json_answers import read_json
from memory_pipeline.observations.model.parsing.marks import KINDS, STATEMENT
from memory_pipeline.observations.model.parsing.structure import Draft, Structure, read_structure
from memory_pipeline.text.kinds import is_noise
from memory_pipeline.text.priorities import LOW
from memory_pipeline.text.sentences import sentences

__all__ = ["KINDS", "ParsedAnswer", "ParsedFact", "ParsedSegment", "parse_answer"]

MAX_FACTS = 200
MAX_GUESSES = 3
"""Reasons that the problem tells."""
MAX_PARAGRAPHS, MAX_PARAGRAPH_LENGTH = 10, 300
"""Facts that are made of prose, and their characters."""
MAX_PARAGRAPHS_READ, MAX_CHARACTERS_READ = 100, 2_000
"""Paragraphs of prose, and characters of each, that are looked at."""
MAX_TITLE, MAX_NARRATIVE, MAX_TASK = 120, 600, 500
_NONE = re.compile(r"\W*(?:none|n/?a|null|nothing|unknown|无|没有)\W*", re.I)
_TEMPLATE = (
    *("up to 8 words", "1 to 3 sentences:", "what the person is working on at the end, one line"),
    *("what to do or say next when the work goes on", "numbers of earlier observations that"),
)
_USED = re.compile(r"(?<![\w.])[oO#]?[ -]?(\d{1,4})(?![\w.:])")
_ENDED = re.compile(r"(?:(?<!\d)[.!?…]|[。！？])[)\"'”’»]?$")
"""A full stop behind a number may be the middle of a version."""
_TASKS = re.compile(r"\n|(?=\b(?:Primary|Secondary)\s?:)")
_DONE_TASK = re.compile(r"^\s{0,8}[-*•]?\s?(?:\w{1,20}\s?:)?\s?[✅☑✔]|[✅☑✔]\ufe0f?\s{0,8}$")
_CHATTER = re.compile(
    r"(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are)|let me know|i hope|based on (?:the|this|your)"
    r"|would you like|if you (?:need|want|would)|feel free|below (?:is|are)|i(?:['’]ve| have) (?:read|reviewed))\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class ParsedSegment:
    """A topic as the model told it; `first` and `last` are numbers of messages."""

    title: str | None
    narrative: str | None
    first: int | None
    last: int | None
    facts: tuple[ParsedFact, ...]


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer holds."""

    segments: tuple[ParsedSegment, ...] = ()
    current_task: str | None = None
    suggested_response: str | None = None
    used: tuple[str, ...] = ()
    """Earlier observations that it builds on, like `o2`."""
    ended: tuple[str, ...] = ()
    """Earlier observations that are settled or untrue by now."""
    parsed: bool = False
    """Whether nothing had to be guessed."""
    form: str = "empty"
    """How it was read: `segments`, `flat` (a list in tags), `lines` (a list without), `raw` (prose), `nothing` (it
    says that nothing is worth keeping, which is valid), `refusal`, `empty`, or `degenerate`: a loop, an echo of the
    transcript or mere noise, whose facts are what was there besides."""
    problem: str | None = None
    """One sentence on why it is not parsed."""


def parse_answer(text: str) -> ParsedAnswer:
    """The answer of a model, at the first level that gives something."""
    words, guess = without_thinking(cleaned(text))
    if not words.strip():
        return _ended(ParsedAnswer(form="empty"), ["the answer is empty", *([guess] if guess else [])])
    words, has_loops = without_loops(words)
    answer = _answer(words, [guess] if guess else [])
    if has_loops:
        return _ended(replace(answer, form="degenerate"), ["the answer says the same again and again"])
    return answer


def _answer(text: str, guesses: list[str]) -> ParsedAnswer:
    structure = read_json(text) or read_structure(text)
    guesses = [*guesses, *structure.guesses]
    reported = ParsedAnswer(
        current_task=_reported(_open(structure.texts.get("currenttask")), MAX_TASK),
        suggested_response=_reported(structure.texts.get("suggestedresponse"), MAX_TASK),
        used=_named(structure.texts.get("used")),
        ended=_named(structure.texts.get("ended")),
    )
    content = "\n".join(line for draft in structure.inside for line in draft.lines).strip()
    found = _build(structure.inside, only_listed=False, is_last_cut=structure.is_last_cut)
    loose = _build(structure.outside, only_listed=True)
    has_marks = found.unmarked + loose.unmarked < found.count + loose.count
    if not has_marks and (is_refusal(content) or is_refusal(text)):
        return _ended(replace(reported, form="refusal"), ["the model declines to answer"])
    if not has_marks and is_echo(content or text):
        return _ended(replace(reported, form="degenerate"), ["the answer repeats the transcript"])
    if found.count or (found.segments and not loose.count):
        form = "segments" if structure.has_segments or found.segments[0].narrative else "flat"
        return _ended(replace(reported, segments=tuple(found.segments), form=form), guesses + found.guesses)
    if loose.count:
        why = "the facts stand outside of the tags" if structure.has_tags else "there are no tags"
        return _ended(replace(reported, segments=tuple(loose.segments), form="lines"), [why, *guesses, *loose.guesses])
    return _without_lists(text, content, structure, reported, guesses)


def _without_lists(
    text: str, content: str, structure: Structure, reported: ParsedAnswer, guesses: list[str]
) -> ParsedAnswer:
    """What is said where there is no fact in a list: nothing, prose, or noise."""
    is_empty_list = structure.has_observations and structure.is_closed and not content
    if is_empty_list or is_nothing(content or without_tags(text)):
        return _ended(replace(reported, form="nothing"), guesses)
    if is_noise_only(text):
        return _ended(replace(reported, form="degenerate"), ["the answer has no words"])
    facts = _of_prose(content if structure.has_tags else without_tags(text))
    if not facts:
        return _ended(replace(reported, form="empty"), ["there is no fact in the answer", *guesses])
    segment = ParsedSegment(None, None, None, None, tuple(facts))
    return _ended(replace(reported, segments=(segment,), form="raw"), ["the answer is prose", *guesses])


def _open(task: str | None) -> str | None:
    """What of a task is not marked as done."""
    parts = _TASKS.split(task or "")
    return " ".join(part for part in parts if not _DONE_TASK.search(part)).strip() or None


def _named(reported: str | None) -> tuple[str, ...]:
    """The numbers of earlier observations in the words, each once."""
    words = "" if not reported or reported.startswith(_TEMPLATE) else reported
    return tuple(dict.fromkeys(f"o{int(n)}" for n in _USED.findall(words)))


def _ended(answer: ParsedAnswer, guesses: list[str]) -> ParsedAnswer:
    """With what was guessed, if anything, told in a sentence."""
    why = "; ".join(dict.fromkeys(guesses[:MAX_GUESSES]))
    return replace(answer, parsed=not guesses, problem=f"{why[:1].upper()}{why[1:]}." if guesses else None)


@dataclass(slots=True)
class _Built:
    segments: list[ParsedSegment] = field(default_factory=list)
    count: int = 0
    unmarked: int = 0
    guesses: list[str] = field(default_factory=list)


def _build(drafts: list[Draft], *, only_listed: bool, is_last_cut: bool = False) -> _Built:
    """The segments of the drafts that say something, each fact once and at most 200 of them."""
    built = _Built()
    lists = [draft.facts or read_facts(draft.lines, only_listed=only_listed) for draft in drafts]
    if is_last_cut and lists and lists[-1].is_last_kept and not _ENDED.search(lists[-1].facts[-1].text):
        _end_cut(lists)
        built.guesses.append("the last fact may be cut")
    seen: set[str] = set()
    for draft, found in zip(drafts, lists, strict=True):
        facts = list({key: fact for fact in reversed(found.facts) if (key := key_of(fact)) not in seen}.values())[::-1]
        seen.update(map(key_of, facts))
        if built.count + len(facts) > MAX_FACTS:
            facts = facts[: MAX_FACTS - built.count]
            built.guesses.append(f"only the first {MAX_FACTS} facts are kept")
        built.count += len(facts)
        built.unmarked += min(found.unmarked, len(facts))
        title, narrative = _reported(draft.title, MAX_TITLE), _reported(draft.narrative, MAX_NARRATIVE)
        if found.unlisted and facts:
            built.guesses.append("facts stand on lines without bullets")
        if facts or narrative:
            built.segments.append(ParsedSegment(title, narrative, draft.first, draft.last, tuple(facts)))
    if built.unmarked:
        built.guesses.append(f"{built.unmarked} of {built.count} facts have no priority")
    return built


def _end_cut(lists: list[FactList]) -> None:
    """Drop the last fact, of which a half may say the opposite; where facts have no full stop anyway, mark it."""
    *others, last = [fact for found in lists for fact in found.facts]
    facts = lists[-1].facts
    facts.pop()
    if sum(not _ENDED.search(fact.text) for fact in others) * 2 > len(others):
        facts.append(replace(last, text=f"{last.text} …"))


def _reported(text: str | None, limit: int) -> str | None:
    """The words on one line; None where they say that there are none, or are those of the instructions."""
    words = tidy(text or "")
    return None if not words or _NONE.fullmatch(words) or words.startswith(_TEMPLATE) else shortened(words, limit)


def _of_prose(text: str) -> list[ParsedFact]:
    """A fact of low priority for each paragraph that says something; the answer's talk about itself does not."""
    facts: dict[str, ParsedFact] = {}
    for paragraph in re.split(r"\n[ \t]*\n", text)[:MAX_PARAGRAPHS_READ]:
        part = paragraph.strip()[:MAX_CHARACTERS_READ]
        said = (tidy(part[s.start : s.end]) for s in sentences(part) if s.kind != "heading")
        words = " ".join(w for w in said if not (w.endswith((":", "：")) or _CHATTER.match(w) or is_noise(w)))
        fact = ParsedFact(shortened(words, MAX_PARAGRAPH_LENGTH), LOW, STATEMENT, None, ())
        if not is_too_little(words) and len(facts) < MAX_PARAGRAPHS:
            facts.setdefault(key_of(fact), fact)
    return list(facts.values())
