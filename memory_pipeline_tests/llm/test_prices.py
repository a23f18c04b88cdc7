"""What calls cost: as the settings say, else as the list that came with the package says, else nobody knows."""

from __future__ import annotations

import socket

import pytest

from memory_pipeline.llm.config import ModelConfig, observer_model
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cases import each


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a price was looked up in the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@each(
    ("model", "usd"),
    [
        ("openai:gpt-4o-mini", 0.75),
        ("openai-responses:gpt-4o-mini", 0.75),
        ("openai-chat:gpt-4o-mini", 0.75),
        ("anthropic:claude-haiku-4-5", 6.0),
        ("google:gemini-2.5-flash", 2.8),
        ("ollama:qwen3:8b", 0.0),
        ("openai:qwen3-of-my-own", None),
        ("nobody:gpt-4o-mini", None),
        ("claude -p --model haiku", None),
        ("gpt-4o-mini", None),
    ],
)
def test_the_price_of_a_million_tokens_in_and_out(model: str, usd: float | None) -> None:
    assert cost_of(ModelConfig(model), 1_000_000, 1_000_000) == (usd if usd is None else pytest.approx(usd))


@each("model", ["openai:gpt-4o-mini", "openai:qwen3-of-my-own", "ollama:qwen3", "claude -p"])
def test_the_price_of_the_settings_goes_first(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVER_MODEL", model)
    monkeypatch.setenv("OBSERVER_PRICE", "0.25/2")
    config = observer_model(Settings())
    assert config is not None
    assert cost_of(config, 1_000_000, 500_000) == pytest.approx(1.25)


def test_no_tokens_cost_nothing() -> None:
    assert cost_of(ModelConfig("openai:gpt-4o-mini"), 0, 0) == 0.0
