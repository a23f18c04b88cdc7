"""The extractive observer: it quotes. No model, no cost, and nothing in it that was not said.

It weighs spans of what people and the model said (`candidates.py`) and keeps the best ones within a budget
of tokens, so that a fact is always somebody's own words with the place where they stand.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from memory_pipeline.observations.candidates import Candidate, candidates, is_noise
from memory_pipeline.observations.observer import Fact, Said, Segment, Span
from memory_pipeline.observations.segmentation import segment_starts
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM
from memory_pipeline.text.sentences import clip, sentences, squeeze
from memory_pipeline.text.similarity import content_words, overlap
from memory_pipeline.text.tokens import estimate

MIN_BUDGET = 250
"""Tokens that a short window may always use, up to `SHORT_SHARE` of what was said: ten percent of ten
sentences would be one sentence."""
SHORT_SHARE = 0.4
KEEP = 0.4
"""Probability below which nothing is kept, even where the budget has room."""
SURE = 0.6
"""Probability from which a lasting fact is high."""
SHORT_REMARK = 8
"""Tokens below which a person's plain statement ("rest looks fine") matters for hours only."""
LASTING = ("rule", "preference", "decision", "correction", "root_cause")
COST, COST_OF_HIGH = 0.4, 0.1
"""Exponents of the tokens in worth per cost: small ones let a whole sentence win over a fragment of it."""
MIN_ENDING = 20
"""Characters of a sentence that can tell how a segment ended."""
REPEATS = 0.6
"""Overlap from which a span says what another already said."""


@dataclass(frozen=True)
class ExtractiveObserver:
    """`budget` is the share of the tokens said that the facts of a window may take."""

    budget: float = 0.10
    name: str = "extractive-1"

    def observe(self, messages: Sequence[Said]) -> list[Segment]:
        kept = self._select(messages)
        starts = segment_starts(messages)
        segments = []
        for start, end in pairwise([*starts, len(messages)]):
            facts = [_fact(c, messages) for c in kept if start <= c.position < end]
            segments.append(
                Segment(
                    narrative=narrative(messages[start:end]),
                    first_message_id=messages[start].message_id,
                    last_message_id=messages[end - 1].message_id,
                    facts=tuple(facts),
                )
            )
        return segments

    def _select(self, messages: Sequence[Said]) -> list[Candidate]:
        """The best candidates that fit, in the order in which they were said."""
        said = sum(estimate(m.text) for m in messages if m.role in ("user", "assistant"))
        room = max(self.budget * said, min(MIN_BUDGET, SHORT_SHARE * said))
        pool = [c for c in candidates(messages) if c.probability >= KEEP]
        return sorted(_best(pool, room), key=lambda c: (c.position, c.start))


def _best(pool: Sequence[Candidate], room: float) -> list[Candidate]:
    """Take the most valuable candidate that fits, again and again.

    What is kept makes others that repeat it worth less. Values only fall, so a heap with values that may be too high
    is enough; and only candidates that share a word, or the place, are looked at again.
    """
    words = [content_words(c.text) for c in pool]
    sharing: dict[object, list[int]] = defaultdict(list)
    for i, candidate in enumerate(pool):
        for key in (candidate.position, *words[i]):
            sharing[key].append(i)
    repeated = [0.0] * len(pool)
    heap = [(-_value(candidate, 0.0), i) for i, candidate in enumerate(pool)]
    heapify(heap)
    kept: list[Candidate] = []
    while heap:
        value, i = heappop(heap)
        candidate = pool[i]
        if repeated[i] >= REPEATS or estimate(candidate.text) > room:
            continue
        if -_value(candidate, repeated[i]) > value:
            heappush(heap, (-_value(candidate, repeated[i]), i))
            continue
        room -= estimate(candidate.text)
        kept.append(candidate)
        for j in {j for key in (candidate.position, *words[i]) for j in sharing[key]}:
            repeated[j] = 1.0 if _overlaps(candidate, pool[j]) else max(repeated[j], overlap(words[i], words[j]))
    return kept


def _overlaps(one: Candidate, other: Candidate) -> bool:
    """Whether the two stand in the same place of the same message, at least in part."""
    return one.position == other.position and one.start < other.end and other.start < one.end


def _value(candidate: Candidate, repeated: float) -> float:
    """Worth per cost. What would be high goes first: a rule is not given up for two remarks that cost less."""
    weight, exponent = (2.0, COST_OF_HIGH) if priority_of(candidate) == HIGH else (1.0, COST)
    cost = math.pow(max(1, estimate(candidate.text)), exponent)
    return weight * candidate.probability / cost * (1 - 0.6 * repeated)


def _fact(candidate: Candidate, messages: Sequence[Said]) -> Fact:
    message = messages[candidate.position]
    return Fact(
        text=candidate.text,
        priority=priority_of(candidate),
        kind=candidate.kind,
        observed_at=message.said_at,
        trust=candidate.trust,
        evidence=(Span(message.message_id, candidate.start, candidate.end),),
    )


def priority_of(candidate: Candidate) -> str:
    """High is what a person laid down, or a root cause that held; a question is never more than low."""
    if candidate.kind == "question":
        return LOW
    is_own = candidate.trust == "user" or candidate.kind == "root_cause"
    if candidate.kind in LASTING and is_own and candidate.is_firm and candidate.probability >= SURE:
        return HIGH
    is_remark = candidate.kind == "statement" and (candidate.trust != "user" or estimate(candidate.text) < SHORT_REMARK)
    return LOW if is_remark or candidate.probability < 0.5 else MEDIUM


def narrative(messages: Sequence[Said]) -> str:
    """What was asked and how it ended, in the words that were used."""
    asked = next((own for m in messages if m.role == "user" and len((own := m.own).strip()) > 11), None)
    ending = next(_endings(messages), None)
    parts = [f"Asked: {clip(squeeze(asked), 160)}"] if asked else []
    parts += [f"Ended with: {clip(ending, 160)}"] if ending else []
    return " ".join(parts) or "Only tools and injected text."


def _endings(messages: Sequence[Said]) -> Iterator[str]:
    """What the model said, the last message first, without plans, offers and praise."""
    for message in reversed(messages):
        if message.role == "assistant":
            for sentence in sentences(message.text):
                words = squeeze(message.text[sentence.start : sentence.end])
                if len(words) >= MIN_ENDING and not words.endswith(":") and not is_noise(words):
                    yield words
