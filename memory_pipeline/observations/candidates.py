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
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

WHOLE_MESSAGE = 400
"""Characters up to which a person's message is taken as a whole; what is longer is mostly pasted."""
CLOSING = 200
"""Characters of a last paragraph below a paste that can still be the person's own."""
OWN_LINES = 3
"""Line breaks that a person types; a message with more of them holds something pasted."""
UNIT = 420
"""Characters that two neighbouring sentences of the model may have together."""
MIN_USER = 12
"""Characters below which a person's sentence says nothing by itself."""
MIN_ASSISTANT = 40
PASTE_WEIGHT = -1.2
OPENING = 400
"""Characters of a paste that are looked at."""
PROSE = 0.8
"""Share of letters and spaces in what reads as a sentence."""
MOMENTARY_KINDS = ("statement", "state_change", "progress", "decision", "convention", "root_cause")
CUES = (
    ("root_cause", cues.ROOT_CAUSE),
    ("rule", cues.RULE),
    ("decision", cues.DECIDED),
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
    is_firm: bool = True
    """Said for good: by a person, in their own words and without doubt; or a cause that the model had found
    and that nothing contradicted."""


def candidates(messages: Sequence[Said]) -> Iterator[Candidate]:
    """Every span of the window that might be kept, in order."""
    retractions = [
        (i, content_words(m.own))
        for i, m in enumerate(messages)
        if m.role in ("user", "assistant") and cues.RETRACTION.search(m.own)
    ]
    for position, message in enumerate(messages):
        if message.role == "user":
            yield from _of_user(position, message)
        elif message.role == "assistant":
            yield from _of_assistant(position, message, messages, retractions)


def _of_user(position: int, message: Said) -> Iterator[Candidate]:
    text = message.own
    places = [0, *(place for span in message.quoted for place in span), len(text)]
    parts = [text[start:end].strip() for start, end in zip(places[::2], places[1::2], strict=True)]
    is_short = sum(map(len, parts)) <= WHOLE_MESSAGE
    is_dense = sum(part.count("\n") for part in parts) > OWN_LINES
    for unit in _units_of_user(message, is_short):
        words = squeeze(text[unit.start : unit.end])
        if _length(words) < MIN_USER or cues.ACCEPTANCE.match(words):
            continue
        kind = kind_of_user(words)
        score = (0.0 if is_short else -0.8) - 0.2 + USER_WEIGHT.get(kind, 0.0) + _size(words)
        score += (
            0.6 * bool(cues.REASON.search(words)) - 1.2 * (kind == "question") - 0.8 * bool(cues.LATER.search(words))
        )
        if _is_momentary(kind, words):
            score -= 1.6
            kind = "statement"
        is_firm = (
            is_short
            and not is_dense
            and not (_is_question(words) or cues.HEDGE.search(words) or cues.FOR_NOW.search(words))
        )
        if kind == "correction":  # "no, leave it" is about the moment, "no, it must not poll" is about the thing
            is_firm = is_firm and any(c.search(words) for c in (cues.REASON, cues.DECISION, cues.OBLIGATION))
        yield Candidate(position, unit.start, unit.end, words, kind, "user", _sigmoid(score), is_firm)
    yield from _of_paste(position, message)


def _of_paste(position: int, message: Said) -> Iterator[Candidate]:
    """How each longer paste begins. It tells what the person passed on, and whatever it says is no more than that."""
    for start, end in message.quoted:
        first = next(sentences(message.text[start : min(end, start + OPENING)]), None)
        words = squeeze(message.text[start + first.start : start + first.end]) if first else ""
        is_prose = sum(c.isalpha() or c.isspace() for c in words) >= PROSE * len(words)
        if first and is_prose and len(words) >= MIN_ASSISTANT:
            score = PASTE_WEIGHT + _size(words)
            place = (position, start + first.start, start + first.end)
            yield Candidate(*place, words, "statement", "paste", _sigmoid(score), is_firm=False)


def _units_of_user(message: Said, is_short: bool) -> list[Sentence]:
    """A short message as one unit, without the consent and the orders around what it says; of a longer one,
    which is mostly pasted, the first sentences and a short last paragraph. A question stands alone, and so does
    what is above, between and below what is known to be pasted."""
    text = message.own
    found = [s for s in sentences(text) if s.kind != "heading" and not _announces_paste(message, s)]
    if not is_short:
        opening = [s for s in found if s.paragraph == found[0].paragraph][:2]
        closing = [s for s in found if s.paragraph == found[-1].paragraph != found[0].paragraph]
        return opening + (closing if closing and closing[-1].end - closing[0].start <= CLOSING else [])
    units: list[Sentence] = []
    run: list[Sentence] = []
    for sentence in [*found, None]:
        words = squeeze(text[sentence.start : sentence.end]) if sentence else ""
        stands_alone = _is_question(words) or bool(cues.OPEN.search(words))
        if not sentence or stands_alone or _is_paste_between(message, run, sentence):
            units += _joined(text, run)
            run = []
        if sentence and stands_alone:
            units.append(sentence)
        elif sentence:
            run.append(sentence)
    return units


def _is_paste_between(message: Said, run: Sequence[Sentence], sentence: Sentence) -> bool:
    return bool(run) and any(run[-1].end <= start < sentence.start for start, _ in message.quoted)


def _announces_paste(message: Said, sentence: Sentence) -> bool:
    """Whether it says no more than that something is pasted below it: "the log:"."""
    if not message.text.endswith((":", "："), sentence.start, sentence.end):
        return False
    return any(start >= sentence.end and not message.text[sentence.end : start].strip() for start, _ in message.quoted)


def _joined(text: str, run: Sequence[Sentence]) -> list[Sentence]:
    """From the first to the last sentence that says something lasting; all of them when none does."""
    said = [i for i, s in enumerate(run) if not _is_passing(squeeze(text[s.start : s.end]))]
    kept = run[said[0] : said[-1] + 1] if said else run
    return [Sentence(kept[0].start, kept[-1].end, "prose", kept[0].paragraph)] if kept else []


def _is_passing(words: str) -> bool:
    """Consent, thanks, or an order for this moment."""
    if cues.ACCEPTANCE.match(words) or _length(words) < MIN_USER:
        return True
    return _is_momentary(kind_of_user(words), words)


def _is_momentary(kind: str, words: str) -> bool:
    """An order for this moment; a decision that gives its reason ("let's go with it because …") outlasts it."""
    has_reason = kind == "decision" and bool(cues.REASON.search(words))
    return kind in MOMENTARY_KINDS and not has_reason and bool(cues.MOMENTARY.search(words))


def _is_question(words: str) -> bool:
    return words.rstrip("\"')” ").endswith(("?", "？")) or bool(cues.ASKING.search(words))


def kind_of_user(words: str) -> str:
    """What a person's words are. A question is a question whatever else is in it, unless it corrects."""
    if _is_question(words):
        return "correction" if cues.CORRECTING_QUESTION.search(words) else "question"
    if cues.OPEN.search(words):
        return "question"
    if cues.CORRECTION.search(words):
        return "rule" if cues.RULE.search(words) or cues.PREFERENCE.search(words) else "correction"
    return next((kind for kind, cue in CUES if cue.search(words)), "statement")


def _of_assistant(
    position: int, message: Said, messages: Sequence[Said], retractions: Sequence[tuple[int, frozenset[str]]]
) -> Iterator[Candidate]:
    reply = next((m for m in messages[position + 1 :] if m.role == "user"), None)
    rejected = reply is not None and bool(cues.NEGATIVE_REPLY.search(reply.own.lstrip("\n")))
    ends_turn = position + 1 == len(messages) or messages[position + 1].role in ("user", "injected")
    verified = any(m.role == "tool" and not m.is_error for m in messages[position + 1 : position + 7])
    for unit in _units(message.text):
        words = squeeze(message.text[unit.start : unit.end])
        if len(words) < MIN_ASSISTANT or words.endswith(("?", "？", ":")) or is_noise(words):
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
        held = not rejected and (ends_turn or verified)
        is_firm = held and bool(cues.FOUND.search(words)) and not cues.HEDGE.search(words)
        yield Candidate(position, unit.start, unit.end, words, kind, "assistant", _sigmoid(score), is_firm)


def _units(text: str) -> Iterator[Sentence]:
    """Sentences, and two or three neighbours in one paragraph: what follows a claim often makes it clear."""
    found = [s for s in sentences(text) if s.kind != "heading"]
    for i, first in enumerate(found):
        for last in found[i : i + 3]:
            if last.paragraph == first.paragraph and (last is first or last.end - first.start <= UNIT):
                yield Sentence(first.start, last.end, first.kind, first.paragraph)


def is_noise(words: str) -> bool:
    """A plan, an offer or praise of the model."""
    return any(cue.search(words) for cue in (cues.PLAN, cues.OFFER, cues.PRAISE))


def _retracted(position: int, words: str, retractions: Sequence[tuple[int, frozenset[str]]]) -> bool:
    """Whether a later message takes the claim back: it says so and speaks of the same things."""
    claim = content_words(words)
    return any(i > position and len(claim & said) >= max(2, len(claim) // 5) for i, said in retractions)


def _length(words: str) -> int:
    """Characters, of which a Chinese one says as much as three others."""
    return len(words) + 2 * len(cues.CHINESE.findall(words))


def _size(words: str) -> float:
    """Longer says more: from 0.7 for five words to 2 for sixty."""
    return math.log1p(estimate(words)) * 0.45


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))
