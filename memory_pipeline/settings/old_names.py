"""Former names of settings: a renamed one is read under its old key, a removed one is ignored; both for one release,
with a warning."""

from __future__ import annotations

import logging
from functools import cache

MOVED = {
    "brief.tokens": "advanced.brief_tokens",
    "pack.tokens": "advanced.pack_tokens",
    "keep_words_days": "retention.messages",
    "keep_words_last": "retention.keep_last",
    "keep_days.message_embeddings": "retention.message_embeddings",
    "keep_days.embeddings": "retention.embeddings",
    "keep_days.summary_embeddings": "retention.summary_embeddings",
    "keep_days.friction_clusters": "retention.friction_clusters",
}
"""Keys of settings.toml with their new ones. Those of the table `advanced` follow from their paths; see
`sources.by_old_key`."""
GONE = {
    "context_file_tokens": "the reflector is shown 4,000 tokens of MEMORY.md and of each identity file",
    "mcp_tokens": "an answer always has at most 2,000 tokens",
    "observer_fallback_base_url": "the second model is asked at its provider's address, such as OPENAI_BASE_URL",
    "observer_fallback_price": "the price of the second model is that of `genai-prices`",
    "reflector_fallback_base_url": "the second model is asked at its provider's address, such as OPENAI_BASE_URL",
    "reflector_fallback_price": "the price of the second model is that of `genai-prices`",
    "keep_runs_days": "Dagster's record always keeps 90 days",
    "max_recall_loss": "a distillation may always lose one high in ten",
    "observer_images": "models that are known to accept images receive them",
    "owner": "a workspace is the memory of one person",
    "pack_cross_session_tokens": "beside a session, other sessions have 5,000 tokens",
    "pack_half_life_days": "a line ranks half as high after seven days without use",
    "pack_reflection_bias": "a condensed line always ranks 1.3 times as high",
    "pack_session_tokens": "the condensed messages of a session have at most 10,000 tokens",
    "pack_working_tokens": "the newest 30,000 tokens of a session stay as they are",
    "prior_tokens": "a request has at most 4,000 tokens of earlier observations",
    "projects_in_memory": "the project of a line is always shown after it",
    "proposal_warning_days": "it follows from proposal_expiry_days, of which it is five sevenths",
    "qdrant_quantization": "vectors are not quantized",
}
"""Removed settings, by their variables in lower case without MEMORY_, with what applies instead."""


def reason_gone(name: str) -> str | None:
    """The reason why a setting was removed, by a former key or variable; None for any other name."""
    return GONE.get(name.lower().removeprefix("memory_").removeprefix("advanced.").replace(".", "_"))


@cache
def warn(sentence: str) -> None:
    """Log the sentence once per process; without a handler, logging prints it on stderr."""
    logging.getLogger(__name__).warning(sentence)
