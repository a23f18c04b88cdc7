"""What might be kept of a window: each unit with its kind, whose words it is, and how likely it is worth keeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_pipeline.observations.extractive import cues
from memory_pipeline.observations.extractive.answers import answers
from memory_pipeline.observations.extractive.features import Window, rows
from memory_pipeline.observations.extractive.kinds import is_question, kind_of_model, kind_of_user
from memory_pipeline.observations.extractive.novelty import novelty
from memory_pipeline.observations.extractive.reversals import reversed_units, reversing_units
from memory_pipeline.observations.extractive.units import Unit, units
from memory_pipeline.observations.extractive.weights import Weights
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.similarity import content_words

KEEP = 0.1
"""Probability below which nothing is kept, even where the budget has room."""
TOLD_AS_FACT = ("root_cause", "state_change", "decision", "convention", "statement")
"""Kinds of the model's words that can be high. Rules are for people, and progress is stale tomorrow. A statement has no
cue to go by, but what makes it likely tells as much: without statements a tenth less of the high facts were high on
labelled sessions, with as much junk."""
SAYS_WHAT = 4
"""Words of content from which a correction says what is right: "no, leave it" is about the moment."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """`probability` is that of being worth keeping."""

    unit: Unit
    kind: str
    trust: str
    probability: float
    is_firm: bool
    """May be high: a person's own words without doubt, or the model's that the person or a result confirmed."""


@dataclass(frozen=True)
class Measured:
    """Every unit of a window that nothing later takes back, with its features: all that does not depend on weights."""

    window: Window
    units: Sequence[Unit]
    rows: Sequence[Sequence[float]]
    successors: dict[int, tuple[int, ...]]
    """For each unit that takes others back, by its number: indices in `reversed_rows`."""
    reversed_rows: Sequence[Sequence[float]]


def measured(window: Window, encoder: Encoder | None = None) -> Measured:
    answered = answers(window.messages, has_cues=window.is_english["user"])
    joined = {unit.position for unit in answered}  # alone they would mean less, and cost less
    found = [unit for unit in units(window.messages) if unit.form != "whole" or unit.position not in joined]
    found += answered
    values = rows(found, window)
    if encoder:
        values = [[*row, new] for row, new in zip(values, novelty(found, window.messages, encoder), strict=True)]
    taken_back = reversed_units(found, window)
    standing = [i for i in range(len(found)) if i not in taken_back]
    numbers = {i: n for n, i in enumerate(standing)}
    successors: dict[int, tuple[int, ...]] = {}
    gone: list[Sequence[float]] = []
    reversing = reversing_units(found, taken_back.values())
    for i, reversal in taken_back.items():
        successor = reversing.get(reversal)
        if successor is not None and successor in numbers:
            successors[numbers[successor]] = (*successors.get(numbers[successor], ()), len(gone))
            gone.append(values[i])
    return Measured(window, [found[i] for i in standing], [values[i] for i in standing], successors, gone)


def candidates(found: Measured, weights: Weights) -> list[Candidate]:
    """The units that are worth keeping at all. What takes a claim back is worth no less than the claim was."""
    answer = []
    for i, (unit, row) in enumerate(zip(found.units, found.rows, strict=True)):
        inherited = (weights.probability(found.reversed_rows[j]) for j in found.successors.get(i, ()))
        probability = max([weights.probability(row), *inherited])
        if probability >= KEEP:
            answer.append(replace(_judge(unit, found.window), probability=probability))
    return answer


def judged(found: Sequence[Unit], window: Window, weights: Weights) -> list[Candidate]:
    """These units as candidates, however likely they are."""
    values = zip(found, rows(found, window), strict=True)
    return [replace(_judge(unit, window), probability=weights.probability(row)) for unit, row in values]


def _judge(unit: Unit, window: Window) -> Candidate:
    if unit.form == "paste":
        return Candidate(unit, "statement", "paste", 0.0, False)
    if unit.form == "said":
        return _judge_model(unit, window)
    if unit.form == "answer":
        return Candidate(unit, "decision", "user", 0.0, not cues.DOUBT.search(unit.text))
    has_cues = window.is_english["user"]
    kind = kind_of_user(unit.text) if has_cues or is_question(unit.text) else "statement"
    is_lasting = kind not in ("question", "progress")
    if kind == "correction" and len(content_words(unit.text)) < SAYS_WHAT:
        is_lasting = any(c.search(unit.text) for c in (cues.REASON, cues.DECISION, cues.OBLIGATION))
    doubts = (cues.DOUBT, cues.FOR_NOW, cues.LATER, cues.OPEN, cues.COMPLAINT)
    is_firm = unit.form in ("whole", "dense") and is_lasting
    return Candidate(unit, kind, "user", 0.0, is_firm and not any(c.search(unit.text) for c in doubts))


def _judge_model(unit: Unit, window: Window) -> Candidate:
    kind = kind_of_model(unit.text)
    doubts = (cues.HEDGE, cues.VERDICT, cues.FOR_NOW, cues.PROPOSAL)
    is_firm = kind in TOLD_AS_FACT and window.is_english["assistant"] and window.is_confirmed(unit.position)
    if kind == "statement" and any(cues.MOMENTARY.search(part) for part in unit.parts):  # steps of a plan
        is_firm = False
    return Candidate(unit, kind, "assistant", 0.0, is_firm and not any(c.search(unit.text) for c in doubts))
