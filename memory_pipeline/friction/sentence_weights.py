"""How likely words of a user say something, whatever their words: that a thing was not done as they want it, or that it
is otherwise by now.

Told by the vector of the words, by the words and by each two that follow each other, with weights that
`benchmarks/fit_objections.py` and `benchmarks/fit_stale_lines.py` fitted on wordings of many topics; no cue stands
alone. It is far from sure of a single sentence: only several that are about one thing, in two sessions or more, are a
pattern. `environment.py` weighs the output of commands in the same way, by parts of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from memory_pipeline.text.kinds import kind_of_user
from memory_pipeline.text.languages.identify import ENGLISH, FRENCH, GERMAN, SPANISH, language_of

OBJECTIONS, NEWS = "objections.json", "news.json"
_PART = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|[?!…？！]|\.{2,}")
LANGUAGES = (ENGLISH, GERMAN, FRENCH, SPANISH)
"""In which there are words that the weights were fitted on."""
FIRST, LAST = "^", "$"
NUMBER = "0"


@dataclass(frozen=True)
class SentenceWeights:
    """Weights: of the parts of a text, of each number of the vector of `phrases.py`."""

    intercept: float
    words: Mapping[str, float]
    vector: Sequence[float]

    def logit(self, parts: Collection[str], vector: Any) -> float:
        """Above 0 it rather is one, by its parts. ``vector`` is the row of `PhraseEncoder` for the text, None where
        there is none."""
        told = self.intercept + sum(self.words.get(part, 0.0) for part in sorted(parts))
        if vector is None:
            return told
        return told + sum(weight * float(x) for weight, x in zip(self.vector, vector, strict=True))


@lru_cache
def load(file: str) -> SentenceWeights:
    """Those that are shipped."""
    return SentenceWeights(**json.loads(files(__package__).joinpath(file).read_text("utf-8")))


def are_known(text: str) -> bool:
    """Whether the weights know words of its language; elsewhere a cue has to do."""
    return language_of(text) in LANGUAGES


def parts_of(text: str) -> frozenset[str]:
    """What the weights know of a text beside its vector: its words, each two neighbours, its ends, and its kind."""
    words = [NUMBER if w.isdigit() else w.replace("’", "'") for w in _PART.findall(text.lower())]
    pairs = (f"{one} {other}" for one, other in pairwise([FIRST, *words, LAST]))
    return frozenset({*words, *pairs, f"kind {kind_of_user(text)}"})
