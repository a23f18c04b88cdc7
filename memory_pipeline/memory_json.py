"""`memory.json`: settings of the models in a file, as the pi extension for observational memory has them.

::

    {"enabled": true,
     "observer": {"provider": "google", "model": "gemini-2.5-flash", "temperature": 0.3, "maxOutputTokens": 8000},
     "reflector": {"provider": "anthropic", "model": "claude-sonnet-4-5", "temperature": 0}}

Read are the global one, `~/.pi/agent/memory.json`, and the project's, `.pi/memory.json` in the working directory; where
both say something, the project's counts, and the environment before both. A project comes from somewhere else, so its
file may choose another model of the provider that a person has set up, or switch it off; it neither switches one on nor
says where transcripts are sent or what is run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

KNOWN = ("provider", "model", "command", "baseUrl", "temperature", "maxOutputTokens", "price")
OF_THE_EXTENSION = ("messageTokenThreshold", "observationTokenThreshold")
"""What says when the extension observes within a session; the pipeline waits for the session's end."""
OWN_ONLY = ("command", "baseUrl", "price")
PARTS = ("observer", "reflector")
FIELDS = {"baseUrl": "base_url", "temperature": "temperature", "maxOutputTokens": "max_output_tokens", "price": "price"}
"""What follows the part's name in the fields of `Settings`."""


class WrongFile(Exception):
    """A memory.json cannot be used; the message names the file, the key and what was expected."""


def paths() -> tuple[Path, Path]:
    """The global and the project's file."""
    agent = os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(agent).expanduser() / "memory.json", Path(".pi") / "memory.json"


def fields() -> dict[str, Any]:
    """Fields of `Settings` with the values of both files. Raises `WrongFile`."""
    everyones, projects = paths()
    merged = _read(everyones)
    project = _read(projects)
    is_enabled = merged.get("enabled", True) and project.get("enabled", True)
    found: dict[str, Any] = {}
    for part in PARTS:
        if forbidden := [key for key in OWN_ONLY if key in project.get(part, {})]:
            raise WrongFile(f"{projects}: {part}.{forbidden[0]} counts only in {everyones} or as a variable; move it.")
        own, values = merged.get(part, {}), merged.get(part, {}) | project.get(part, {})
        mine = _model(part, own, everyones)
        model = _model(part, values, projects if "model" in project.get(part, {}) else everyones)
        if is_enabled:
            found |= {f"{part}_{FIELDS[key]}": values[key] for key in FIELDS if key in values}
        if is_enabled and mine and model:
            if not own.get("command") and model.partition(":")[0] != mine.partition(":")[0]:
                raise WrongFile(f"{projects}: {part} may be another model of {mine.partition(':')[0]}, not {model!r}.")
            found[f"{part}_model"] = model
    return found


def _read(path: Path) -> dict[str, Any]:
    """A file's content, each part of the type that it should have; empty when there is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as error:
        if not os.access(path.parent, os.X_OK):
            return {}  # a home that this user may not look into holds nothing for them
        raise WrongFile(f"{path} cannot be read: {error.strerror}. Let it be read or remove it.") from None
    except (OSError, ValueError) as error:
        raise WrongFile(f"{path} cannot be read: {error}. Mend it or remove it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("enabled", True), bool):
        raise WrongFile(f'{path}: expected an object like {{"enabled": true, "observer": {{…}}}}.')
    for part in PARTS:
        values = content.get(part, {})
        if not isinstance(values, dict):
            raise WrongFile(f"{path}: {part} should be an object with provider and model.")
        for key in ("temperature", "maxOutputTokens"):
            if isinstance(values.get(key, 0), bool) or not isinstance(values.get(key, 0), int | float):
                raise WrongFile(f"{path}: {part}.{key} should be a number, not {values[key]!r}.")
        if unknown := sorted(set(values) - {*KNOWN, *OF_THE_EXTENSION}):
            raise WrongFile(f"{path}: {part}.{unknown[0]} is not known; expected {', '.join(KNOWN)}.")
    return content


def _model(part: str, values: dict[str, Any], path: Path) -> str | None:
    command, model, provider = (values.get(key) for key in ("command", "model", "provider"))
    for key, value in (("command", command), ("model", model), ("provider", provider)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise WrongFile(f"{path}: {part}.{key} should be a text, not {value!r}.")
        if key != "command" and value and value.split() != [value]:  # it would be taken for a command and run
            raise WrongFile(f"{path}: {part}.{key} should be a name without spaces, not {value!r}.")
    if command:
        return str(command)
    if not model:
        return None
    if not provider and ":" not in model:
        raise WrongFile(f"{path}: {part}.model is {model!r} and there is no {part}.provider; name it, like google.")
    return f"{provider}:{model}" if provider else str(model)
