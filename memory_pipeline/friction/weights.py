"""Weights of the judgements on what users said, each a logistic regression.

As `benchmarks/fit_corrections.py` fitted them, `same_thing`: whether two sentences are about one thing; `correction`:
whether what is about one thing is the same correction, again; `about_rule`: whether it is about a line of MEMORY.md.
As `benchmarks/fit_stale_lines.py` did, `line_is_over`: whether a sentence says that a line holds no longer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

FILE = "weights.json"
SAME_THING, CORRECTION = "same_thing", "correction"
ABOUT_RULE, LINE_IS_OVER = "about_rule", "line_is_over"


@dataclass(frozen=True)
class Weights:
    """An intercept, and a weight by the name of each feature."""

    intercept: float
    by_name: Mapping[str, float]

    def logit(self, features: Mapping[str, Any]) -> Any:
        """Of features that are numbers or arrays of one shape. Raises KeyError for one that was not fitted."""
        return self.intercept + sum(self.by_name[name] * value for name, value in features.items())

    def probability(self, features: Mapping[str, float]) -> float:
        return float(1 / (1 + math.exp(-self.logit(features))))


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Weights]:
    """All of them, by the name of the judgement."""
    told = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    return {judgement: Weights(**of) for judgement, of in told.items()}


def weights_of(judgement: str) -> Weights:
    return shipped()[judgement]
