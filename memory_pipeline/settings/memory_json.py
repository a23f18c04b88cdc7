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

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.settings.model_names import model_name

Name = Annotated[str, Field(pattern=r"^\S+$")]
"""A name without spaces, as one with spaces would be run as a command."""


class WrongFileError(MemoryPipelineError):
    """A memory.json is invalid; the message names the file, the key and what was expected."""


class _Model(BaseModel):
    """The model of a stage."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    provider: Name | None = None
    model: Name | None = None
    command: str | None = None
    base_url: str | None = Field(None, alias="baseUrl")
    temperature: float | None = None
    max_output_tokens: int | None = Field(None, alias="maxOutputTokens")
    price: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_threshold_of_messages(cls, value: Any) -> Any:
        if isinstance(value, dict) and "messageTokenThreshold" in value:
            raise ValueError(
                "messageTokenThreshold has no effect here, as a session is observed after it ends; remove it, and set "
                "MEMORY_IDLE_MINUTES to the idle time that ends a session"
            )
        return value

    def named(self) -> str | None:
        """The value of the setting. Raises `ValueError` for a model without a provider."""
        if self.command or not self.model:
            return self.command
        if not self.provider and "/" in self.model:
            return model_name(self.model, self.base_url)
        if not self.provider and ":" not in self.model:
            raise ValueError(f"{self.model!r} has no provider; name it, like google")
        return f"{self.provider}:{self.model}" if self.provider else self.model


class _Reflector(_Model):
    """The reflector's model, and the tokens of observations that start a reflection before the day ends."""

    reflect_early_tokens: int | None = Field(None, alias="observationTokenThreshold")


class _File(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    enabled: bool = True
    observer: _Model = _Model()
    reflector: _Reflector = _Reflector()
    form: str = Field("", alias="$schema")


def path() -> Path:
    """The path of the file, which may not exist."""
    agent = os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(agent).expanduser() / "memory.json"


def found() -> dict[str, tuple[Any, Path]]:
    """Settings by key, such as `observer.model`, each with its file. Raises `WrongFileError`."""
    file, content = path(), _read(path())
    values: dict[str, Any] = {}
    for name, part in (("observer", content.observer), ("reflector", content.reflector)):
        given = part.model_dump(exclude={"provider", "model", "command", "reflect_early_tokens"}, exclude_none=True)
        try:
            given |= {"model": model} if (model := part.named()) else {}
        except ValueError as error:
            raise WrongFileError(f"{file}: {name}.model: {error}.") from None
        values |= {f"{name}.{key}": value for key, value in given.items()}
    if content.reflector.reflect_early_tokens is not None:
        values["reflect_early_tokens"] = content.reflector.reflect_early_tokens
    return {key: (value, file) for key, value in values.items()} if content.enabled else {}


def _read(path: Path) -> _File:
    """The content of the file; the defaults if there is no file."""
    try:
        return _File.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return _File()
    except PermissionError as error:
        if not os.access(path.parent, os.X_OK):
            return _File()  # a home without permission counts as empty
        raise WrongFileError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        reason = "is not known" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
        raise WrongFileError(f"{path}: {key or 'its content'}: {reason}. Fix it or remove it.") from None
    except OSError as error:
        raise WrongFileError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
