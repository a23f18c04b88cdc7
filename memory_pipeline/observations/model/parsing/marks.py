"""What a line or an element of an answer says of itself: priority, kind, time, numbers of messages, attributes.

Marks stand in any order at both ends of a line; elements have whatever name a model gives them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from memory_pipeline.text.priorities import EMOJI, HIGH, LOW, MEDIUM
from memory_pipeline.text.spaces import run_together

Kind = Literal[
    "rule",
    "preference",
    "decision",
    "correction",
    "root_cause",
    "state_change",
    "convention",
    "progress",
    "statement",
    "question",
]
KINDS = get_args(Kind)
STATEMENT, PROGRESS = "statement", "progress"
MAX_MARKS = 8
"""Marks before a fact; what follows them is its text."""
WIDEST_RANGE = 20
"""Messages of `#3-#7` that are written out; of a wider range only its two ends."""
TAIL = 160
"""Characters at the end in which numbers are looked for."""

_EMOJI = {
    "🔴": HIGH,
    "❗": HIGH,
    "🟠": MEDIUM,
    "🟡": MEDIUM,
    "🟢": LOW,
    "🔵": LOW,
    "⚪": LOW,
    "!": HIGH,
    "?": MEDIUM,
    "i": LOW,
}
_PRIORITY_WORDS = {
    **{"critical": HIGH, "high": HIGH, "important": MEDIUM, "medium": MEDIUM, "med": MEDIUM},
    **{"note": LOW, "info": LOW, "low": LOW},
}
_KIND = (
    r"rules?|preferences?|decisions?|corrections?|root[ _-]?causes?|state[ _-]?changes?|conventions?|progress"
    r"|statements?|questions?"
)
_PRIORITY = "|".join(_PRIORITY_WORDS)
_SPACE = re.compile(r"[\s*_]*")
_AFTER = re.compile(
    r"(?:[*_]+(?=[\s:：]|$))?\s*(?:(?:[：]|[:|·,;](?=[\s*_]|$)|[-–—]{1,3}(?=\s)|->|→)(?:[*_]+(?=\s|$))?)?"
)
_EMOJI_MARK = re.compile(r"([🔴❗🟠🟡🟢🔵⚪])\ufe0f?|[\[(（【]\s?([!?]|[iI](?=\s?\]))\s?[\])）】]")
_DONE = re.compile(r"[✅☑✔]\ufe0f?")
_ENDS_DONE = re.compile(r"\s*[✅☑✔]\ufe0f?\s*$")
_BRACKET = re.compile(r"[\[(（【]([^\[\]()（）【】\n]{1,120})[\])）】]")
_WORD = re.compile(
    rf"(?:priority[ \t]?[:=][ \t]?)?(?:(?P<priority>{_PRIORITY})(?:[ -]priority)?|(?P<kind>{_KIND})"
    r"|(?P<unknown>[a-z][a-z_-]{2,20}|[一-鿿]{2,6}))(?![\w'’])[*_]*",
    re.I,
)
_GOES_ON = re.compile(
    r"\s?[:：|]|\s+[-–—]\s"
    rf"|\s?[\[(（](?=[#~\d!?]|early|late|near|mid|start|end|hh:|no time|(?:{_KIND}|{_PRIORITY})[\])])"
    rf"|\s?[🔴🟡🟢✅]|\s+#\d|\s+\d{{1,2}}:\d\d\b|\s+(?:{_KIND})(?=[\s*_]{{0,4}}[:：(\[（])",
    re.I,
)
_MARK_FOLLOWS = re.compile(r"\s?[\[(（](?:[#~\d]|early|late|near|mid)", re.I)
_NEW_SENTENCE = re.compile(r"\s[A-Z`\"“'一-鿿]")
_BARE_REFS = re.compile(r"#\d{1,6}(?:[,\s]{1,3}#\d{1,6}){0,20}(?=\s?[:：]|\s[-–—]\s)")
_CLOCK_TEXT = r"(\d{1,2})[:：](\d{2})(?:[:：]\d{2})?\s?([ap]\.?m\b\.?)?"
_BARE_CLOCK = re.compile(rf"{_CLOCK_TEXT}(?=\s?[|\[(（]|[:：]\s|\s[-–—]\s)", re.I)
_LED_CLOCK = re.compile(rf"\s*{_CLOCK_TEXT}(?=\s)", re.I)
"""A time without anything around it, behind what says how much the line matters."""
_LEVEL = re.compile(r"(?:CRITICAL|IMPORTANT|NOTE)(?=\s)")
_CLOCK = re.compile(
    rf"(?:~|≈|at |about |around |ca\.? )?\s?(?:\d{{4}}-\d\d-\d\d[ T])?{_CLOCK_TEXT}(?:\s?(?:utc|z|c?est|p[sd]t))?"
    rf"(?:\s?(?:-|–|—|to)\s?\d{{1,2}}[:：]\d{{2}}(?:[:：]\d{{2}})?\s?(?:[ap]\.?m\.?)?)?",
    re.I,
)
_NO_CLOCK = re.compile(
    r"(?:very )?(?:early|late|later|mid|middle|near|start|end|beginning)"
    r"(?:[ -](?:in|of|on|the|end|start|beginning|this)){0,3}(?:[ -](?:session|conversation|transcript|chat|window))"
    r"|near(?: the)? (?:end|start)|early|late|mid-session"
    r"|hh:mm|[-?]{2}:[-?]{2}|(?:no time|time unknown|unknown(?: time)?)",
    re.I,
)
_ROLE = re.compile(r"\b(?:user|assistant|tool|injected|system)\b", re.I)
_REF_WORD = re.compile(r"\s*(?:messages?|msgs?|refs?|evidence|sources?|see|nos?)\b[.:]?", re.I)
_REF_NOISE = re.compile(r"#?\d+|\b(?:and|to)\b|\.\.|[\s&/,，、;–—-]")
_RANGE = re.compile(r"#?(\d+)(?:\s{0,2}(?:-|–|—|to|\.\.)\s{0,2}#?(\d+))?")
_TAIL_BRACKET = re.compile(r"[\[(（【]([^\[\]()（）【】\n]{1,120})[\])）】]\s*([.。]?)\s*$")


@dataclass(frozen=True, slots=True)
class Marks:
    """What was found around the text; None where there was nothing."""

    priority: str | None = None
    kind: str | None = None
    clock: str | None = None
    refs: tuple[int, ...] = ()
    is_done: bool = False
    """Whether it is marked as finished."""


def leading(line: str) -> tuple[Marks, str]:
    """The marks that a line (without its bullet) leads with, and its text."""
    marks, position = Marks(), 0
    for _ in range(MAX_MARKS):
        space = _SPACE.match(line, position)
        start = space.end() if space else position
        step = _step(line, start, marks)
        if step is None:
            break
        marks, end = step
        after = _AFTER.match(line, end)
        position = after.end() if after else end
    return marks, line[position:].strip()


def trailing(marks: Marks, text: str) -> tuple[Marks, str]:
    """With the numbers in the last brackets, and whether the line ends as done. Without `#` they are numbers only if
    the line led with none."""
    if done := _ENDS_DONE.search(text[-TAIL:]):
        marks, text = replace(marks, is_done=True), text[: len(text) - len(done[0])]
    for _ in range(2):
        found = _TAIL_BRACKET.search(text[-TAIL:])
        if not found:
            break
        bracket = _of_bracket(found[1], Marks())
        is_sure = "#" in found[1] or _REF_WORD.match(found[1])
        if not bracket or not bracket.refs or not (is_sure or (found[0][0] in "[【" and not marks.refs)):
            break
        marks = replace(marks, refs=marks.refs + bracket.refs, clock=marks.clock or bracket.clock)
        text = text[: len(text) - len(found[0])].rstrip(" ,;–—-") + found[2]
    return marks, text


def priority_in(words: str) -> str | None:
    """The priority that a heading names."""
    found = re.search(rf"[🔴🟡🟢]|\b(?:{_PRIORITY})\b", words, re.I)
    return (_EMOJI.get(found[0]) or _PRIORITY_WORDS[found[0].lower()]) if found else None


def kind_named(word: str) -> str | None:
    """The kind of this name, however it is written: `Root cause` is root_cause."""
    name = re.sub(r"[ -]", "_", word.strip().lower())
    name = {"rootcause": "root_cause", "statechange": "state_change"}.get(name, name)
    return next((kind for kind in KINDS if name in (kind, f"{kind}s")), None)


def priority_named(word: str) -> str | None:
    """The priority of this name or marker."""
    name = word.strip().removesuffix("priority").strip(" -[]\ufe0f").lower()
    return _EMOJI.get(name) or _PRIORITY_WORDS.get(name)


def clock_in(words: str) -> str | None:
    """`HH:MM` of a time of day, None when it is none."""
    found = _CLOCK.fullmatch(words.strip())
    return _clock_of(found) if found else None


def refs_in(words: str) -> tuple[int, ...] | None:
    """Numbers of messages, when there is nothing else: `#3 #7`, `3, 7`, `#3-#7`, `messages 3 and 7`."""
    word = _REF_WORD.match(words)
    rest = words[word.end() if word else 0 :]
    numbers = re.findall(r"\d+", rest)
    if not numbers or max(map(len, numbers)) > 6 or _REF_NOISE.sub("", rest):
        return None
    refs: list[int] = []
    for first, last in _RANGE.findall(rest):
        one, other = int(first), int(last or first)
        refs += range(one, other + 1) if one <= other <= one + WIDEST_RANGE else (one, other)
    return tuple(dict.fromkeys(refs))


def _step(line: str, start: int, marks: Marks) -> tuple[Marks, int] | None:
    """With the mark that begins here, and where it ends."""
    if emoji := _EMOJI_MARK.match(line, start):
        return replace(marks, priority=marks.priority or _EMOJI[(emoji[1] or emoji[2]).lower()]), emoji.end()
    if bracket := _BRACKET.match(line, start):
        more = _of_bracket(bracket[1], marks, is_square=bracket[0][0] in "[【")
        return (more, bracket.end()) if more else None
    if not marks.refs and (bare := _BARE_REFS.match(line, start)):
        return replace(marks, refs=refs_in(bare[0]) or ()), bare.end()
    if done := _DONE.match(line, start):
        return replace(marks, is_done=True), done.end()
    if not marks.clock and (clock := _BARE_CLOCK.match(line, start)):
        return replace(marks, clock=_clock_of(clock)), clock.end()
    if marks.priority and not marks.clock and (clock := _LED_CLOCK.match(line, start)):
        # "🔴 14:30 User …"; in "🔴 14:30 is when …" it is a word of the sentence
        return (replace(marks, clock=_clock_of(clock)), clock.end()) if _NEW_SENTENCE.match(line, clock.end()) else None
    word = _WORD.match(line, start)
    return _of_word(line, word, marks) if word else None


def _of_word(line: str, word: re.Match[str], marks: Marks) -> tuple[Marks, int] | None:
    """With the priority or kind that a bare word names, if it is no part of the sentence: "Rule: …", not "Rule 3 …"."""
    goes_on = _GOES_ON.match(line, word.end())
    if word["priority"]:
        named = _PRIORITY_WORDS[word["priority"].lower()]
        is_level = marks.clock is not None and _LEVEL.match(line, word.start())  # "[2026-03-05 09:15] IMPORTANT …"
        if not (goes_on or is_level) or marks.priority not in (None, named):
            return None
        marks = replace(marks, priority=named)
        clock = None if marks.clock else _LED_CLOCK.match(line, word.end())  # "CRITICAL 09:15 …"
        return (replace(marks, clock=_clock_of(clock)), clock.end()) if clock else (marks, word.end())
    if word["kind"]:
        is_bare = word[0].islower() and marks.priority and _NEW_SENTENCE.match(line, word.end())
        fits = not marks.kind and bool(goes_on or is_bare)
        return (replace(marks, kind=kind_named(word["kind"])), word.end()) if fits else None
    # a kind that nobody asked for: "🔴 bugfix (14:03) …"
    is_first = marks.priority is not None and not (marks.kind or marks.clock or marks.refs)
    fits = is_first and not word[0][0].isupper() and bool(_MARK_FOLLOWS.match(line, word.end()))
    return (replace(marks, kind=STATEMENT), word.end()) if fits else None


def _of_bracket(content: str, marks: Marks, *, is_square: bool = True) -> Marks | None:
    """With all that the brackets hold; None when a part of it is no mark, so that it is text."""
    refs = refs_in(content)
    if refs is not None:
        return (
            replace(marks, refs=marks.refs + refs) if is_square or "#" in content or _REF_WORD.match(content) else None
        )
    if clock := _CLOCK.fullmatch(content.strip()):
        return replace(marks, clock=marks.clock or _clock_of(clock))
    for part in re.split(r"[,，、;|·]|(?<=\d:\d\d) (?=#|user|assistant|tool|injected)|(?<=\d) (?=\d\d:\d\d)", content):
        words = part.strip(" \t*_")
        if clock := _CLOCK.fullmatch(words):
            marks = replace(marks, clock=marks.clock or _clock_of(clock))
        elif priority := priority_named(words):
            marks = replace(marks, priority=marks.priority or priority)
        elif kind := kind_named(words):
            marks = replace(marks, kind=marks.kind or kind)
        elif (is_square or "#" in words) and (refs := refs_in(words)):
            marks = replace(marks, refs=marks.refs + refs)
        elif not _NO_CLOCK.fullmatch(words) and not _ROLE.fullmatch(words):
            return None
    return marks


def _clock_of(found: re.Match[str]) -> str | None:
    hour, minute, half = int(found[1]), int(found[2]), (found[3] or "").lower()
    if half:
        hour = hour % 12 + 12 * half.startswith("p")
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else None


CONTAINERS = ("observations", "segment", "facts")
TEXTS = ("title", "narrative", "currenttask", "suggestedresponse", "used", "ended")
"""Elements that hold words, as they are called here: letters only."""
_ALIASES = {
    **{name: name for name in (*CONTAINERS, *TEXTS, "fact")},
    **{"observation": "fact", "keyfacts": "facts", "summary": "narrative", "threadtitle": "title"},
    **{"suggestedcontinuation": "suggestedresponse", "nextstep": "suggestedresponse", "nextsteps": "suggestedresponse"},
    **{"usedobservations": "used", "endedobservations": "ended"},
}
_AROUND = frozenset({"segments", "answer", "output", "response", "result", "document", "memory"})
"""Tags around the answer that mean nothing."""
_SLIPS = {
    name[:i] + name[i + 1 :]: known for name, known in _ALIASES.items() if len(name) > 4 for i in range(len(name))
}
"""Every name with a letter left out: two names that share one are a letter apart."""

_ATTRIBUTE = re.compile(r"([A-Za-z_-]{2,20})\s{0,3}=\s{0,3}(?:\"([^\"]{0,200})\"|'([^']{0,200})'|([^\s\"'>]{1,60}))")
_NUMBER = re.compile(r"(?<!\d)\d{1,6}(?!\d)")


def element_of(name: str) -> str | None:
    """The element that a name means, however it is written: one letter may be wrong, left out or doubled."""
    letters = re.sub(r"[^a-z]", "", name.lower())[:30]
    if letters in _AROUND:
        return None
    known = _ALIASES.get(letters) or (_SLIPS.get(letters) if len(letters) > 4 else None)
    if known or len(letters) < 6:
        return known
    shorter = (letters[:i] + letters[i + 1 :] for i in range(len(letters)))
    return next((found for word in shorter if (found := _ALIASES.get(word) or _SLIPS.get(word))), None)


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of a tag by their names in lower case."""
    return {m[1].lower(): m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(text)}


