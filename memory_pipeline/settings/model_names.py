"""Names of models: `provider:model`, or `provider/model` as in other tools.

A slash also occurs in model names of servers, like `meta-llama/Llama-3.1-8B`; an ambiguous name is refused with both
readings.
"""

from __future__ import annotations

import os

PROVIDERS = frozenset(
    (
        *("openai", "openai-chat", "openai-responses", "openai-decisions", "openai-codex", "openai-chatgpt"),
        *("anthropic", "google", "google-decisions", "google-cloud", "bedrock", "bedrock-mantle", "azure"),
        *("azure-responses", "deepseek", "openrouter", "vercel", "groq", "mistral", "cerebras", "cohere", "xai"),
        *("moonshotai", "meta", "fireworks", "together", "heroku", "huggingface", "ollama", "github"),
        *("github-copilot", "litellm", "vllm", "nebius", "ovhcloud", "alibaba", "sambanova", "snowflake", "zai"),
        *("crusoe", "system-one", "typesafe"),
    )
)
"""Names of language model providers in pydantic-ai."""
GATEWAY = "gateway/"
"""The prefix of a model that is called through Pydantic's gateway."""
_OWN_URL = ("openai", "ollama")
"""Providers whose URL may be set by their own variable, so that a server with any models may answer."""


def model_name(written: str, base_url: str | None = None) -> str:
    """`provider:model`, or a command with its arguments unchanged. Raises ValueError with what was expected. `base_url`
    is the configured URL."""
    name = written.strip()
    if any(c.isspace() for c in name) or name.startswith(GATEWAY):
        return name
    provider, slash, model = name.partition("/")
    if ":" in provider:
        return name
    if not slash or not provider.strip("."):
        raise ValueError(
            "expected provider:model, like openai:gpt-5-mini, or a command with its arguments; openai/gpt-5-mini means "
            "the same"
        )
    if provider not in PROVIDERS or not model:
        raise ValueError(
            f"{provider!r} is not a known provider; expected provider:model or provider/model, like "
            f"openrouter:{name} or, of a server that speaks OpenAI's protocol, openai:{name}"
        )
    if base_url or (provider in _OWN_URL and os.environ.get(f"{provider.upper()}_BASE_URL", "").strip()):
        setting = "a base_url" if base_url else f"{provider.upper()}_BASE_URL"
        server = provider if provider in _OWN_URL else "openai"
        raise ValueError(
            f"with {setting} it can mean two models; write {provider}:{model} for {model} of {provider} at that "
            f"address, or {server}:{name} where the server itself calls the model {name}"
        )
    return f"{provider}:{model}"
