"""Spans of what was said that could be facts, each with its kind and a weight.

The weights are set by hand after the lifts that were measured on labelled sessions: a person's short message
is worth most, then rules, corrections and decisions; plans, offers, praise and hedges of the model are noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.observations import cues
from memory_pipeline.observations.observer import Said
from memory_pipeline.text.sentences import Sentence, sentences, squeeze
from memory_pipeline.text.similarity import content_words, overlap
from memory_pipeline.text.tokens import estimate

WHOLE_MESSAGE = 400
"""Characters up to which a person's message is taken as a whole; what is longer is mostly pasted."""
UNIT = 420
"""Characters that two neighbouring sentences of the model may have together."""
CUES = (
    ("root_cause", cues.ROOT_CAUSE),
    ("rule", cues.RULE),
    ("preference", cues.PREFERENCE),
    ("decision", cues.DECISION),
    ("state_change", cues.STATE_CHANGE),
    ("convention", cues.CONVENTION),
    ("progress", cues.PROGRESS),
)
USER_WEIGHT = {"rule": 1.6, "preference": 1.4, "decision": 1.2, "correction": 1.0, "root_cause": 1.2}
ASSISTANT_WEIGHT = {
    "root_cause": 2.0,
    "decision": 1.1,
    "state_change": 1.2,
    "convention": 0.6,
    "progress": 0.5,
    "rule": 0.3,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """`messages[position].text[start:end]`, squeezed into `text`; `probability` is that of being worth keeping."""

    position: int
    start: int
    end: int
    text: str
    kind: str
    trust: str
    probability: float
    supported: bool = False
    """The model's claim was followed by a result or a reply that did not contradict it."""


def candidates(messages: Sequence[Said]) -> Iterator[Candidate]:
    """Every span of the window that might be kept, in order."""
    retractions = [
        (i, content_words(m.text))
        for i, m in enumerate(messages)
        if m.role in ("user", "assistant") and cues.RETRACTION.search(m.text)
    ]
    for position, message in enumerate(messages):
        if message.role == "user":
            yield from _of_user(position, message)
        elif message.role == "assistant":
            yield from _of_assistant(position, message, messages, retractions)


def _of_user(position: int, message: Said) -> Iterator[Candidate]:
    text = message.text
    found = [s for s in sentences(text) if s.kind != "heading"]
    if not found:
        return
    if len(text) <= WHOLE_MESSAGE:
        units = [Sentence(found[0].start, found[-1].end, "prose", 0)]
    else:  # a paste with the person's own words before it, or after it
        units = [s for s in found if s.paragraph in (found[0].paragraph, found[-1].paragraph) and s.kind == "prose"][:6]
    for unit in units:
        words = squeeze(text[unit.start : unit.end])
        if len(words) < 12 or cues.ACCEPTANCE.match(words):
            continue
        kind = kind_of_user(words)
        score = (2.0 if len(text) <= WHOLE_MESSAGE else 1.2) + USER_WEIGHT.get(kind, 0.0) - 2.2 + _size(words)
        score += (
            0.6 * bool(cues.REASON.search(words)) - 1.2 * (kind == "question") - 0.8 * bool(cues.LATER.search(words))
        )
        if kind in ("statement", "state_change", "progress") and cues.MOMENTARY.search(words):
            score -= 1.2
        yield Candidate(position, unit.start, unit.end, words, kind, "user", _sigmoid(score))


def kind_of_user(words: str) -> str:
    """What a person's words are. A question is a question whatever else is in it, unless it corrects."""
    if words.rstrip("\"')” ").endswith(("?", "？")):
        return "correction" if cues.CORRECTING_QUESTION.search(words) else "question"
    if cues.CORRECTION.search(words):
        return "rule" if cues.RULE.search(words) or cues.PREFERENCE.search(words) else "correction"
    return next((kind for kind, cue in CUES if cue.search(words)), "statement")


def _of_assistant(
    position: int, message: Said, messages: Sequence[Said], retractions: Sequence[tuple[int, frozenset[str]]]
) -> Iterator[Candidate]:
    reply = next((m for m in messages[position + 1 :] if m.role == "user"), None)
    rejected = reply is not None and bool(cues.NEGATIVE_REPLY.search(reply.text))
    ends_turn = position + 1 == len(messages) or messages[position + 1].role in ("user", "injected")
    verified = any(m.role == "tool" and not m.is_error for m in messages[position + 1 : position + 7])
    for unit in _units(message.text):
        words = squeeze(message.text[unit.start : unit.end])
        if len(words) < 30 or words.endswith(("?", "？", ":")) or _is_noise(words):
            continue
        kind = next((kind for kind, cue in CUES if cue.search(words)), "statement")
        if kind == "preference":
            kind = "statement"
        score = -1.9 + ASSISTANT_WEIGHT.get(kind, 0.0) + _size(words) + 0.5 * ends_turn
        score += (
            0.35 * min(3, len(cues.SPECIFIC.findall(words))) - 1.0 * bool(cues.HEDGE.search(words)) - 1.5 * rejected
        )
        if kind in ("root_cause", "statement", "decision") and _retracted(position, words, retractions):
            continue
        supported = not rejected and (verified or (reply is not None and ends_turn))
        yield Candidate(position, unit.start, unit.end, words, kind, "assistant", _sigmoid(score), supported)


def _units(text: str) -> Iterator[Sentence]:
    """Sentences, and pairs of neighbours in one paragraph."""
    found = [s for s in sentences(text) if s.kind != "heading"]
    yield from found
    for one, two in zip(found, found[1:], strict=False):
        if one.paragraph == two.paragraph and two.end - one.start <= UNIT:
            yield Sentence(one.start, two.end, one.kind, one.paragraph)


def _is_noise(words: str) -> bool:
    return any(cue.search(words) for cue in (cues.PLAN, cues.OFFER, cues.PRAISE))


def _retracted(position: int, words: str, retractions: Sequence[tuple[int, frozenset[str]]]) -> bool:
    """Whether a later message takes the claim back: it says so and speaks of the same things."""
    claim = content_words(words)
    return any(i > position and len(claim & said) >= max(2, len(claim) // 5) for i, said in retractions)


def _size(words: str) -> float:
    """Longer says more: from 0.7 for five words to 2 for sixty."""
    return math.log1p(estimate(words)) * 0.45


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def redundancy(candidate: Candidate, kept: Sequence[frozenset[str]]) -> float:
    """The largest overlap with what is kept already, 0 to 1."""
    mine = content_words(candidate.text)
    return max((overlap(mine, other) for other in kept), default=0.0)
