"""Which models see images."""

from __future__ import annotations

import re

from memory_pipeline.llm.config import ModelConfig

_SEEING = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-[5-9]|\bo3\b(?!-mini)|\bo[4-9]\b|claude|gemini|pixtral|llava|[-\d]vl\b|vision|gemma-?3|llama-?4"
    r"|mistral-(small|medium)-?3",
    re.I,
)
"""Names of model families that take images. What is not among them is asked without; `OBSERVER_IMAGES` decides."""


def sees(config: ModelConfig) -> bool:
    """Whether images go along with a request: as the settings say, else for known families; never with a command."""
    if config.is_command:
        return False
    return bool(_SEEING.search(config.model)) if config.sees is None else config.sees
