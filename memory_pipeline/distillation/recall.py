"""The loss of a distillation: high facts that it no longer contains.

A high fact is retained if an intact line made from it has all of its words in order. A line is intact if it equals the
observation character for character.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memory_pipeline.text.relation import says_all
from memory_pipeline.text.similarity import words


@dataclass(frozen=True)
class Recall:
    """The number of high facts, and of those that are retained."""

    highs: int
    kept: int

    def __str__(self) -> str:
        return f"{self.kept} of {self.highs} high observations are still contained"

    @property
    def loss(self) -> float:
        """Share of the high facts that is lost, 0 to 1."""
        return 1 - self.kept / self.highs if self.highs else 0.0


def recall(observed: Mapping[str, str], highs: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]) -> Recall:
    """The recall of these high facts. `observed` maps ids of facts and narratives to their text; a line is its text and
    the ids of its sources."""
    said_in: dict[str, list[str]] = {}
    for text, made_from in lines:
        ids = list(made_from)
        if any(observed.get(i) == text for i in ids):
            for i in ids:
                said_in.setdefault(i, []).append(text)
    highs = list(highs)
    kept = sum(any(says_all(words(text), words(observed[i])) for text in said_in.get(i, ())) for i in highs)
    return Recall(len(highs), kept)
