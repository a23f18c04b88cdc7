"""The prompts in `prompts/`, read on use, so that an edit takes effect with the next run.

A model command (`pi -p …`, `claude -p …`) may write a session, and its harness may run hooks that start the pipeline
again. So every prompt begins with `MARKER`, by which the session is recognised and skipped, and the command gets
`own_environment()`, in which the pipeline does not start.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import memory_pipeline
from memory_pipeline.errors import CannotGoOnError

MARKER = "[memory-pipeline: written by the pipeline itself, not to be read]"
VARIABLE = "MEMORY_PIPELINE_INSIDE"
_PLACE = re.compile(r"\{\{(\w+)\}\}")


class NoSuchPromptError(CannotGoOnError):
    """A prompt is missing or lacks a placeholder; the message names the file."""


def folder() -> Path:
    """The folder `prompts/`: next to the package in a checkout, inside it if installed."""
    package = Path(memory_pipeline.__file__).parent
    return next((p for p in (package / "prompts", package.parent / "prompts") if p.is_dir()), package / "prompts")


def text_of(name: str) -> str:
    """The text of `prompts/<name>.md`. Raises `NoSuchPromptError`."""
    path = folder() / f"{name}.md"
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise NoSuchPromptError(f"{path} cannot be read ({error.strerror}); restore the prompt.") from None
    except UnicodeDecodeError:
        raise NoSuchPromptError(f"{path} is not UTF-8; save it as such.") from None


def filled(name: str, values: Mapping[str, str]) -> str:
    """The prompt with each `{{place}}` replaced. Inserted values are not searched for placeholders.

    Raises `NoSuchPromptError` if a value has no placeholder, so that no edit loses the transcript, or a placeholder has
    no value.
    """
    template = text_of(name)
    places = set(_PLACE.findall(template))
    for what, wrong in (("does not have", set(values) - places), ("has the unknown place", places - set(values))):
        if wrong:
            named = ", ".join(f"{{{{{place}}}}}" for place in sorted(wrong))
            raise NoSuchPromptError(f"{folder() / name}.md {what} {named}.")
    return _PLACE.sub(lambda place: values[place[1]], template)


def hash_of(*names: str) -> str:
    """The first 8 hex digits of a sha256 over these prompts."""
    return hashlib.sha256("\x1f".join(map(text_of, names)).encode()).hexdigest()[:8]


def mark_prompt(prompt: str) -> str:
    """The prompt with the marker as its first line."""
    return f"{MARKER}\n{prompt}"


def own_environment() -> dict[str, str]:
    """The environment for a command that the pipeline starts."""
    return {**os.environ, VARIABLE: "1"}


def is_inside() -> bool:
    """Whether this process was started, directly or indirectly, by a command of the pipeline."""
    return bool(os.environ.get(VARIABLE))
