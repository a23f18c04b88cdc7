"""Protection against observing the pipeline's own sessions.

A model command (`pi -p …`, `claude -p …`) may write a session, and its harness may run hooks that start the pipeline
again. So every prompt begins with `MARKER`, by which the session is recognised and skipped, and the command gets
`own_environment()`, in which the pipeline does not start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

MARKER = "[memory-pipeline: written by the pipeline itself, not to be read]"
VARIABLE = "MEMORY_PIPELINE_INSIDE"


def mark_prompt(prompt: str) -> str:
    """The prompt with the marker as its first line."""
    return f"{MARKER}\n{prompt}"


def own_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (None: this process's) for a command that the pipeline starts."""
    return {**(os.environ if environment is None else environment), VARIABLE: "1"}


def is_inside() -> bool:
    """Whether this process was started, directly or indirectly, by a command of the pipeline."""
    return bool(os.environ.get(VARIABLE))
