"""Candidates of a window and their selection: each unit with its kind, speaker and probability.

`Weights` were fitted (`benchmarks/fit_observer.py`). `select` takes the highest probability per token within the
budget, without repetitions.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heapify, heappop, heappush
from importlib.resources import files

from memory_pipeline.observations.quotes.features import Conversation, is_order, rows
from memory_pipeline.observations.quotes.reversals import retracted_units
from memory_pipeline.observations.quotes.units import Unit, answers, units
from memory_pipeline.text.explicit import leaves_open, picks, statements
from memory_pipeline.text.kinds import is_momentary_question, is_question, kind_of_model, kind_of_user
from memory_pipeline.text.sentences import squeeze
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

FILE = "weights.json"


@dataclass(frozen=True)
class Weights:
    """Weights fitted by `benchmarks/fit_observer.py`; the file says when, how and on what data."""

    intercept: float
    features: Mapping[str, float]
    cost: float
    """Exponent of the tokens in value per cost: a small one prefers a whole sentence to a fragment of it."""
    redundancy: float
    """Share of its value that a unit loses when all its words have been kept already."""

    def probability(self, row: Sequence[float]) -> float:
        """The probability that a unit with these features, in the order of `features`, is worth keeping."""
        x = self.intercept + sum(w * value for w, value in zip(self.features.values(), row, strict=True))
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, x))))


@cache
def shipped_weights() -> Weights:
    """The shipped weights."""
    data = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    return Weights(**{name: value for name, value in data.items() if name != "fitted"})


KEEP = 0.1
"""Minimum probability of a unit that is kept, even if the budget has room."""
CHOSEN = 0.9
"""Probability that a choice is worth keeping, as the model stopped to ask. Not fitted: no labelled session has one."""
SAYS_NOTHING_NEW = 0.85
"""Share of a unit's words, weighted by rarity, in a single kept unit at which it is left out as a repetition."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with the probability that it is worth keeping."""

    unit: Unit
    kind: str
    trust: str
    probability: float
    is_firm: bool
    """Whether it may be high: a user stated it explicitly, or chose it when asked."""

    @property
    def is_explicit(self) -> bool:
        """Whether it is kept regardless of the budget."""
        return self.unit.sets is not None and self.is_firm


def measured(window: Conversation) -> list[tuple[Unit, list[Sequence[float]]]]:
    """Every unit of a window that is not retracted later, with its features and those of the units that it retracts."""
    answered = answers(window.messages, language=window.language["user"])
    joined = {unit.position for unit in answered}  # without the question they would mean less but cost fewer tokens
    found = [
        u
        for u in units(window.messages, window.language["user"])
        if u.form not in ("whole", "explicit") or u.position not in joined
    ]
    found += answered
    values = rows(found, window)
    retracted = retracted_units(found, window)
    inherited: dict[int | None, list[Sequence[float]]] = defaultdict(list)
    for i, retracting in retracted.items():
        inherited[retracting].append(values[i])
    return [(unit, [values[i], *inherited[i]]) for i, unit in enumerate(found) if i not in retracted]


def candidates(window: Conversation, weights: Weights) -> list[Candidate]:
    """The units that are worth keeping. A retraction is worth at least as much as the claim that it retracts."""
    answer = []
    for unit, values in measured(window):
        probability = max(map(weights.probability, values))
        judged_unit = _judge(unit, window)
        if unit.form == "choice" and judged_unit.kind != "question":
            probability = max(probability, CHOSEN)
        if judged_unit.is_explicit:
            probability = 1.0
        if probability >= KEEP:
            answer.append(replace(judged_unit, probability=probability))
    return answer


def judged(found: Sequence[Unit], window: Conversation, weights: Weights) -> list[Candidate]:
    """These units as candidates, whatever their probability."""
    values = zip(found, rows(found, window), strict=True)
    return [replace(_judge(unit, window), probability=weights.probability(row)) for unit, row in values]


def _judge(unit: Unit, window: Conversation) -> Candidate:
    """The unit with its kind and speaker. An instruction that occurred elsewhere before stays a quotation; the user's
    choice is in the result of the tool that asked."""
    if unit.form == "paste":
        return Candidate(unit, "statement", "paste", 0.0, False)
    judged_unit = _judge_own_words(unit, window)
    if unit.form == "choice" or not is_order(unit.text, judged_unit.kind):
        return judged_unit
    if unit.before and window.first_speakers.repeated(_proposed(unit, window), unit.position):
        return replace(judged_unit, trust="assistant", is_firm=False)  # the user agreed to it, but did not propose it
    said = window.first_speakers.repeated if judged_unit.trust == "assistant" else window.first_speakers.copied
    if other := said(unit.text, unit.position):
        return Candidate(unit, "statement", other, 0.0, False)
    return judged_unit


