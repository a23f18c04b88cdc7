"""What a distillation costs: the same questions, asked of the facts themselves and of the lines made from them.

Measured: of 45 weeks and months of LoCoMo and 25 of coding sessions the worst loses .08 of its questions; truncation
and whole lines at the same size lose .8. So a loss above a tenth (MEMORY_MAX_RECALL_LOSS) is no chance but a fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_pipeline.text.bm25 import BM25
from memory_pipeline.text.similarity import content_words

FOUND_IN = 10
"""Results that are looked at."""
ASKED_WORDS = 4
"""Words of a fact that a question about it has; those of LoCoMo share about as many with what answers them."""


@dataclass(frozen=True)
class Recall:
    """Share of the questions whose fact is among the first results."""

    questions: int
    before: float
    after: float

    def __str__(self) -> str:
        return f"of {self.questions} questions {self.before:.0%} found their fact before and {self.after:.0%} after"

    @property
    def loss(self) -> float:
        return self.before - self.after


def question_about(fact_id: str, text: str) -> str:
    """Some of the fact's words, by lot. The rarest ones would ask for just what a distillation keeps."""
    found = sorted(content_words(text), key=lambda word: hashlib.sha256(f"{fact_id} {word}".encode()).digest())
    return " ".join(found[:ASKED_WORDS])


def recall(facts: Mapping[str, str], asked: Iterable[str], lines: Sequence[tuple[str, Iterable[str]]]) -> Recall:
    """Ask about some of the facts (id to text); a line is its text and the ids of the facts that it was made from."""
    ids, before = list(facts), BM25(list(facts.values()))
    made_from, after = [set(sources) for _, sources in lines], BM25([text for text, _ in lines])
    questions = {i: question_about(i, facts[i]) for i in asked}
    if not questions:
        return Recall(0, 1.0, 1.0)
    found = sum(i in {ids[n] for n in before.search(q, FOUND_IN)} for i, q in questions.items())
    still = sum(any(i in made_from[n] for n in after.search(q, FOUND_IN)) for i, q in questions.items())
    return Recall(len(questions), found / len(questions), still / len(questions))
