"""Models available on this machine: agents, keys in the environment, servers on loopback.

No program is started, no key is read, and nothing beyond loopback is contacted: an agent counts as logged in if its
files or variables exist.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from memory_pipeline.llm.agents import AGENTS, Agent
from memory_pipeline.settings.loading import is_installed

Kind = Literal["agent", "key", "server", "named"]
MODELS_EXTRA = "`pip install 'memory-pipeline[models]'` first"


@dataclass(frozen=True)
class Choice:
    """A model that can be configured."""

    name: str
    """The name for choosing it: that of an agent, else `provider:model`."""
    kind: Kind
    evidence: str
    """The sign that it is available."""
    model: str
    """The value for `OBSERVER_MODEL`."""
    base_url: str | None = None
    price: str | None = None
    port: int | None = None
    """The port of a local server."""
    context: int | None = None
    """Tokens of its context, if its server reports them."""
    missing: str = ""
    """The steps that are needed before it can answer, as far as known."""


def choices() -> list[Choice]:
    """All choices, those that can answer immediately first."""
    found = [*_agents(), *_keys(), *_servers()]
    return sorted(found, key=lambda choice: bool(choice.missing))


def _agents() -> Iterator[Choice]:
    for agent in AGENTS:
        if shutil.which(agent.name):
            login = _login(agent)
            missing = "" if login else f"no login found; {agent.log_in}"
            evidence = f"on PATH, {login}" if login else "on PATH"
            yield Choice(agent.name, "agent", evidence, agent.command, missing=missing)


def _login(agent: Agent) -> str:
    """The evidence of a login; empty if there is none."""
    if variable := next((name for name in agent.variables if os.environ.get(name, "").strip()), None):
        return f"{variable} is set"
    with suppress(OSError):  # an unreadable home gives no evidence
        for path in (agent.folder / name for name in agent.files):
            if path.is_file() and path.stat().st_size > len("{}\r\n"):
                return f"{_short_path(path)} is there"
        for path, mark in ((Path(os.path.normpath(agent.folder / name)), mark) for name, mark in agent.marked):
            if path.is_file() and mark in path.read_bytes():
                return "logged in"
    return ""


def _short_path(path: Path) -> str:
    with suppress(ValueError, RuntimeError):
        return f"~/{path.relative_to(Path.home())}"
    return str(path)


@dataclass(frozen=True)
class Provider:
    """A provider with a key in the environment, and its cheapest model of sufficient quality."""

    name: str
    variables: tuple[str, ...]
    model: str
    module: str = ""
    """The module that it needs in addition to the extra `models`."""


PROVIDERS = (
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "claude-haiku-4-5"),
    Provider("openai", ("OPENAI_API_KEY",), "gpt-5-mini"),
    Provider("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "gemini-2.5-flash"),
    Provider("openrouter", ("OPENROUTER_API_KEY",), "openai/gpt-5-mini"),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "deepseek-chat"),
    Provider("mistral", ("MISTRAL_API_KEY",), "mistral-medium-latest", "mistralai"),
    Provider("groq", ("GROQ_API_KEY",), "openai/gpt-oss-120b", "groq"),
    Provider("cerebras", ("CEREBRAS_API_KEY",), "gpt-oss-120b"),
    Provider("together", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b"),
    Provider("fireworks", ("FIREWORKS_API_KEY",), "accounts/fireworks/models/gpt-oss-120b"),
    Provider("moonshotai", ("MOONSHOTAI_API_KEY",), "kimi-k2-0905-preview"),
    Provider("zai", ("ZAI_API_KEY",), "glm-4.6"),
    Provider("xai", ("XAI_API_KEY",), "grok-4-fast", "xai_sdk"),
)
"""Providers with the variables that pydantic-ai reads; the price list contains each of the models."""


def _keys() -> Iterator[Choice]:
    for provider in PROVIDERS:
        variable = next((name for name in provider.variables if os.environ.get(name, "").strip()), None)
        if not variable:
            continue
        evidence = f"{variable} is set"
        if provider.name == "openai" and os.environ.get("OPENAI_BASE_URL", "").strip():
            evidence += ", and OPENAI_BASE_URL leads to another server than OpenAI's"
        missing = "" if is_installed("models") else MODELS_EXTRA
        if not missing and provider.module and find_spec(provider.module) is None:
            missing = f'`pip install "pydantic-ai-slim[{provider.name}]"` first'
        name = f"{provider.name}:{provider.model}"
        yield Choice(name, "key", evidence, name, missing=missing)


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
SECONDS = 1.0
"""Maximum seconds for a server on loopback to list its models."""
MAX_MODELS = 6
"""Maximum models offered per server."""
_MAX_ANSWER = 1_000_000  # bytes
_MODEL = re.compile(r"[\w./:@+-]{1,200}")  # a name with a space would be a command
_OTHER_MODELS = re.compile(r"embed|rerank|whisper|\bbge\b|bert\b", re.IGNORECASE)


def server_at(url: str | None) -> Server | None:
    """The server with this default port on loopback, or None."""
    try:
        parts = urlsplit(url or "")
        port = parts.port
    except ValueError:
        return None
    return next((server for server in SERVERS if parts.hostname in LOOPBACK and server.port == port), None)


def _servers() -> list[Choice]:
    with ThreadPoolExecutor(thread_name_prefix="servers") as pool:
        return [choice for found in pool.map(_models_of, SERVERS) for choice in found]


def _models_of(server: Server) -> list[Choice]:
    """The models of a running server, in its order."""
    data = _get_json(server.port, server.path)
    is_ollama = server.path == OLLAMA.path
    listed = data.get("models" if is_ollama else "data") if isinstance(data, dict) else None
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    found = []
    for entry in entries:
        model = entry.get("name" if is_ollama else "id")
        if not isinstance(model, str) or not _MODEL.fullmatch(model) or _OTHER_MODELS.search(model):
            continue
        name = f"{'ollama' if is_ollama else 'openai'}:{model}"
        found.append(
            Choice(
                name,
                "server",
                f"{server.title} at 127.0.0.1:{server.port}",
                name,
                f"http://127.0.0.1:{server.port}/v1",
                None if is_ollama else "0/0",  # known for Ollama
                server.port,
                _context(entry),
                "" if is_installed("models") else MODELS_EXTRA,
            )
        )
    return found[:MAX_MODELS]


def _context(entry: dict[str, Any]) -> int | None:
    """The context size as reported by vLLM and llama.cpp."""
    meta = entry.get("meta")
    told = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    return told if isinstance(told, int) and told > 0 else None


def loaded_context(choice: Choice) -> int | None:
    """The context with which Ollama currently runs this model, by default a fraction of the model's maximum; longer
    input is silently truncated. None if not reported."""
    if choice.port is None or not choice.name.startswith("ollama:"):
        return None
    data = _get_json(choice.port, "/api/ps")
    running = data.get("models") if isinstance(data, dict) else None
    for entry in running if isinstance(running, list) else []:
        if isinstance(entry, dict) and f"ollama:{entry.get('name')}" == choice.name:
            told = entry.get("context_length")
            return told if isinstance(told, int) and told > 0 else None
    return None


def _get_json(port: int, path: str) -> Any:
    """The server's JSON response, or None. It is contacted directly, without proxy and redirects."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        data, until = b"", time.monotonic() + SECONDS
        while len(data) < _MAX_ANSWER and time.monotonic() < until and (piece := answer.read1(65_536)):
            data += piece
        return json.loads(data) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
