"""The shipped weights fit the features, and were fitted as their file says."""

import json
from importlib.resources import files

import pytest

from memory_pipeline.observations.quotes import candidates as weights
from memory_pipeline.observations.quotes.candidates import Weights, shipped_weights
from memory_pipeline.observations.quotes.features import FEATURES
from memory_pipeline_tests.cases import each

SHIPPED = json.loads(files("memory_pipeline.observations.quotes").joinpath(weights.FILE).read_text("utf-8"))


def test_there_is_a_weight_for_each_feature_in_its_order() -> None:
    assert list(shipped_weights().features) == [*FEATURES]


def test_the_file_says_when_how_and_on_what_it_was_fitted() -> None:
    fitted = SHIPPED["fitted"]
    assert "fit_observer.py" in fitted["how"]
    assert len(set(fitted["sessions"])) == 28
    assert fitted["when"] >= "2025"


@each("row", ["fitted_on_labels_scored_on_gold", "session_left_out_gold", "project_left_out_gold"])
def test_the_figures_on_sessions_never_seen_are_those_that_were_asked_for(row: str) -> None:
    figures = SHIPPED["fitted"][row]
    assert figures["recall"] >= 0.65
    assert figures["recall_high"] >= 0.72
    assert figures["high_as_high"] >= 0.60
    assert figures["junk"] <= 0.40
    assert figures["trap_rate"] <= 0.08


@each(
    ("row", "probability"),
    [
        ([0.0, 0.0], 0.5),  # the intercept alone is 0
        ([1.0, 0.0], 0.880797),  # e^2 / (1 + e^2)
        ([1.0, 2.0], 0.5),
        ([900.0, 0.0], 1.0),  # no overflow
        ([-900.0, 0.0], 0.0),
    ],
)
def test_the_probability_is_a_sigmoid_of_the_sum(row: list[float], probability: float) -> None:
    found = Weights(0.0, {"a": 2.0, "b": -1.0}, 0.3, 0.8).probability(row)
    assert found == pytest.approx(probability, abs=1e-6)
