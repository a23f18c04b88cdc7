"""The models of the stages, and the sizes of requests and answers.

Sizes are shares of one number, `MEMORY_EFFECTIVE_CONTEXT`. A request has its instructions, its content, and room for
the answer; all three must fit into the context. Content has shares of what instructions and answer leave; the rest is a
reserve, because tokens are estimates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory_pipeline.llm.prompts import text_of
from memory_pipeline.settings import ModelSettings, Settings
from memory_pipeline.text.tokens import estimate


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
    """Whether images go along; None: where the model is known to see."""
    in_batch: bool = False
    """Whether it is asked in batches, and costs what they cost."""
    role: str = "OBSERVER"
    """The prefix of the variables that configure it, for messages."""

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
        answer_budget(settings, settings.observer),
        settings.model_timeout,
        _price(settings.observer.price),
    )


def reflector_model(settings: Settings) -> ModelConfig | None:
    """The reflector's model, or None when none is asked for. It is shown text only."""
    if not settings.reflector.model:
        return None
    return ModelConfig(
        settings.reflector.model,
        settings.reflector.base_url,
        settings.reflector.temperature,
        answer_budget(settings, settings.reflector),
        settings.model_timeout,
        _price(settings.reflector.price),
        sees=False,
        role="REFLECTOR",
    )


def fallback_model(first: ModelConfig, asked: ModelSettings) -> ModelConfig | None:
    """The model that is asked if the first one does not answer, or None if there is none."""
    if not asked.fallback_model:
        return None
    return replace(
        first,
        model=asked.fallback_model,
        base_url=None,
        price=None,
        sees=None if first.role == "OBSERVER" else False,
        role=f"{first.role}_FALLBACK",
    )


def _price(written: str | None) -> tuple[float, float] | None:
    asked, answered = map(float, written.split("/")) if written else (None, None)
    return None if asked is None or answered is None else (asked, answered)


MESSAGES = 0.60
"""The share of a transcript."""
OBSERVATIONS = 0.325
"""The share of observations: those of earlier parts beside a transcript, those that are reflected on, and those of an
answer."""
SMALL_CONTEXT = 32_768
"""Tokens of a context up to which a model is asked in few words about one topic at a time: it is most likely one that
runs on a machine of the user's."""
MIN_TOKENS = 500
"""Tokens below which a request shows next to nothing."""


def answer_budget(settings: Settings, asked: ModelSettings) -> int:
    """Maximum tokens of an answer of this model: the setting, else the default or less."""
    if "max_output_tokens" in asked.model_fields_set:
        return asked.max_output_tokens
    return min(asked.max_output_tokens, int(OBSERVATIONS * settings.effective_context))


def messages_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens of a transcript in one request: `MEMORY_CHUNK_TOKENS` where it is set, else that or less."""
    if "chunk_tokens" in settings.model_fields_set:
        return settings.chunk_tokens
    return min(settings.chunk_tokens, _share(MESSAGES, settings, answer, prompts))


def observations_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens of observations in one request."""
    return _share(OBSERVATIONS, settings, answer, prompts)


def token_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens that these prompts and the answer leave of the context."""
    instructions = sum(estimate(text_of(name)) for name in prompts)
    return settings.effective_context - answer - instructions


def _share(share: float, settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    return max(MIN_TOKENS, int(share * token_budget(settings, answer, prompts)))
