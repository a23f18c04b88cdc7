"""The extractive observer, which quotes. It needs no model, and its facts contain only words of the session.

It rates spans of users' and models' messages (`candidates.py`) and keeps the best ones within a token budget, so a fact
is always a verbatim quotation with its place. From a conversation about something other than code it keeps the
sentences with the rarest words: the weights were fitted on coding sessions and do no better than chance elsewhere
(`benchmarks/answer_words.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from memory_pipeline.observations.quotes.candidates import (
    Candidate,
    Weights,
    candidates,
    judged,
    select,
    shipped_weights,
)
from memory_pipeline.observations.quotes.features import SIDES, Conversation
from memory_pipeline.observations.quotes.segmentation import NARRATIVE_VERSION, narrative, segment_starts
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.observations.types import NO_CUES, Context, EvidenceSpan, Fact, Segment, WindowMessage
from memory_pipeline.text.condense import condense
from memory_pipeline.text.kinds import is_passing, is_prose
from memory_pipeline.text.languages.identify import english
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM
from memory_pipeline.text.sentences import sentences, squeeze
from memory_pipeline.text.specifics import CODE
from memory_pipeline.text.tokens import estimate

MIN_BUDGET = 250
"""Tokens that a short window may always use, up to `SHORT_SHARE` of the tokens said: ten percent of ten
sentences would be one sentence."""
SHORT_SHARE = 0.4
MIN_MESSAGES_OF_TALK = 10
"""Minimum messages for which the kind of conversation can be determined."""
MAX_WORK_SHARE = 0.2
"""Maximum share of the messages of a conversation that name files, identifiers or options, or announce a next step.
Between people it is below .05, in coding sessions mostly above .3."""


def token_budget(messages: Sequence[WindowMessage], share: float, least: int = MIN_BUDGET) -> int:
    """Token budget for the facts of these messages: a share of what the user and the model said, more for short
    windows."""
    return token_budget_for(sum(estimate(m.text) for m in messages if m.role in ("user", "assistant")), share, least)


def token_budget_for(said: int, share: float, least: int = MIN_BUDGET) -> int:
    """Token budget for the facts of a window with this number of tokens said."""
    return int(max(share * said, min(least, SHORT_SHARE * said)))


def is_talk(window: Conversation) -> bool:
    """Whether the window uses no tool and hardly names code or announces a step of work."""
    said = [m.text for m in window.messages if m.role in ("user", "assistant")]
    if len(said) < MIN_MESSAGES_OF_TALK or any(m.role == "tool" for m in window.messages):
        return False
    return sum(bool(CODE.search(text) or english().plan.search(text)) for text in said) < MAX_WORK_SHARE * len(said)


def rarest(window: Conversation, tokens: int) -> list[Unit]:
    """The sentences with the rarest words, in order, within this number of tokens."""
    found = list(_sentences(window))
    total = sum(estimate(unit.text) for unit in found)
    return [found[i] for i in condense([unit.text for unit in found], tokens / total)] if total else []


def _sentences(window: Conversation) -> Iterator[Unit]:
    for position, message in enumerate(window.messages):
        if message.role in ("user", "assistant"):
            form = "whole" if message.role == "user" else "said"
            for sentence in sentences(message.own):
                words = squeeze(message.text[sentence.start : sentence.end])
                if is_prose(words) and not is_passing(words):
                    yield Unit(position, sentence.start, sentence.end, words, form, (words,))


LIKELY = 0.3
"""Minimum probability of a fact of medium priority; less likely facts are low."""


@dataclass(frozen=True)
class ExtractiveObserver:
    """An observer that quotes; `budget` is the share of the tokens said that the facts of a window may take."""

    budget: float = 0.10
    min_budget: int = MIN_BUDGET
    weights: Weights = field(default_factory=shipped_weights)

    name = "extractive-4-lexical"
    at_once = 1
    is_incremental = False

    @property
    def version(self) -> str:
        return f"{self.name} {self.budget} {NARRATIVE_VERSION}"

    def observe(self, messages: Sequence[WindowMessage], context: Context | None = None) -> list[Segment]:
        window = Conversation(messages)
        kept = self._kept(window)
        facts = [_fact(candidate, priority_of(candidate), window) for candidate in kept]
        positions = [c.unit.position for c in kept]
        segments = []
        for start, end in pairwise([*segment_starts(messages), len(messages)]):
            within = slice(bisect_left(positions, start), bisect_left(positions, end))
            segments.append(
                Segment(
                    narrative=narrative(messages[start:end]),
                    first_message_id=messages[start].message_id,
                    last_message_id=messages[end - 1].message_id,
                    facts=tuple(facts[within]),
                )
            )
        return segments

    def stop(self) -> None:
        """Do nothing: there are no other threads."""

    def _kept(self, window: Conversation) -> list[Candidate]:
        tokens = token_budget(window.messages, self.budget, self.min_budget)
        pool = candidates(window, self.weights)
        if not is_talk(window):
            return select(pool, self.weights, window.rarity(), tokens)
        chosen = select([c for c in pool if c.is_explicit], self.weights, window.rarity(), tokens)
        others = judged(rarest(window, tokens), window, self.weights)
        others = [c for c in others if not any(c.unit.overlaps(one.unit) for one in chosen)]
        return sorted([*chosen, *others], key=lambda c: (c.unit.position, c.unit.start))


def _fact(candidate: Candidate, priority: str, window: Conversation) -> Fact:
    unit, messages = candidate.unit, window.messages
    role = messages[unit.position].role
    return Fact(
        text=unit.text,
        priority=priority,
        kind=candidate.kind,
        observed_at=messages[unit.position].said_at,
        trust=candidate.trust,
        evidence=tuple(EvidenceSpan(messages[i].message_id, start, end) for i, start, end in unit.places),
        flags=() if window.has_cues(role) else (NO_CUES,),
        untimed=messages[unit.position].untimed,
    )


def priority_of(candidate: Candidate) -> str:
    """The priority of a candidate. Only explicit statements of a user are high; questions and quotations of others are
    low."""
    if candidate.kind == "question" or candidate.trust not in SIDES or candidate.probability < LIKELY:
        return LOW
    return HIGH if candidate.is_firm else MEDIUM
