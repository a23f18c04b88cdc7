"""A metric of what users say: two sentences are near by it where they are about one thing, whatever else differs.

By the encoders of `text/phrases.py` as they are, sentences are near for their tone, their language and their form as
well: all that differs between wordings of one objection. Linear discriminant analysis on some 900 objections in many
wordings and four languages (`benchmarks/fit_metric.py`) finds the directions in which the wordings of one thing differ
least beside those of others, and weighs each by that. It ranks what is about one thing, and which line of a file it is
about, better than the encoders do, also for things that no objection of these was about; figures are in
`benchmarks/README.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any, NamedTuple

FILE = "metric.npz"
OF_ENGLISH = 0.8
"""How much the vector of the encoder that learnt from English counts beside the multilingual one."""

Matrix = Any
"""An array of two dimensions."""


class Metric(NamedTuple):
    """What is taken from a vector, and the directions that it is seen from: a column for each."""

    mean: Any
    directions: Matrix

    def seen(self, vectors: Matrix) -> Matrix:
        """Unit vectors, of rows of `PhraseEncoder`: their products are the likeness, from -1 to 1. A row of zeros
        stays one, and is like nothing."""
        import numpy as np

        found = (joined(vectors) - self.mean) @ self.directions
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        found[~np.any(vectors, axis=1)] = 0
        return found


def seen(vectors: Sequence[Any | None]) -> Matrix:
    """By the shipped metric, a row for each; of zeros where there is no vector."""
    import numpy as np

    from memory_pipeline.text.phrases import DIMENSION

    rows = np.zeros((len(vectors), DIMENSION), dtype=np.float32)
    for row, vector in enumerate(vectors):
        if vector is not None:
            rows[row] = vector
    return shipped().seen(rows)


def joined(vectors: Matrix) -> Matrix:
    """Rows of `PhraseEncoder` with what each of the encoders counts."""
    import numpy as np

    from memory_pipeline.text.phrases import DIMENSION, MULTILINGUAL

    counts = np.ones(DIMENSION, dtype=np.float32)
    counts[MULTILINGUAL:] = OF_ENGLISH
    return np.asarray(vectors, dtype=np.float32) * counts / np.float32((1 + OF_ENGLISH**2) ** 0.5)


@lru_cache
def shipped() -> Metric:
    """As it was fitted."""
    import numpy as np

    with as_file(files(__package__).joinpath(FILE)) as path, np.load(path) as found:
        return Metric(*(found[name].astype(np.float32) for name in Metric._fields))
