"""What a distillation costs: which highs nobody finds in it any more.

A high is still said where a line that was made from it is whole and has all of its words in their order. A line is
whole when it is, character for character, what was observed; one that lost a word counts as nothing, whatever is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memory_pipeline.distillation.lines import says_again
from memory_pipeline.text.similarity import words


@dataclass(frozen=True)
class Recall:
    """Of some highs, how many are still said."""

    highs: int
    kept: int

    def __str__(self) -> str:
        return f"{self.kept} of {self.highs} highs are still said"

    @property
    def loss(self) -> float:
        """Share of the highs, 0 to 1."""
        return 1 - self.kept / self.highs if self.highs else 0.0


def recall(observed: Mapping[str, str], highs: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]) -> Recall:
    """Of these highs. `observed` has the text of each fact and narrative by id, a line is its text and the ids that it
    was made from."""
    said_in: dict[str, list[str]] = {}
    for text, made_from in lines:
        ids = list(made_from)
        if any(observed.get(i) == text for i in ids):
            for i in ids:
                said_in.setdefault(i, []).append(text)
    highs = list(highs)
    kept = sum(any(says_again(words(text), words(observed[i])) for text in said_in.get(i, ())) for i in highs)
    return Recall(len(highs), kept)
