"""The groups of settings, each of which is a table of settings.toml or, field by field, a part of `advanced`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from memory_pipeline.settings.model_names import model_name
from memory_pipeline.settings.sources import ADVANCED, FRONT, Variable

MIN_KEEP_DAYS = 91
"""Minimum retention of rows in days, as reflections and friction look back up to 90 days."""


def expand_user(path: Path) -> Path:
    """The path with `~` expanded. Raises `ValueError` if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("expected a directory; there is no such user") from None


def normalize(path: Path) -> Path:
    """The absolute path without `..`, so that a directory has one spelling; links are not followed."""
    return Path(os.path.abspath(expand_user(path)))  # noqa: PTH100 - resolve() would follow links


def split_paths(value: Any) -> Any:
    """The paths in a list, or in a text that separates them like PATH; another value unchanged, as pydantic refuses
    it."""
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not (isinstance(parts, list | tuple) and all(isinstance(part, str | Path) for part in parts)):
        return value
    return tuple(expand_user(Path(part)) for part in parts if str(part).strip())


class _Group(BaseModel):
    """Settings that belong together; they cannot be changed, and an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class ModelSettings(_Group):
    """The model of a stage and the parameters of its requests."""

    base_url: str | None = Field(None, description="Base URL of the provider's API, for OpenAI-compatible servers.")
    model: Annotated[str | None, FRONT] = Field(
        None, description="`provider:model`, or a command with its arguments; without it, quotes and no model."
    )
    temperature: Annotated[float, ADVANCED] = Field(0, ge=0, le=2, description="Temperature of the model.")
    max_output_tokens: Annotated[int, ADVANCED] = Field(8_000, ge=256, description="Maximum tokens of an answer.")
    price: str | None = Field(
        None,
        pattern=r"^\d+(\.\d+)?/\d+(\.\d+)?$",
        description="USD per million input and output tokens, such as 0.25/2, if `genai-prices` lacks the model.",
    )
    fallback_model: str | None = Field(
        None, description="A second model, asked when the first is misconfigured, refuses or cannot be reached."
    )

    @field_validator("model", "fallback_model")
    @classmethod
    def _parse_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = info.data.get("base_url") if info.field_name == "model" else None
        return model_name(value, url) if value and value.strip() else None

    @field_validator("fallback_model")
    @classmethod
    def _require_first_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and "model" in info.data and not info.data["model"]:
            raise ValueError("expected a first model beside it")
        return value


class ObserverSettings(ModelSettings):
    """The model of the observer."""

    temperature: Annotated[float, ADVANCED] = Field(0.3, ge=0, le=2, description="Temperature of the model.")
    fallback: Annotated[bool, ADVANCED] = Field(
        False, description="Observe by quotes while the model does not answer, until it does."
    )


class TodoistSettings(_Group):
    """Review on Todoist."""

    enabled: Annotated[bool, FRONT, Variable("MEMORY_TODOIST")] = Field(
        False, description="Also review proposals as Todoist tasks; needs todoist.api_token."
    )
    api_token: str | None = Field(None, repr=False, description="API token of the Todoist account.")


class QdrantSettings(_Group):
    """A Qdrant server for the index."""

    url: str | None = Field(None, description="A Qdrant server instead of the embedded index.")
    collection: Annotated[str, ADVANCED] = Field(
        "memory_observations",
        min_length=1,
        description="Collection on the Qdrant server; two memories on one server need two.",
    )
    api_key: str | None = Field(None, repr=False, description="API key of the Qdrant server; use https://.")


class IdentitySettings(_Group):
    """The files that agents read first."""

    directory: Path | None = Field(
        None, description="Directory of SOUL.md, IDENTITY.md, USER.md and AGENTS.md, which are checked."
    )
    links: tuple[Path, ...] = Field((), description="Links that must lead to files there, separated like PATH.")

    @field_validator("directory", "links", mode="before")
    @classmethod
    def _require_absolute(cls, value: Any, info: ValidationInfo) -> Any:
        """Expand `~` without following links, and refuse relative paths: a daemon has no known working directory."""
        is_one = info.field_name == "directory"
        paths = split_paths([value] if is_one and value is not None else value)
        wrong = [p for p in paths if not p.is_absolute()] if isinstance(paths, tuple) else []
        if wrong:
            raise ValueError(f"expected absolute paths or ones that begin with ~, but {str(wrong[0])!r} is neither")
        return next(iter(paths or ()), None) if is_one else paths


class RetentionSettings(_Group):
    """The age in days from which rows of a table are deleted; 0 keeps them. All other tables are always kept: they have
    the messages, the sources of the memory, and the decisions of the user."""

    messages: Annotated[int, Variable("MEMORY_KEEP_WORDS_DAYS")] = Field(
        0,
        ge=0,
        description="Days until the text of messages is deleted, but what was observed in it stays; 0: never.",
    )
    keep_last: Annotated[int, Variable("MEMORY_KEEP_WORDS_LAST")] = Field(
        0, ge=0, description="Last messages of each session whose text is kept at any age."
    )
    message_embeddings: int = Field(0, ge=0, description="Days until messages leave the search index; 0: never.")
    embeddings: int = Field(
        0, ge=0, description="Days until observations leave the search index, except those of proposals; 0: never."
    )
    summary_embeddings: int = Field(
        0,
        ge=0,
        description="Days until segments and reflections leave the search index, except those of proposals; 0: never.",
    )
    friction_clusters: int = Field(
        0, ge=0, description="Days until friction patterns are deleted, except those of proposals; 0: never."
    )

    @property
    def ages(self) -> dict[str, int]:
        """The age in days of each table whose rows are deleted as a whole."""
        return self.model_dump(exclude={"messages", "keep_last"})

    @field_validator("message_embeddings", "embeddings", "summary_embeddings", "friction_clusters")
    @classmethod
    def _exceed_lookback(cls, value: int) -> int:
        if 0 < value < MIN_KEEP_DAYS:
            raise ValueError(f"expected 0 (never) or at least {MIN_KEEP_DAYS} days")
        return value
