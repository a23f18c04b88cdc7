"""The measured benefit of a model, in one place: `memory run`, `memory status` and README show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """The result on ten held-out sessions of six people; careful readers stood in for the model, answering its prompts,
    and their answers went through its checks."""

    recall: float
    """The share of facts worth keeping that was observed."""
    junk_among_highs: float
    """The share of high facts that is not worth keeping. Without a model they are few: one a session."""


QUOTES = Measured(recall=0.58, junk_among_highs=0.5)
MODEL = Measured(recall=0.88, junk_among_highs=0.13)
"""Source of both: benchmarks/README.md, the row of `python -m benchmarks.observing --strangers --answers DIR`."""


def _share(value: float) -> str:
    return f"{value * 100:.0f} %"


NO_MODEL = (
    f"none: finds {_share(QUOTES.recall)} of the facts a reader would keep, and only explicit words are 🔴; with a "
    f"model {_share(MODEL.recall)}: `memory setup`"
)
"""The value of the pair `model` in one line."""
NO_MODEL_FOR_FRICTION = "Corrections in other words are only grouped with a model: `memory setup`."
