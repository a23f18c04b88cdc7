"""How much may be written down about a window."""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.observations.model import WindowMessage
from memory_pipeline.text.tokens import estimate

MIN_BUDGET = 250
"""Tokens that a short window may always use, up to `SHORT_SHARE` of what was said: ten percent of ten
sentences would be one sentence."""
SHORT_SHARE = 0.4


def token_budget(messages: Sequence[WindowMessage], share: float, least: int = MIN_BUDGET) -> int:
    """Tokens for the facts of these messages: that share of what people and the model said, more if it is little."""
    return token_budget_for(sum(estimate(m.text) for m in messages if m.role in ("user", "assistant")), share, least)


def token_budget_for(said: int, share: float, least: int = MIN_BUDGET) -> int:
    """The same of so many tokens said."""
    return int(max(share * said, min(least, SHORT_SHARE * said)))
