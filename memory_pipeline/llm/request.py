"""Requests to a language model and their answers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property

_KEYED = ("model", "system", "prompt", "temperature", "max_output_tokens", "attempt")
"""Fields of a request that enter its key unchanged; images enter as digests."""


@dataclass(frozen=True)
class RequestImage:
    """An image in a request."""

    media_type: str
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Request:
    """A request to a model. Equal requests have equal keys, by which answers are cached."""

    model: str
    """`provider:model`, or the command as it is configured."""
    system: str
    """The instructions."""
    prompt: str
    images: tuple[RequestImage, ...] = ()
    temperature: float = 0.0
    max_output_tokens: int = 8000
    attempt: int = 0
    """Increased to repeat a badly answered request: the new key keeps the cached answer from being used."""
    context: str = ""
    """Text that precedes the prompt. It is not part of the key, so that an answer stays valid when a file of the user
    changes."""

    schema: str = ""
    """The JSON schema of the answer, as text; part of the key only if there is one."""
    plain_system: str = ""
    """The instructions without a schema, for a model that does not support it."""

    @property
    def forms(self) -> tuple[Request, ...]:
        """The request, and its form without a schema; an answer to either is accepted."""
        if not self.schema:
            return (self,)
        return self, replace(self, system=self.plain_system, schema="", plain_system="")

    @property
    def said(self) -> str:
        """All text of the request except the instructions."""
        return f"{self.context}{self.prompt}"

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything in the request, as hex."""
        parts = {name: getattr(self, name) for name in _KEYED}
        parts["pictures"] = [image.digest for image in self.images]  # the name in keys of stored answers
        if self.schema:  # otherwise the keys of cached answers would change
            parts["schema"] = self.schema
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """The answer of a model with its cost."""

    text: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """The cost in USD; None if the model's price is unknown."""
    seconds: float
    cached: bool = False
    truncated: bool = False
    """Whether the model stopped at `max_output_tokens`."""
    model: str = ""
    """The model's name as the provider reports it, if it does."""
    asked: str = ""
    """The model that answered, by its name in the settings: the first one or the fallback."""
    key: str = ""
    """The key of its request, under which it is cached."""
    instead: str = ""
    """The reason why the fallback answered instead of the first model."""


@dataclass(frozen=True)
class Reply:
    """The answer of one call of a backend, without retries or caching."""

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
