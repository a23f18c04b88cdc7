"""How large a request and its answer may be: shares of one number, `MEMORY_EFFECTIVE_CONTEXT`.

A request has its instructions, what it shows, and room for the answer; all three have to fit into the context. What is
shown has shares of what instructions and answer leave; the rest is a reserve, because tokens are estimates.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory_pipeline.llm.prompts import text_of
from memory_pipeline.settings import ModelSettings, Settings
from memory_pipeline.text.tokens import estimate

MESSAGES = 0.60
"""For a transcript."""
OBSERVATIONS = 0.325
"""For observations: those of earlier parts beside a transcript, those that are reflected on, and those of an answer."""
LEAST = 500
"""Tokens below which a request shows next to nothing."""


def of_answer(settings: Settings, asked: ModelSettings) -> int:
    """Most tokens of an answer of this model: what is set, else the default or less."""
    most = asked.max_output_tokens
    return (
        most
        if "max_output_tokens" in asked.model_fields_set
        else min(most, int(OBSERVATIONS * settings.effective_context))
    )


def of_messages(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens of a transcript in one request: `MEMORY_CHUNK_TOKENS` where it is set, else that or less."""
    if "chunk_tokens" in settings.model_fields_set:
        return settings.chunk_tokens
    return min(settings.chunk_tokens, _share(MESSAGES, settings, answer, prompts))


def of_observations(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens of observations in one request."""
    return _share(OBSERVATIONS, settings, answer, prompts)


def room(settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    """Tokens that these prompts and the answer leave of the context."""
    instructions = sum(estimate(text_of(name)) for name in prompts)
    return settings.effective_context - answer - instructions


def _share(share: float, settings: Settings, answer: int, prompts: Iterable[str]) -> int:
    return max(LEAST, int(share * room(settings, answer, prompts)))
