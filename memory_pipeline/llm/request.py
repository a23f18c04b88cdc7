"""Requests to a language model and their answers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property

_KEYED = ("model", "system", "prompt", "temperature", "max_output_tokens", "attempt")
"""Fields of a request that go into its key as they are; of images, their digests."""


@dataclass(frozen=True)
class RequestImage:
    """An image that goes along with a request."""

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
    """Raised to ask again for what was answered badly: another key, so that the bad answer is not found again."""
    context: str = ""
    """Text that precedes the prompt as context. It is not part of the key: an answer stays valid when a file of the
    user changes."""

    schema: str = ""
    """The JSON schema that the answer has to fit, as text; in the key only where there is one."""
    plain_system: str = ""
    """The instructions that go without the schema, for a model that does not take it."""

    @property
    def forms(self) -> tuple[Request, ...]:
        """The request as it stands, and as it is without a schema: an answer to either will do."""
        if not self.schema:
            return (self,)
        return self, replace(self, system=self.plain_system, schema="", plain_system="")

    @property
    def said(self) -> str:
        """All text shown to the model beside the instructions."""
        return f"{self.context}{self.prompt}"

    @cached_property
    def key(self) -> str:
        """sha256 over everything that goes in, as hex."""
        parts = {name: getattr(self, name) for name in _KEYED}
        parts["pictures"] = [image.digest for image in self.images]  # as in the keys of stored answers
        if self.schema:  # else the keys of answers that are kept would change
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
    """Whether the model stopped because it had used up `max_output_tokens`."""
    model: str = ""
    """The model's name as the provider reports it, if it does."""
    asked: str = ""
    """The model that was asked, as the settings name it: the first one or the fallback."""
    key: str = ""
    """The key of its request, by which it is cached."""
    instead: str = ""
    """Why the first model did not answer, where the fallback did."""
