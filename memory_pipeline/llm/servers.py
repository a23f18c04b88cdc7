"""Local servers of models: their default ports, and how each is asked not to repeat itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Server:
    """The default address of a server of models."""

    title: str
    port: int
    path: str = "/v1/models"
    against_repetition: dict[str, Any] = field(default_factory=dict, hash=False)
    """Fields of a request, under the names of this server. They are mild, as names and numbers are to be copied: the
    value of `repeat_penalty` is the default of LM Studio, and Ollama looks at the last 64 tokens only. Not measured."""


OLLAMA = Server("Ollama", 11434, "/api/tags", {"frequency_penalty": 0.2})
_LLAMA_CPP = {"repeat_penalty": 1.1}
SERVERS = (
    OLLAMA,
    Server("LM Studio", 1234, against_repetition={"repeat_penalty": 1.1}),
    Server("llama.cpp", 8080, against_repetition=_LLAMA_CPP),
    Server("llama.cpp", 9931, against_repetition=_LLAMA_CPP),  # announced as its coming default
    Server("vLLM", 8000, against_repetition={"repetition_penalty": 1.05}),
)


def server_at(url: str | None) -> Server | None:
    """The server whose default port on loopback this is."""
    try:
        parts = urlsplit(url or "")
        port = parts.port
    except ValueError:
        return None
    return next((server for server in SERVERS if parts.hostname in LOOPBACK and server.port == port), None)
