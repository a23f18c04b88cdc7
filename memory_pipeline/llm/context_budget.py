"""How much a request may show: shares of one number, `MEMORY_EFFECTIVE_CONTEXT`.

A request has its instructions, what it shows, and room for the answer; all three have to fit into the context. The
shares are of what instructions and answer leave. What stays over is a reserve: tokens are estimates.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.prompts import text_of
from memory_pipeline.settings import Settings
from memory_pipeline.text.tokens import estimate

MESSAGES = 0.60
"""For a transcript."""
OBSERVATIONS = 0.325
"""For observations: those of earlier parts beside a transcript, or those that are reflected on."""
LEAST = 500
"""Tokens below which a request shows next to nothing."""


def of_messages(settings: Settings, config: ModelConfig, prompts: Iterable[str]) -> int:
    """Tokens of a transcript in one request: `MEMORY_CHUNK_TOKENS` where it is set, else that or less."""
    if "chunk_tokens" in settings.model_fields_set:
        return settings.chunk_tokens
    return min(settings.chunk_tokens, _share(MESSAGES, settings, config, prompts))


def of_observations(settings: Settings, config: ModelConfig, prompts: Iterable[str]) -> int:
    """Tokens of observations in one request."""
    return _share(OBSERVATIONS, settings, config, prompts)


def room(settings: Settings, config: ModelConfig, prompts: Iterable[str]) -> int:
    """Tokens that these prompts and the answer leave of the context."""
    instructions = sum(estimate(text_of(name)) for name in prompts)
    return settings.effective_context - config.max_output_tokens - instructions


def _share(share: float, settings: Settings, config: ModelConfig, prompts: Iterable[str]) -> int:
    return max(LEAST, int(share * room(settings, config, prompts)))
