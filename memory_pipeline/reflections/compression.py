"""How much smaller than its observations a reflection should be, and what a model is told when it is not."""

from __future__ import annotations

from memory_pipeline.verdict import Verdict, judge_ratio

BAND = (0.02, 0.95)
"""Tokens of the reflection per token of the observations it came from."""
MIN_INPUT_TOKENS = 500
"""With less to condense, keeping nearly all of it is right."""
GUIDANCE = ((0.8, "8/10"), (0.6, "6/10"))
"""Share of the observations' length that is asked for, and how it is said, when an answer was too long: one more try
for each."""


def judge(tokens: int, of: int) -> Verdict:
    """Whether so many tokens condense the others."""
    return judge_ratio(tokens, of, BAND, MIN_INPUT_TOKENS)


def is_too_long(tokens: int, of: int) -> bool:
    return of >= MIN_INPUT_TOKENS and tokens > BAND[1] * of


def is_too_little(tokens: int, of: int) -> bool:
    """Nothing, or next to nothing of much."""
    return not tokens or (of >= MIN_INPUT_TOKENS and tokens < BAND[0] * of)
