"""How little a unit resembles what was said before it, with vectors that can be written by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from memory_pipeline.observations.quotes.features import novelty
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.encoder import Encoder

START = datetime(2025, 3, 5, 9, tzinfo=UTC)


class Axes:
    """An encoder with one axis per letter of the alphabet a-c."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(len(texts))
        return [[float(text.count(letter)) / max(1, len(text)) for letter in "abc"] for text in texts]


def unit(position: int, *parts: str) -> Unit:
    return Unit(position, 0, 1, " ".join(parts), "said", parts)


def test_the_closest_message_before_counts() -> None:
    axes = Axes()
    said = [WindowMessage(f"m{i}", "user", START, text) for i, text in enumerate(["a", "b", "a"])]
    found = [unit(0, "a"), unit(1, "b"), unit(2, "a"), unit(2, "a", "b")]
    values = novelty(found, said, cast(Encoder, axes))
    assert values == pytest.approx([1.0, 1.0, 0.0, 1 - 0.5**0.5], abs=1e-5)
    assert axes.calls == [2]  # all at once, and each text once


def test_tools_are_not_compared() -> None:
    said = [WindowMessage("m0", "tool", START, "a"), WindowMessage("m1", "user", START, "a")]
    assert novelty([unit(1, "a")], said, cast(Encoder, Axes())) == [1.0]


def test_nothing_to_weigh_loads_no_model() -> None:
    axes = Axes()
    assert novelty([], [], cast(Encoder, axes)) == []
    assert axes.calls == []


def test_the_observer_says_by_its_name_whether_it_had_vectors() -> None:
    with_vectors = ExtractiveObserver(encoder=cast(Encoder, Axes()))
    assert (ExtractiveObserver().name, with_vectors.name) == ("extractive-4-lexical", "extractive-4-encoded")
    said = [
        WindowMessage("m0", "user", START, "Never use npm here."),
        WindowMessage("m1", "assistant", START, "I will look at it. " * 9),
    ]
    assert [f.text for s in with_vectors.observe(said) for f in s.facts] == ["Never use npm here."]
