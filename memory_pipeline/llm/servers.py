"""Local model servers: their default ports, and their settings against repetition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Server:
    """The default address of a model server."""

    title: str
    port: int
    path: str = "/v1/models"
    against_repetition: dict[str, Any] = field(default_factory=dict, hash=False)
    """Request fields against repetition, with the names of this server. The values are mild, as names and numbers must
    be copied: that of `repeat_penalty` is the default of LM Studio, and Ollama only considers the last 64 tokens. Not
    measured."""


OLLAMA = Server("Ollama", 11434, "/api/tags", {"frequency_penalty": 0.2})
_LLAMA_CPP = {"repeat_penalty": 1.1}
SERVERS = (
    OLLAMA,
    Server("LM Studio", 1234, against_repetition={"repeat_penalty": 1.1}),
    Server("llama.cpp", 8080, against_repetition=_LLAMA_CPP),
    Server("llama.cpp", 9931, against_repetition=_LLAMA_CPP),  # announced as its future default port
    Server("vLLM", 8000, against_repetition={"repetition_penalty": 1.05}),
)


def server_at(url: str | None) -> Server | None:
    """The server with this default port on loopback, or None."""
    try:
        parts = urlsplit(url or "")
        port = parts.port
    except ValueError:
        return None
    return next((server for server in SERVERS if parts.hostname in LOOPBACK and server.port == port), None)
