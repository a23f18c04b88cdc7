"""What was fitted: the weight of each feature, and how to choose among what they make worth keeping."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

FILE = "weights.json"
LEXICAL, ENCODED = "lexical", "encoded"
"""Names of the two sets: without and with a model that makes vectors."""


@dataclass(frozen=True)
class Weights:
    """Fitted by `benchmarks/fit_observer.py`; the file says when, how and on what."""

    intercept: float
    features: Mapping[str, float]
    cost: float
    """Exponent of the tokens in worth per cost: a small one lets a whole sentence win over a fragment of it."""
    redundancy: float
    """Share of its worth that a unit loses when all its words have been kept already."""
    high: float
    """Probability from which what may be high is."""

    def probability(self, row: Sequence[float]) -> float:
        """That a unit with these features, in the order of `features`, is worth keeping."""
        x = self.intercept + sum(w * value for w, value in zip(self.features.values(), row, strict=True))
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, x))))


@lru_cache
def load(name: str) -> Weights:
    """One of the two sets that are shipped."""
    data = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))[name]
    return Weights(**data)
