"""What kind of fact words are, by the cues in them; and which words are none."""

from __future__ import annotations

import re
from typing import Literal, get_args

from memory_pipeline.text import cues
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.languages.roles import Cues
from memory_pipeline.text.momentary import is_momentary_claim
from memory_pipeline.text.similarity import CJK

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
KINDS: tuple[str, ...] = get_args(Kind)
STATEMENT, PROGRESS = "statement", "progress"
MIN_SAID = 12
"""Characters below which a user's sentence says nothing by itself."""
PROSE = 0.7
"""Share of letters and spaces in what reads as a sentence."""
RULES = ("rule", "preference", "correction")
"""Kinds that say how things are to be done from now on: in a user's words nobody else can end them."""
NORMATIVE = (*RULES, "decision")
"""Kinds that say what is to hold: rules and decisions. In a user's words only the user can replace them."""
CUES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("root_cause", cues.ROOT_CAUSE),
    ("rule", cues.RULE),
    ("decision", cues.DECIDED),
    ("preference", cues.PREFERENCE),
    ("decision", cues.DECISION),
    ("state_change", cues.STATE_CHANGE),
    ("convention", cues.CONVENTION),
    ("progress", cues.PROGRESS),
)


def kind_of_user(words: str) -> str:
    """What a user's words are. A question is a question whatever else is in it, unless it corrects."""
    foreign = foreign_cues(words)
    if foreign:
        return _kind_in(foreign, words)
    if is_question(words):
        return "correction" if cues.CORRECTING_QUESTION.search(words) else "question"
    if cues.OPEN.search(words):
        return "question"
    if cues.CORRECTION.search(words):
        return "rule" if cues.RULE.search(words) or cues.PREFERENCE.search(words) else "correction"
    return kind_of_claim(words)


def kind_of_model(words: str) -> str:
    """What the model's words are; it has no preferences."""
    kind = kind_of_claim(words)
    return "statement" if kind == "preference" else kind


def kind_of_claim(words: str) -> str:
    foreign = foreign_cues(words)
    if foreign:
        return next((kind for kind, cue in _claims(foreign) if cue.search(words)), "statement")
    return next((kind for kind, cue in CUES if cue.search(words)), "statement")


def _kind_in(foreign: Cues, words: str) -> str:
    """As for English, but that a contrast alone corrects: "nicht X, sondern Y"."""
    if is_question(words):
        return "correction" if foreign.correcting_question.search(words) else "question"
    if foreign.open.search(words):
        return "question"
    if foreign.correction.search(words):
        return "rule" if foreign.rule.search(words) or foreign.preference.search(words) else "correction"
    kind = kind_of_claim(words)
    return "correction" if kind == "statement" and foreign.contrast.search(words) else kind


def _claims(foreign: Cues) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return (
        ("root_cause", foreign.root_cause),
        ("rule", foreign.rule),
        ("decision", foreign.decision),
        ("preference", foreign.preference),
        ("state_change", foreign.state_change),
        ("convention", foreign.convention),
        ("progress", foreign.progress),
    )


def is_question(words: str) -> bool:
    if words.rstrip("\"')” ").endswith(("?", "？")):
        return True
    foreign = foreign_cues(words)
    return bool((foreign.asking if foreign else cues.ASKING).search(words))


def is_passing(words: str) -> bool:
    """Consent, thanks, or an order for this moment."""
    foreign = foreign_cues(words)
    acceptance = foreign.acceptance if foreign else cues.ACCEPTANCE
    if acceptance.match(words) or length_of(words) < MIN_SAID:
        return True
    return is_momentary_claim(kind_of_user(words), words)


def is_noise(words: str) -> bool:
    """A plan, an offer or praise of the model."""
    foreign = foreign_cues(words)
    if foreign:
        return any(cue.search(words) for cue in (foreign.plan, foreign.offer, foreign.praise))
    return any(cue.search(words) for cue in (cues.PLAN, cues.OFFER, cues.PRAISE))


def is_prose(words: str) -> bool:
    """Whether it reads as a sentence: not a path or a link alone, a prompt or a line of a log."""
    is_one_word = " " not in words and not CJK.search(words)
    return (
        not is_one_word
        and not words.startswith(("===", "---"))
        and sum(c.isalpha() or c.isspace() for c in words) >= PROSE * len(words)
    )


def length_of(words: str) -> int:
    """Characters, of which one of Chinese, Japanese or Korean says as much as three others."""
    return len(words) + 2 * len(CJK.findall(words))
