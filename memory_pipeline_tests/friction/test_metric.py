"""By the metric what is about one thing is near in whatever words, and what is about another is not."""

from __future__ import annotations

import numpy as np
import pytest

from memory_pipeline.friction.metric import joined, shipped
from memory_pipeline.text.phrases import DIMENSION, phrase_encoder

LOGS = ("print() again, the log module is there for a reason", "why is stdout full of your debug lines?")
LOGS_ABROAD = ("gib das über den Logger aus, nicht mit print", "nada de print, para eso está el logger")
PORTS = ("the dev server runs on 4100, not on 3000", "wieder Port 3000, unserer ist 4100")


def cosines(seen: np.ndarray, some: range, others: range) -> np.ndarray:
    return np.array([[seen[i] @ seen[j] for j in others if i != j] for i in some])


def test_objections_to_one_thing_are_nearer_than_those_to_another_in_whatever_language() -> None:
    seen = shipped().seen(phrase_encoder().encode([*LOGS, *LOGS_ABROAD, *PORTS]))
    of_logs, of_ports = range(4), range(4, 6)
    assert cosines(seen, of_logs, of_logs).mean() > 0.25
    assert cosines(seen, of_ports, of_ports).mean() > 0.25
    assert cosines(seen, of_logs, of_ports).max() < 0.2


def test_it_tells_them_apart_better_than_the_encoders_do() -> None:
    vectors = phrase_encoder().encode([*LOGS, *LOGS_ABROAD, *PORTS])

    def margin(seen: np.ndarray) -> float:
        within, between = cosines(seen, range(4), range(4)), cosines(seen, range(4), range(4, 6))
        return float((within.mean() - between.mean()) / np.concatenate([within.ravel(), between.ravel()]).std())

    assert margin(shipped().seen(vectors)) > margin(joined(vectors))


def test_rows_have_length_one_and_what_has_no_vector_is_like_nothing() -> None:
    vectors = np.vstack([phrase_encoder().encode(["Use uv.", ""]), np.zeros((1, DIMENSION), np.float32)])
    seen = shipped().seen(vectors)
    assert np.linalg.norm(seen, axis=1) == pytest.approx([1, 1, 0], abs=1e-4)


def test_nothing_is_seen_of_nothing() -> None:
    assert shipped().seen(np.zeros((0, DIMENSION), np.float32)).shape == (0, shipped().directions.shape[1])
