"""Properties of a line by its words: whether it supposes, orders, guesses, reports or refers to something, and whether
it can be understood and followed without its context.

A line is a sentence of a user, an observer or a reflector, which may become a line of MEMORY.md. "no, that's horrible"
is a correction and "should be dimmer" a rule, but neither names its object. In doubt a line is not self-contained: it
stays an observation.
"""

from __future__ import annotations

import re

from memory_pipeline.text.kinds import is_momentary_request, is_momentary_step, is_question
from memory_pipeline.text.languages.identify import cues_of, english
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

_LIST = deferred(r"; .*; |→")
_POINTS = deferred(r"\b(?:it|this|that|these|those|them|here|there|it's|that's)\b", re.IGNORECASE)
MIN_WORDS = 2
"""Minimum content words, which name an object and what applies to it: "answer in English"."""
LONG = 70
"""Tokens from which a line is a paragraph, of which a user would keep only a part."""
MAX_STATEMENT = 150
"""Maximum tokens of an explicit statement with its qualifying sentences."""
_REACTION = deferred(
    r"^\W*(?:(?:(?:yes|yeah|ok(?:ay)?|hm+|oh|ah|well|so|and|but|also|alright|actually|please|omg|omfg|wtf|ffs|"
    r"(?:my )?dude|sorry)\b|(?:no|nope|wrong|stop|wait|again|then|now)\b(?=[,.:;!-]))[\s,.:;!-]*)+",
    re.I,
)
"""Introductions without meaning of their own."""
_HERE = deferred(
    r"\b(?:this|our|the) (?:repo(?:sitory)?|project|code ?base|package|machine|app|team|workspace)\b", re.I
)
"""Names that a line implies by belonging to its project."""
_POINTS_FIRST = deferred(
    r"^(?:it|this|that|these|those|they|he|she|there|here|such|same|both|the (?:first|second|last|other))\b", re.I
)
_NO_SUBJECT = deferred(
    r"^(?:should|must|needs?|has|have|had|is|isn'?t|are|was|were|can|could|would|will|does|looks|seems|still)\b", re.I
)
_ABOVE = deferred(
    r"\b(?:above|below|previous(?:ly)?|earlier|aforementioned|the rest|as (?:i )?said|like before|the same way)\b"
    r"|上述|以上|如上|前述",
    re.I,
)
_REFERS = deferred(
    r"\b(?:it|they|them|this|these|those|here|there)\b|\bthat(?! (?:the|an?|every|each|all|any|no|you|we|i|they|it|is|"
    r"are|has|have|can|must|should|will|would|\w+s)\b)",
    re.I,
)
_WISH = deferred(
    r"\bi(?: want|['’]d like| would like| need)(?: you)? to (?:create|make|build|implement|write|start|try)\b", re.I
)
"""A task, which no longer matters once it is done."""
ANTECEDENT = 3
"""Content words before "it" that show that it refers to something in the same sentence."""
_DO = deferred(r"^(?:use|keep|take|put|write|name|call|run|store|set|prefer|leave)\b", re.I)
SAYS_WHAT = 4
"""Minimum content words with which a correction without an object says what is right."""


def supposes(text: str) -> bool:
    """Whether the line considers a possibility: "maybe", "if we", "could"."""
    return bool(cues_of(text).supposes.search(text))


def orders(text: str) -> bool:
    """Whether the line is an instruction; English ones also count within a text of another language."""
    own, text = cues_of(text), text.strip()
    cues = (english().orders,) if own is english() else (english().orders, own.rule, own.momentary)
    return any(cue.search(text) for cue in cues)


def guesses(text: str) -> bool:
    """Whether the line is only a guess: "I think", "seems"."""
    return bool(cues_of(text).guess.search(text))


def points(text: str) -> bool:
    """Whether the line says "that" or "here", which is unclear later unless it also names its object."""
    return _POINTS.search(text) is not None


def reports_success(text: str) -> bool:
    """Whether the line reports that something works or is done."""
    return "✅" in text or bool(cues_of(text).success.search(text))


def narrates(text: str) -> bool:
    """Whether the line only tells what happened or who wanted it: "Changed pip to uv", "the user asked for uv"."""
    cues = cues_of(text)
    applies = cues.rule.search(text) or cues.obligation.search(text)
    return not applies and bool(cues.narrates.search(text))


def is_list(text: str) -> bool:
    """Whether the line lists several things, like a model's list of changes."""
    return _LIST.search(text) is not None


def is_self_contained(text: str, kind: str) -> bool:
    """Whether a user's words of this kind are understandable on their own and outlast the moment."""
    if estimate(text) > LONG or not stands_alone(text) or is_question(text) or guesses(text) or supposes(text):
        return False
    said, cues = _REACTION.sub("", text), cues_of(text)
    if any(cue.search(text) for cue in (cues.for_now, cues.later, cues.open, cues.complaint, cues.offer)):
        return False
    is_rule = bool(cues.rule.search(said))
    if _WISH.search(said) or (not is_rule and (is_momentary_request(said) or is_momentary_step(said))):
        return False
    if cues is not english():
        return tells_what(text)
    return kind != "correction" or tells_what(said) or len(content_words(_HERE.sub("", said))) >= SAYS_WHAT


def stands_alone(text: str) -> bool:
    """Whether a statement names its object and refers to nothing that was said before it."""
    said = _REACTION.sub("", text)
    if estimate(text) > MAX_STATEMENT or len(content_words(said)) < MIN_WORDS or _ABOVE.search(said):
        return False
    if cues_of(text) is not english():
        return True
    named = _HERE.sub("", said)
    if _POINTS_FIRST.match(named) or _NO_SUBJECT.match(named):
        return False
    # a pronoun must refer to something that was named before it
    return all(len(content_words(named[: found.start()])) >= ANTECEDENT for found in _REFERS.finditer(named))


def tells_what(text: str) -> bool:
    """Whether the line prescribes or explains something: a rule, a preference, a decision, a reason."""
    cues = cues_of(text)
    told = (cues.rule, cues.preference, cues.decided, cues.decision, cues.contrast, cues.obligation, cues.convention)
    return any(cue.search(text) for cue in told) or (
        cues is english() and bool(_DO.match(text) or cues.reason.search(text))
    )