def fact_line(text: str, attributes: dict[str, str]) -> str:
    """A fact that came as an element or as JSON, as the line that it would have been."""

    def value(*names: str) -> str:
        return next((attributes[name] for name in names if attributes.get(name)), "")

    priority = priority_named(value("priority", "importance", "level", "mark"))
    kind, clock = kind_named(value("kind", "type", "category")), clock_in(value("time", "clock", "timestamp", "at"))
    refs = refs_in(
        value("places", "refs", "ref", "messages", "message", "message_numbers", "evidence", "numbers", "from", "ids")
    )
    parts = ["*", EMOJI[priority] if priority else "", f"[{kind}]" if kind else "", f"({clock})" if clock else ""]
    numbers = "[" + " ".join(f"#{ref}" for ref in refs) + "]" if refs else ""
    return " ".join(part for part in (*parts, numbers, run_together(text)) if part)


def from_to(attributes: dict[str, str]) -> tuple[int | None, int | None]:
    """Numbers of the first and last message, from two attributes or one."""
    first = next(
        (attributes[name] for name in ("from", "start", "first", "messages", "range") if name in attributes), ""
    )
    last = next((attributes[name] for name in ("to", "end", "last") if name in attributes), first)
    numbers, others = _NUMBER.findall(first), _NUMBER.findall(last)
    return (int(numbers[0]) if numbers else None), (int(others[-1]) if others else None)
