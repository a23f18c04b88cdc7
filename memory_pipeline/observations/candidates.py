"""What might be kept of a window: each unit with its kind, whose words it is, and how likely it is worth keeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_pipeline.observations import cues
from memory_pipeline.observations.answers import answers
from memory_pipeline.observations.features import Window, rows
from memory_pipeline.observations.kinds import is_question, kind_of_model, kind_of_user
from memory_pipeline.observations.novelty import novelty
from memory_pipeline.observations.reversals import reversed_units, reversing_unit
from memory_pipeline.observations.units import Unit, units
from memory_pipeline.observations.weights import Weights
from memory_pipeline.text.encoder import Encoder

KEEP = 0.1
"""Probability below which nothing is kept, even where the budget has room."""
TOLD_AS_FACT = ("root_cause", "state_change", "decision", "convention")
"""Kinds of the model's words that can be high. Rules are for people, progress is stale tomorrow, and a statement
without any cue is a mere claim. As high, such claims found .05 more
of the high facts on labelled sessions, and a third more traps."""


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
    found = list(units(window.messages))
    found += answers(window.messages, has_cues=window.is_english["user"])
    values = rows(found, window)
    if encoder:
        values = [[*row, new] for row, new in zip(values, novelty(found, window.messages, encoder), strict=True)]
    taken_back = reversed_units(found, window)
    standing = [i for i in range(len(found)) if i not in taken_back]
    numbers = {i: n for n, i in enumerate(standing)}
    successors: dict[int, tuple[int, ...]] = {}
    gone: list[Sequence[float]] = []
    for i, reversal in taken_back.items():
        successor = reversing_unit(found, reversal)
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


def _judge(unit: Unit, window: Window) -> Candidate:
    if unit.form == "paste":
        return Candidate(unit, "statement", "paste", 0.0, False)
    if unit.form == "said":
        return _judge_model(unit, window)
    if unit.form == "answer":
        return Candidate(unit, "decision", "user", 0.0, not cues.HEDGE.search(unit.text))
    has_cues = window.is_english["user"]
    kind = kind_of_user(unit.text) if has_cues or is_question(unit.text) else "statement"
    is_lasting = kind not in ("question", "progress")
    if kind == "correction":  # "no, leave it" is about the moment, "no, it must not poll" is about the thing
        is_lasting = any(c.search(unit.text) for c in (cues.REASON, cues.DECISION, cues.OBLIGATION))
    doubts = (cues.HEDGE, cues.FOR_NOW, cues.LATER, cues.OPEN, cues.COMPLAINT)
    is_firm = unit.form == "whole" and is_lasting and not is_question(unit.text)
    return Candidate(unit, kind, "user", 0.0, is_firm and not any(c.search(unit.text) for c in doubts))


def _judge_model(unit: Unit, window: Window) -> Candidate:
    kind = kind_of_model(unit.text)
    doubts = (cues.HEDGE, cues.VERDICT, cues.FOR_NOW)
    is_firm = kind in TOLD_AS_FACT and window.is_confirmed(unit.position)
    return Candidate(unit, kind, "assistant", 0.0, is_firm and not any(c.search(unit.text) for c in doubts))
