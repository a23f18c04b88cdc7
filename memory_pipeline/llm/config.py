"""The models of the stages, and the sizes of requests and answers.

Sizes are shares of one number, `MEMORY_EFFECTIVE_CONTEXT`. A request consists of instructions, content, and room for
the answer, which together must fit into the context. Content gets shares of what instructions and answer leave; the
rest is a reserve, as token counts are estimates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory_pipeline.llm.prompts import text_of
from memory_pipeline.settings import ModelSettings, Settings
from memory_pipeline.text.tokens import estimate

NO_MODEL = (
    "none: finds 56 % of the facts a reader would keep, and only explicit words are 🔴; "
    "with a model 88 %: `memory setup`"
)
"""The benefit of a model, as also in README: the shares of the facts worth keeping that were observed in ten held-out
sessions of six people, with careful readers as the model. Source: benchmarks/README.md, the row of
`python -m benchmarks.observing --strangers --answers DIR`."""
NO_MODEL_FOR_FRICTION = "Corrections in other words are only grouped with a model: `memory setup`."


@dataclass(frozen=True)
class ModelConfig:
    """A model and its parameters from the settings."""

    model: str
    base_url: str | None = None
    temperature: float = 0.0
    max_output_tokens: int = 8000
    timeout: float = 180.0
    """Maximum seconds for one answer."""
    price: tuple[float, float] | None = None
    """USD per million input and output tokens, if configured."""
    role: str = "OBSERVER"
    """The prefix of the variables that configure it, for messages."""

    @property
    def is_command(self) -> bool:
        """Whether the model is a program with arguments; names of models have no spaces."""
        return " " in self.model.strip()


def observer_model(settings: Settings) -> ModelConfig | None:
    """The observer's model, or None."""
    return _configured(settings, settings.observer)


def reflector_model(settings: Settings) -> ModelConfig | None:
    """The reflector's model, or None."""
    found = _configured(settings, settings.reflector)
    return found and replace(found, role="REFLECTOR")


def _configured(settings: Settings, asked: ModelSettings) -> ModelConfig | None:
    if not asked.model:
        return None
    size, price = answer_budget(settings, asked), _price(asked.price)
    return ModelConfig(asked.model, asked.base_url, asked.temperature, size, settings.model_timeout, price)


def fallback_model(first: ModelConfig, asked: ModelSettings) -> ModelConfig | None:
    """The model that is used if the first one does not answer, or None."""
    if not asked.fallback_model:
        return None
    return replace(
        first,
        model=asked.fallback_model,
        base_url=None,
        price=None,
        role=f"{first.role}_FALLBACK",
    )


def _price(written: str | None) -> tuple[float, float] | None:
    asked, answered = map(float, written.split("/")) if written else (None, None)
    return None if asked is None or answered is None else (asked, answered)


MESSAGES = 0.60
"""The share of a transcript."""
OBSERVATIONS = 0.325
"""The share of observations: earlier ones shown with a transcript, those to be reflected on, and those in an answer."""
SMALL_CONTEXT = 32_768
"""Maximum tokens of a small context, for which prompts are short and about one topic: it is probably a model on the
user's machine."""
MIN_TOKENS = 500
"""Minimum tokens of content in a request."""


def answer_budget(settings: Settings, asked: ModelSettings) -> int:
    """Maximum tokens of an answer of this model: the setting, else at most the default."""
    if "max_output_tokens" in asked.model_fields_set:
        return asked.max_output_tokens
    return min(asked.max_output_tokens, int(OBSERVATIONS * settings.effective_context))


def messages_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Maximum tokens of a transcript in one request: `MEMORY_CHUNK_TOKENS` if set, else at most its default."""
    if "chunk_tokens" in settings.model_fields_set:
        return settings.chunk_tokens
    return min(settings.chunk_tokens, _share(MESSAGES, settings, answer, prompts))


def observations_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Maximum tokens of observations in one request."""
    return _share(OBSERVATIONS, settings, answer, prompts)


def token_budget(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens of the context that these prompts and the answer leave."""
    instructions = sum(estimate(text_of(name)) for name in prompts)
    return settings.effective_context - answer - instructions


def _share(share: float, settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    return max(MIN_TOKENS, int(share * token_budget(settings, answer, prompts)))
