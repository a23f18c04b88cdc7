"""Token counts without a tokenizer."""

from __future__ import annotations

PROSE = 3.5
"""Characters per token of what people and models say."""
TOOL = 3.0
"""Characters per token of tool calls and results: code, paths and logs."""


def estimate(text: str, *, tool: bool = False) -> int:
    """About how many tokens a language model would count; 0 only for an empty text."""
    return -(-len(text) * 10 // int((TOOL if tool else PROSE) * 10))
