"""Which model a stage asks, and how."""

from __future__ import annotations

from dataclasses import dataclass

from memory_pipeline.llm.context_budget import of_answer
from memory_pipeline.settings import Settings


@dataclass(frozen=True)
class ModelConfig:
    """A model as the settings name it."""

    model: str
    base_url: str | None = None
    temperature: float = 0.0
    max_output_tokens: int = 8000
    timeout: float = 180.0
    """Seconds for one answer."""
    price: tuple[float, float] | None = None
    """USD per million tokens in and out, where the settings say so."""
    sees: bool | None = None
    """Whether images go along; None: if the model is known to see."""
    role: str = "OBSERVER"
    """What the variables that configure it begin with, so that a message can name them."""

    @property
    def is_command(self) -> bool:
        """A program with its arguments; names of models have no spaces."""
        return " " in self.model.strip()


def observer_model(settings: Settings) -> ModelConfig | None:
    """The observer's model, or None when none is asked for."""
    if not settings.observer.model:
        return None
    return ModelConfig(
        settings.observer.model,
        settings.observer.base_url,
        settings.observer.temperature,
        of_answer(settings, settings.observer),
        settings.model_timeout,
        _price(settings.observer.price),
        settings.observer.images,
    )


def reflector_model(settings: Settings) -> ModelConfig | None:
    """The reflector's model, or None when none is asked for. It is shown text only."""
    if not settings.reflector.model:
        return None
    return ModelConfig(
        settings.reflector.model,
        settings.reflector.base_url,
        settings.reflector.temperature,
        of_answer(settings, settings.reflector),
        settings.model_timeout,
        _price(settings.reflector.price),
        sees=False,
        role="REFLECTOR",
    )


def _price(written: str | None) -> tuple[float, float] | None:
    asked, answered = map(float, written.split("/")) if written else (None, None)
    return None if asked is None or answered is None else (asked, answered)
