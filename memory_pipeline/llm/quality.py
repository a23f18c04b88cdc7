"""The measured benefit of a model, as shown by `memory run`, `memory status` and README."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """The result on ten held-out sessions of six people. Careful readers played the model: they answered its prompts,
    and their answers went through its checks."""

    recall: float
    """The share of the facts worth keeping that were observed."""
    junk_among_highs: float
    """The share of high facts that are not worth keeping. Without a model high facts are few: one per session."""


QUOTES = Measured(recall=0.58, junk_among_highs=0.5)
MODEL = Measured(recall=0.88, junk_among_highs=0.13)
"""Source of both: benchmarks/README.md, the row of `python -m benchmarks.observing --strangers --answers DIR`."""


def _share(value: float) -> str:
    return f"{value * 100:.0f} %"


NO_MODEL = (
    f"none: finds {_share(QUOTES.recall)} of the facts a reader would keep, and only explicit words are 🔴; with a "
    f"model {_share(MODEL.recall)}: `memory setup`"
)
"""The benefit of a model on one line."""
NO_MODEL_FOR_FRICTION = "Corrections in other words are only grouped with a model: `memory setup`."
