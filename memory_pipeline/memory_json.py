"""`memory.json`: settings of the models in a file, as the pi extension for observational memory has them.

::

    {"enabled": true,
     "observer": {"provider": "google", "model": "gemini-2.5-flash", "temperature": 0.3, "maxOutputTokens": 8000},
     "reflector": {"provider": "anthropic", "model": "claude-sonnet-4-5", "observationTokenThreshold": 40000}}

Read are the global one, `~/.pi/agent/memory.json`, and the project's, `.pi/memory.json` in the working directory; where
both say something, the project's counts, and the environment and settings.toml before both. A project comes from
somewhere else, so its file may choose another model of the provider that a user has set up, or switch it off; it
neither switches one on nor says where transcripts are sent or what is run.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_pipeline.errors import MemoryPipelineError

KNOWN = ("provider", "model", "command", "baseUrl", "temperature", "maxOutputTokens", "price")
OWN_ONLY = ("command", "baseUrl", "price")
PARTS = ("observer", "reflector")
TOP = ("enabled", *PARTS, "$schema")
EARLY = "observationTokenThreshold"
"""Of the reflector: the tokens of observations from which it reflects before the day has ended."""
FIELDS = {"baseUrl": "base_url", "temperature": "temperature", "maxOutputTokens": "max_output_tokens", "price": "price"}
"""What follows the part's name in the keys of settings."""
NUMBERS = ("temperature", "maxOutputTokens", EARLY)
REFUSED = {
    "messageTokenThreshold": "says when pi's extension observes within a session, and here a session is observed when "
    "it is over; take it out, and set MEMORY_IDLE_MINUTES for how long nothing may be written until it is"
}
"""Keys of the extension that can mean nothing here, and why."""


class WrongFileError(MemoryPipelineError):
    """A memory.json cannot be used; the message names the file, the key and what was expected."""


def paths() -> tuple[Path, Path]:
    """The global and the project's file."""
    agent = os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(agent).expanduser() / "memory.json", Path(".pi") / "memory.json"


def found() -> dict[str, tuple[Any, Path]]:
    """Settings by key, such as `observer.model`, each with the file that says it. Raises `WrongFileError`."""
    everyones, projects = paths()
    merged = _read(everyones)
    project = _read(projects)
    is_enabled = merged.get("enabled", True) and project.get("enabled", True)
    values: dict[str, tuple[Any, Path]] = {}
    for part in PARTS:
        own, theirs = merged.get(part, {}), project.get(part, {})
        if forbidden := [key for key in OWN_ONLY if key in theirs]:
            raise WrongFileError(
                f"{projects}: {part}.{forbidden[0]} counts only in {everyones} or as a variable; move it."
            )
        both, said_by = own | theirs, {key: projects if key in theirs else everyones for key in (*own, *theirs)}
        mine = _model(part, own, everyones)
        model = _model(part, both, said_by.get("model", everyones))
        if is_enabled:
            values |= {f"{part}.{FIELDS[key]}": (both[key], said_by[key]) for key in FIELDS if key in both}
            if EARLY in both:
                values["reflect_early_tokens"] = both[EARLY], said_by[EARLY]
        if is_enabled and mine and model:
            if not own.get("command") and model.partition(":")[0] != mine.partition(":")[0]:
                raise WrongFileError(
                    f"{projects}: {part} may be another model of {mine.partition(':')[0]}, not {model!r}."
                )
            values[f"{part}.model"] = model, said_by.get("command", said_by.get("model", everyones))
    return values


def _read(path: Path) -> dict[str, Any]:
    """A file's content, each part of the type that it should have; empty when there is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as error:
        if not os.access(path.parent, os.X_OK):
            return {}  # a home that this user may not look into holds nothing for them
        raise WrongFileError(f"{path} cannot be read: {error.strerror}. Let it be read or remove it.") from None
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
    """The names that are read, and the nearest of them."""
    near = difflib.get_close_matches(name, known, n=1)
    return ", ".join(known) + (f"; the nearest is {near[0]}" if near else "")


def _model(part: str, values: dict[str, Any], path: Path) -> str | None:
    command, model, provider = (values.get(key) for key in ("command", "model", "provider"))
    for key, value in (("command", command), ("model", model), ("provider", provider)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise WrongFileError(f"{path}: {part}.{key} should be a text, not {value!r}.")
        if key != "command" and value and value.split() != [value]:  # it would be taken for a command and run
            raise WrongFileError(f"{path}: {part}.{key} should be a name without spaces, not {value!r}.")
    if command:
        return str(command)
    if not model:
        return None
    if not provider and ":" not in model:
        raise WrongFileError(
            f"{path}: {part}.model is {model!r} and there is no {part}.provider; name it, like google."
        )
    return f"{provider}:{model}" if provider else str(model)
