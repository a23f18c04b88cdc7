"""Kinds of facts by cues in their words; also words that are no fact, and those that only matter for the moment."""

from __future__ import annotations

import re
from typing import Literal, get_args

from memory_pipeline.text.languages.identify import cues_of, english
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
"""Minimum characters of a user's sentence that means something by itself."""
PROSE = 0.7
"""Minimum share of letters and spaces in a sentence of prose."""
RULES = ("rule", "preference", "correction")
"""Kinds that say how things should be done from now on; only a user can end those of a user."""
NORMATIVE = (*RULES, "decision")
"""Kinds that prescribe something: rules and decisions. Only the user can replace those in a user's words."""
_ADDRESSED = re.compile(r"^\W*((me|us|you|i|we|to|that|and|also)\W+)*", re.I)
"""The words between "would you like" and the offer."""
_AUXILIARY = re.compile(
    r"^\W*(?:should|shall|can|could|would|may|do) (?:i|we|you) (?:(?:want|like)(?: me| us)? to )?", re.I
)
_DO = re.compile(r"^\W*do\b", re.I)
"""The beginning of a question that asks for facts: "Do old ones get it too?"."""
_MAY_PASS = ("statement", "state_change", "progress", "convention", "root_cause")
_CLAIMS = (
    ("root_cause", "root_cause"),
    ("rule", "rule"),
    ("decided", "decision"),
    ("preference", "preference"),
    ("decision", "decision"),
    ("state_change", "state_change"),
    ("convention", "convention"),
    ("progress", "progress"),
)
"""Roles of cues in order of precedence, each with the kind that it indicates."""


def kind_of_user(words: str) -> str:
    """The kind of a user's words. A question stays a question unless it is a correction."""
    cues = cues_of(words)
    if is_question(words):
        return "correction" if cues.correcting_question.search(words) else "question"
    if cues.open.search(words):
        return "question"
    if cues.correction.search(words):
        return "rule" if cues.rule.search(words) or cues.preference.search(words) else "correction"
    kind = kind_of_claim(words)
    return "correction" if kind == "statement" and cues.contrast.search(words) else kind


def kind_of_model(words: str) -> str:
    """The kind of a model's words; a model has no preferences."""
    kind = kind_of_claim(words)
    return "statement" if kind == "preference" else kind


def kind_of_claim(words: str) -> str:
    cues = cues_of(words)
    return next((kind for role, kind in _CLAIMS if getattr(cues, role).search(words)), "statement")


def is_question(words: str) -> bool:
    return words.rstrip("\"')”’*_` ").endswith(("?", "？")) or bool(cues_of(words).asking.search(words))


def is_passing(words: str) -> bool:
    """Whether the words are only consent, thanks, or an order for this moment."""
    if cues_of(words).acceptance.match(words) or length_of(words) < MIN_SAID:
        return True
    return kind_of_user(words) in _MAY_PASS and is_momentary_step(words)


def is_noise(words: str) -> bool:
    """Whether the words are a plan, an offer or praise of the model."""
    cues = cues_of(words)
    return any(cue.search(words) for cue in (cues.plan, cues.offer, cues.praise))


def is_prose(words: str) -> bool:
    """Whether the words are a sentence: not a path or a link alone, a prompt or a line of a log."""
    is_one_word = " " not in words and not CJK.search(words)
    return (
        not is_one_word
        and not words.startswith(("===", "---"))
        and sum(c.isalpha() or c.isspace() for c in words) >= PROSE * len(words)
    )


def length_of(words: str) -> int:
    """Length in characters, where one of Chinese, Japanese or Korean counts as three."""
    return len(words) + 2 * len(CJK.findall(words))


def is_momentary_step(words: str) -> bool:
    """Whether the words are an instruction for the moment, whoever gives it, or a step of the model's plan."""
    return bool(cues_of(words).momentary.search(words))


def is_momentary_offer(words: str) -> bool:
    """Whether the words offer to do something right away: "Would you like me to commit this?"."""
    asked = words.rsplit(". ", 1)[-1]
    cues = english()
    return asked.endswith("?") and bool(cues.momentary.match(_ADDRESSED.sub("", cues.offer.sub("", asked))))


def is_momentary_question(words: str) -> bool:
    """Whether the words are a question of the model about the next step ("Do you want to push this?"), not about how
    things should be."""
    asked = _AUXILIARY.sub("", words)
    return is_momentary_offer(asked) and not _DO.match(asked)


def is_momentary_request(line: str) -> bool:
    """Whether a line in a user's words asks for something to be done now."""
    cues = cues_of(line)
    return bool(cues.request.search(line)) and not cues.rule.search(line)
