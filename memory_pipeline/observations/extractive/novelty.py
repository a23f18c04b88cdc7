"""How little a unit resembles anything said before it, by the vectors of a local model."""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.observations.extractive.units import Unit
from memory_pipeline.observations.observer import Said
from memory_pipeline.text.encoder import Encoder

BLOCK = 512
"""Units that are compared at once: a window of any length stays within some megabytes."""


def novelty(found: Sequence[Unit], messages: Sequence[Said], encoder: Encoder) -> list[float]:
    """1 - the closest cosine to a message before the unit's own; 1 where nothing was said before.

    The vector of a unit is the mean of its sentences', so each sentence is encoded once.
    """
    if not found:
        return []
    import numpy as np  # comes with the encoder; the observer without one must not need it

    spoken = [i for i, m in enumerate(messages) if m.role in ("user", "assistant") and m.text.strip()]
    texts = sorted({p for u in found for p in u.parts} | {messages[i].text for i in spoken}, key=len)
    numbers = {text: n for n, text in enumerate(texts)}
    vectors = np.asarray(encoder.encode(texts), dtype=np.float32)
    said = vectors[[numbers[messages[i].text] for i in spoken]]
    places = np.asarray(spoken)
    answers: list[float] = []
    for start in range(0, len(found), BLOCK):
        block = found[start : start + BLOCK]
        means = np.stack([vectors[[numbers[p] for p in unit.parts]].mean(axis=0) for unit in block])
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        is_before = places[None, :] < np.asarray([unit.position for unit in block])[:, None]
        closest = np.where(is_before, means @ said.T, 0.0).max(axis=1)
        answers += [round(float(1 - x), 6) for x in closest]
    return answers
