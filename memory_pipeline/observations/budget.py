"""Limits for the observations of a window."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.tokens import estimate

MIN_BUDGET = 250
"""Tokens that a short window may always use, up to `SHORT_SHARE` of the tokens said: ten percent of ten
sentences would be one sentence."""
SHORT_SHARE = 0.4
PER_ROOT = 550
"""A model's token budget for a window with few words and many tool calls is the share times this times the square root
of the number of messages. At a share of a tenth that is what careful readers write without a limit
(`benchmarks/fair_size.py`): the facts of 28 sessions of 27 to 1,096 messages take 37 to 78 tokens times that root,
with a median of 52."""


def token_budget(messages: Sequence[WindowMessage], share: float, least: int = MIN_BUDGET) -> int:
    """Token budget for the facts of these messages: a share of what the user and the model said, more for short
    windows."""
    return token_budget_for(sum(estimate(m.text) for m in messages if m.role in ("user", "assistant")), share, least)


def token_budget_for(said: int, share: float, least: int = MIN_BUDGET) -> int:
    """Token budget for the facts of a window with this number of tokens said."""
    return int(max(share * said, min(least, SHORT_SHARE * said)))


def model_token_budget(messages: Sequence[WindowMessage], share: float) -> int:
    """Token budget for the facts that a language model writes about a window.

    If an agent works for hours and reports in ten lines, a share of the tokens said is room for three sentences. The
    budget of such a window grows with the number of messages, tool calls included, up to `SHORT_SHARE` of the tokens
    said.
    """
    said = sum(estimate(m.text) for m in messages if m.role in ("user", "assistant"))
    done = share * PER_ROOT * math.sqrt(len(messages))
    return max(token_budget_for(said, share), int(min(done, SHORT_SHARE * said)))
