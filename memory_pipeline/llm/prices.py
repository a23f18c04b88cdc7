"""What calls cost. The list comes with the package `genai-prices` and is never fetched anew."""

from __future__ import annotations

from memory_pipeline.llm.config import ModelConfig

_LOCAL = ("ollama",)
_LISTED_AS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
    "google-cloud": "google",
    "xai": "x-ai",
    "bedrock": "aws",
}
"""Providers that the list knows by another name."""


def cost_of(config: ModelConfig, input_tokens: int, output_tokens: int) -> float | None:
    """USD of one call with so many tokens; None where the price is not known, as for commands."""
    if config.price:
        return (input_tokens * config.price[0] + output_tokens * config.price[1]) / 1_000_000
    provider, _, model = config.model.strip().removeprefix("gateway/").partition(":")
    if config.is_command or not model:
        return None
    if provider in _LOCAL:
        return 0.0
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return float(calc_price(usage, model, provider_id=_LISTED_AS.get(provider, provider)).total_price)
    except LookupError:
        return None