def _proposed(unit: Unit, window: Conversation) -> str:
    """The question or proposal that an answer responds to."""
    position, start, end = unit.before or (unit.position, unit.start, unit.end)
    return window.messages[position].text[start:end]


def _judge_own_words(unit: Unit, window: Conversation) -> Candidate:
    if unit.form == "said":
        return Candidate(unit, kind_of_model(unit.text), "assistant", 0.0, False)
    if unit.sets:
        was_refused = (window.messages[unit.position].answer_to or "").startswith("refused")
        return Candidate(unit, "correction" if was_refused else unit.sets, "user", 0.0, True)
    if unit.form == "answer":
        return Candidate(unit, "decision", "user", 0.0, False)
    if unit.form == "choice":
        return _judge_choice(unit, window)
    kind = kind_of_user(unit.text) if window.has_cues("user") or is_question(unit.text) else "statement"
    if kind in ("statement", "preference", "decision") and (window.messages[unit.position].answer_to or "").startswith(
        "refused"
    ):
        kind = "correction"  # in any language: the user interrupted the model to say this
    return Candidate(unit, kind, "user", 0.0, False)


def _judge_choice(unit: Unit, window: Conversation) -> Candidate:
    """A decision, unless the user asks back. It is firm if it picks an option that the question names, or is an
    explicit statement. Readers kept none of ten other answers to an agent's questions as high."""
    words, message = unit.parts[0], window.messages[unit.position]
    said = kind_of_user(words)
    kind = "question" if is_question(words) else said if said in ("rule", "preference") else "decision"
    asked = squeeze(message.answered or "")
    settles = (picks(asked, words) and not is_momentary_question(asked)) or any(statements(words))
    is_firm = message.answer_to == "question" and kind != "question" and settles and not leaves_open(words)
    return Candidate(unit, kind, "user", 0.0, is_firm)


class Selection:
    """The units selected so far, indexed by their words and positions."""

    def __init__(self, rarity: Mapping[str, float]) -> None:
        self.rarity = rarity
        self.kept: list[Candidate] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._spans: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, candidate: Candidate, words: frozenset[str]) -> None:
        for word in words:
            self._by_word[word].append(len(self.kept))
        for position, start, end in candidate.unit.places:
            self._spans[position].append((start, end))
        self.kept.append(candidate)

    def overlaps(self, candidate: Candidate) -> bool:
        """Whether the candidate overlaps the span of a selected unit."""
        return any(
            start < other_end and other_start < end
            for position, start, end in candidate.unit.places
            for other_start, other_end in self._spans.get(position, ())
        )

    def repeated(self, words: frozenset[str], since: int = 0) -> float:
        """The largest share of these words, weighted by rarity, in one selected unit, except the first `since`
        units."""
        shared: dict[int, float] = defaultdict(float)
        total = 0.0
        for word in words:
            weight = self.rarity.get(word, 1.0)
            total += weight
            having = self._by_word.get(word, ())
            for number in having[bisect_left(having, since) :]:
                shared[number] += weight
        return max(shared.values(), default=0.0) / total if total else 0.0


def select(
    pool: Sequence[Candidate], weights: Weights, rarity: Mapping[str, float], token_budget: float
) -> list[Candidate]:
    """The explicit candidates, and the best of the others that fit into the budget, in order of time.

    Each selected unit lowers the value of those that repeat it. Values only fall, so a heap with outdated, higher
    values is enough: an entry that is still on top after its value is updated is the best.
    """
    chosen = Selection(rarity)
    words = [content_words(c.unit.text) for c in pool]
    costs = [estimate(c.unit.text) for c in pool]
    scores = [c.probability**2 / math.pow(max(1, cost), weights.cost) for c, cost in zip(pool, costs, strict=True)]
    heap = [(-value, i) for i, value in enumerate(scores)]
    heapify(heap)
    repeated, looked_at = [0.0] * len(pool), [0] * len(pool)  # so that no pair is compared twice
    least = min(costs, default=0)
    laid_down: set[str] = set()
    for i, candidate in enumerate(pool):
        said = candidate.unit.text.casefold()
        if candidate.is_explicit and said not in laid_down and not chosen.overlaps(candidate):
            laid_down.add(said)
            chosen.add(candidate, words[i])
            token_budget -= costs[i]
    while heap and token_budget >= least:
        value, i = heappop(heap)
        if costs[i] > token_budget or chosen.overlaps(pool[i]):
            continue
        repeated[i] = max(repeated[i], chosen.repeated(words[i], looked_at[i]))
        looked_at[i] = len(chosen.kept)
        if repeated[i] >= SAYS_NOTHING_NEW:
            continue
        now = -scores[i] * (1 - weights.redundancy * repeated[i])
        if now > value:
            heappush(heap, (now, i))
            continue
        token_budget -= costs[i]
        chosen.add(pool[i], words[i])
    return sorted(chosen.kept, key=lambda c: (c.unit.position, c.unit.start))
