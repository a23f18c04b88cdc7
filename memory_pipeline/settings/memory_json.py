"""`memory.json`: settings of the models in the file format of the pi extension for observational memory.

::

    {"enabled": true,
     "observer": {"provider": "google", "model": "gemini-2.5-flash", "temperature": 0.3, "maxOutputTokens": 8000},
     "reflector": {"provider": "anthropic", "model": "claude-sonnet-4-5", "observationTokenThreshold": 40000}}

The user's own `~/.pi/agent/memory.json` is read; the environment and settings.toml take precedence. A `.pi/memory.json`
in the working directory is not read: the folder may come from anybody, and would choose which commands are run and paid
for.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.settings.model_names import model_name

KNOWN = ("provider", "model", "command", "baseUrl", "temperature", "maxOutputTokens", "price")
PARTS = ("observer", "reflector")
TOP = ("enabled", *PARTS, "$schema")
EARLY = "observationTokenThreshold"
"""The reflector's key for the tokens of observations that start a reflection before the day ends."""
FIELDS = {"baseUrl": "base_url", "temperature": "temperature", "maxOutputTokens": "max_output_tokens", "price": "price"}
"""The names of the keys in the groups of settings."""
NUMBERS = ("temperature", "maxOutputTokens", EARLY)
REFUSED = {
    "messageTokenThreshold": (
        "controls when pi's extension observes within a session, and here a session is observed "
        "after it ends; remove it, and set MEMORY_IDLE_MINUTES to the idle time that ends a "
        "session"
    )
}
"""Keys of the extension that have no meaning here, with the reason."""


class WrongFileError(MemoryPipelineError):
    """A memory.json is invalid; the message names the file, the key and what was expected."""


def path() -> Path:
    """The path of the file, which may not exist."""
    agent = os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(agent).expanduser() / "memory.json"


def found() -> dict[str, tuple[Any, Path]]:
    """Settings by key, such as `observer.model`, each with its file. Raises `WrongFileError`."""
    file = path()
    content = _read(file)
    values: dict[str, tuple[Any, Path]] = {}
    for part in PARTS:
        said = content.get(part, {})
        model = _model(part, said, file)
        if content.get("enabled", True):
            values |= {f"{part}.{FIELDS[key]}": (said[key], file) for key in FIELDS if key in said}
            if EARLY in said:
                values["reflect_early_tokens"] = said[EARLY], file
            if model:
                values[f"{part}.model"] = model, file
    return values


def _read(path: Path) -> dict[str, Any]:
    """The content of the file, with the types checked; empty if there is no file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as error:
        if not os.access(path.parent, os.X_OK):
            return {}  # a home without permission counts as empty
        raise WrongFileError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from None
    except (OSError, ValueError) as error:
        raise WrongFileError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("enabled", True), bool):
        raise WrongFileError(f'{path}: expected an object like {{"enabled": true, "observer": {{…}}}}.')
    if unknown := sorted(set(content) - set(TOP)):
        raise WrongFileError(f"{path}: {unknown[0]} is not known; expected {_expected(unknown[0], TOP)}.")
    for part in PARTS:
        values = content.get(part, {})
        if not isinstance(values, dict):
            raise WrongFileError(f"{path}: {part} should be an object with provider and model.")
        known = (*KNOWN, EARLY) if part == "reflector" else KNOWN
        for key in set(values) & set(REFUSED):
            raise WrongFileError(f"{path}: {part}.{key} {REFUSED[key]}.")
        for key in NUMBERS:
            if isinstance(values.get(key, 0), bool) or not isinstance(values.get(key, 0), int | float):
                raise WrongFileError(f"{path}: {part}.{key} should be a number, not {values[key]!r}.")
        if unknown := sorted(set(values) - set(known)):
            raise WrongFileError(f"{path}: {part}.{unknown[0]} is not known; expected {_expected(unknown[0], known)}.")
    return content


def _expected(name: str, known: Sequence[str]) -> str:
    """A sentence with the known names and the nearest one."""
    near = difflib.get_close_matches(name, known, n=1)
    return ", ".join(known) + (f"; the nearest is {near[0]}" if near else "")


def _model(part: str, values: dict[str, Any], path: Path) -> str | None:
    command, model, provider = (values.get(key) for key in ("command", "model", "provider"))
    for key, value in (("command", command), ("model", model), ("provider", provider)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise WrongFileError(f"{path}: {part}.{key} should be a text, not {value!r}.")
        if key != "command" and value and value.split() != [value]:  # it would be run as a command
            raise WrongFileError(f"{path}: {part}.{key} should be a name without spaces, not {value!r}.")
    if command:
        return str(command)
    if not model:
        return None
    if not provider and "/" in model:
        try:
            return model_name(model, values.get("baseUrl"))
        except ValueError as error:
            raise WrongFileError(f"{path}: {part}.model is {model!r}: {error}.") from None
    if not provider and ":" not in model:
        raise WrongFileError(
            f"{path}: {part}.model is {model!r} and there is no {part}.provider; name it, like google."
        )
    return f"{provider}:{model}" if provider else str(model)
