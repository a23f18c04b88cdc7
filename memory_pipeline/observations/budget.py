"""Limits for the observations of a window."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.tokens import estimate

MIN_BUDGET = 250
"""Tokens that a short window may always use, up to `SHORT_SHARE` of what was said: ten percent of ten
sentences would be one sentence."""
SHORT_SHARE = 0.4
PER_ROOT = 550
"""A model's tokens for a window of which little is said and much is done: the share times this times the square root of
its messages. At a share of a tenth it is what careful readers write without a limit (`benchmarks/fair_size.py`): 28
sessions of 27 to 1,096 messages have facts of 37 to 78 tokens times that root, 52 in the middle."""


def token_budget(messages: Sequence[WindowMessage], share: float, least: int = MIN_BUDGET) -> int:
    """Tokens for the facts of these messages: that share of what people and the model said, more if it is little."""
    return token_budget_for(sum(estimate(m.text) for m in messages if m.role in ("user", "assistant")), share, least)


def token_budget_for(said: int, share: float, least: int = MIN_BUDGET) -> int:
    """Tokens for the facts of so many tokens that were said."""
    return int(max(share * said, min(least, SHORT_SHARE * said)))


def model_token_budget(messages: Sequence[WindowMessage], share: float) -> int:
    """Tokens for the facts that a language model writes of a window.

    A share of what was said leaves a session room for three sentences in which an agent worked for hours and reported
    in ten lines; so there it grows with the messages, tools' included, up to `SHORT_SHARE` of what was said.
    """
    said = sum(estimate(m.text) for m in messages if m.role in ("user", "assistant"))
    done = share * PER_ROOT * math.sqrt(len(messages))
    return max(token_budget_for(said, share), int(min(done, SHORT_SHARE * said)))
