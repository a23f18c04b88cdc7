"""Backends that answer one request, without retries or caching: a provider's API or a command."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Protocol

from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.request import Request

_SHOWN = 300
_NAMES_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET = 8  # shorter values may be ordinary words


@dataclass(frozen=True)
class Reply:
    """The answer of one call."""

    text: str
    input_tokens: int | None
    """Input tokens; None if the model does not report them."""
    output_tokens: int | None
    truncated: bool
    """Whether the answer stopped at the token limit."""
    model: str
    """The model's name as the provider reports it."""
    cache_read_tokens: int = 0
    """Input tokens that the provider read from its own cache, at a lower price."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote into its own cache, at a higher price."""


class Backend(Protocol):
    """The backend protocol; `send` may be called from several threads at once."""

    def send(self, request: Request) -> Reply:
        """The model's answer. Raises `TransientError`, `RequestRefusedError` or `ModelMisconfiguredError`."""


def backend_of(config: ModelConfig) -> Backend:
    """The backend of a model: a command if the name has arguments, else a provider."""
    if config.is_command:
        from memory_pipeline.llm.backends.command import CommandBackend

        return CommandBackend(config)
    from memory_pipeline.llm.backends.provider import ProviderBackend

    return ProviderBackend(config)


def quotable(text: str) -> str:
    """External text for use in a message: one short line, without keys from the environment or from URLs."""
    for name, value in os.environ.items():
        if _NAMES_A_SECRET.search(name) and len(value.strip()) >= _MIN_SECRET:
            text = text.replace(value.strip(), "***")
    text = " ".join(re.sub(r"//[^/\s@]*@", "//", text).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
