"""Whether words stand alone: a user's rule, preference, decision or correction that is understood, and can be followed,
without what was said around it.

Asked before a line that quotes is offered for MEMORY.md. "no, that's horrible" is a correction, and "should be dimmer"
a rule, and neither says of what. In doubt words do not stand alone: they stay an observation.
"""

from __future__ import annotations

import re

from memory_pipeline.text import cues
from memory_pipeline.text.kinds import is_question
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.momentary import is_momentary_request, is_momentary_step
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate
from memory_pipeline.text.wording import asks, guesses, supposes

MIN_WORDS = 2
"""Words of content, the least that name a thing and what is to hold for it: "answer in English"."""
LONG = 70
"""Tokens from which it is a paragraph of which a user would keep a part."""
_REACTION = re.compile(
    r"^\W*(?:(?:(?:yes|yeah|ok(?:ay)?|hm+|oh|ah|well|so|and|but|also|alright|actually|please|omg|omfg|wtf|ffs|"
    r"(?:my )?dude|sorry)\b|(?:no|nope|wrong|stop|wait|again|then|now)\b(?=[,.:;!-]))[\s,.:;!-]*)+",
    re.I,
)
"""How somebody begins to speak, which says nothing."""
_HERE = re.compile(
    r"\b(?:this|our|the) (?:repo(?:sitory)?|project|code ?base|package|machine|app|team|workspace)\b", re.I
)
"""What a line names by being a line about its project."""
_POINTS_FIRST = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|there|here|such|same|both|the (?:first|second|last|other))\b", re.I
)
_NO_SUBJECT = re.compile(
    r"^(?:should|must|needs?|has|have|had|is|isn'?t|are|was|were|can|could|would|will|does|looks|seems|still)\b", re.I
)
_ABOVE = re.compile(
    r"\b(?:above|below|previous(?:ly)?|earlier|aforementioned|as (?:i )?said|like before|the same way)\b"
    r"|上述|以上|如上|前述",
    re.I,
)
_POINTS = re.compile(
    r"\b(?:it|they|them|this|these|those|here|there)\b|\bthat(?! (?:the|an?|every|each|all|any|no|you|we|i|they|it|is|"
    r"are|has|have|can|must|should|will|would|\w+s)\b)",
    re.I,
)
_WISH = re.compile(
    r"\bi(?: want|['’]d like| would like| need)(?: you)? to (?:create|make|build|implement|write|start|try)\b", re.I
)
"""A task, which is done when it is done."""
ANTECEDENT = 3
"""Words of content in front of "it" with which it speaks of something in the same words."""
_DO = re.compile(r"^(?:use|keep|take|put|write|name|call|run|store|set|prefer|leave)\b", re.I)
_SAYS_WHAT = (_DO, cues.RULE, cues.PREFERENCE, cues.DECISION, cues.DECIDED, cues.OBLIGATION, cues.REASON)
SAYS_WHAT = 4
"""Words of content with which a correction that points at nothing says what is right."""


def stands_alone(text: str, kind: str) -> bool:
    """Whether a user's words of this kind are clear by themselves and outlast their moment."""
    said = _REACTION.sub("", text)
    if not said or estimate(text) > LONG or len(content_words(said)) < MIN_WORDS:
        return False
    if asks(text) or is_question(text) or guesses(text) or supposes(text) or _ABOVE.search(said):
        return False
    foreign = foreign_cues(text)
    if foreign:
        says_what = (foreign.rule, foreign.preference, foreign.decision, foreign.contrast, foreign.convention)
        is_passing = foreign.for_now.search(text) or foreign.offer.search(text) or foreign.momentary.search(said)
        return not is_passing and any(cue.search(text) for cue in says_what)
    if any(cue.search(text) for cue in (cues.FOR_NOW, cues.LATER, cues.OPEN, cues.COMPLAINT, cues.OFFER)):
        return False
    is_rule = bool(cues.RULE.search(said))
    if _WISH.search(said) or (not is_rule and (is_momentary_request(said) or is_momentary_step(said))):
        return False
    named = _HERE.sub("", said)
    if _POINTS_FIRST.match(named) or _NO_SUBJECT.match(named) or _is_pointing(named):
        return False
    if kind != "correction" or tells_what(said):
        return True
    return len(content_words(named)) >= SAYS_WHAT


def tells_what(text: str) -> bool:
    """Whether it has words that tell what is to hold: a rule, a preference, a decision, a reason."""
    foreign = foreign_cues(text)
    told = (foreign.rule, foreign.preference, foreign.decision, foreign.contrast) if foreign else _SAYS_WHAT
    return any(cue.search(text) for cue in told)


def _is_pointing(text: str) -> bool:
    """Whether it speaks of something that it has not named before."""
    return any(len(content_words(text[: found.start()])) < ANTECEDENT for found in _POINTS.finditer(text))
