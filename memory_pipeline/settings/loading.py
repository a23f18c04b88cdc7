"""Loading and validation of settings from their sources; errors have one sentence per fault."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.settings import marks as workspace_marks
from memory_pipeline.settings import memory_json
from memory_pipeline.settings.extras import missing_extras
from memory_pipeline.settings.fields import Settings, workspace_named_by
from memory_pipeline.settings.fixed import shared_marks
from memory_pipeline.settings.sources import (
    FILE_NAME,
    Given,
    assignment,
    from_environment,
    given,
    in_file,
    nested_values,
    sentences,
    unknown_variables,
)
from memory_pipeline.text import tokens


class SettingError(MemoryPipelineError):
    """A setting is invalid. The message names it, its value, and what was expected."""


def load_settings(workspace: Path | None = None) -> Settings:
    """The settings from the environment of this process and the files, of this workspace or the one that it names.

    Raises `SettingError` with a sentence per invalid value, unknown name and missing extra; if a newer version has
    written to the workspace; and if the time zone differs from the workspace's, whose tables are split by days of that
    zone: with two zones it would contain every message twice.
    """
    if unknown := unknown_variables(Settings):
        raise SettingError(" ".join(unknown))
    named = {"workspace": workspace} if workspace else {}
    try:
        settings = Settings(**named)
    except ValidationError as error:
        raise SettingError(sentences(Settings, error, given(Settings, workspace or named_workspace()))) from None
    except memory_json.WrongFileError as error:
        raise SettingError(str(error)) from None
    if missing := missing_extras(settings):
        raise SettingError(" ".join(missing))
    _refuse_newer_format(settings.workspace)
    if settings.lake and shared_marks().take_over(settings):
        settings = Settings(**named)
    _refuse_other_zone(settings, lambda: given(Settings, settings.workspace))
    tokens.estimate_by(settings.token_estimate)
    return settings


class _FileOnly(Settings):
    """Settings that are read from the arguments alone."""

    @classmethod
    def with_sources(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return dict(arguments)


def check_file(workspace: Path, text: str) -> Settings:
    """The settings that this text would give as the workspace's settings.toml, without the environment.

    Raises `SettingError` as `load_settings` does.
    """
    path = workspace / FILE_NAME
    try:
        places = in_file(Settings, path, text, tomllib.loads(text))
        settings = _FileOnly(**{"workspace": workspace} | nested_values(places))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
    except ValidationError as error:
        raise SettingError(sentences(Settings, error, places)) from None
    except memory_json.WrongFileError as error:
        raise SettingError(str(error)) from None
    _refuse_other_zone(settings, lambda: places)
    return settings


def named_workspace() -> Path:
    """The path of the workspace, also if other settings are wrong."""
    return workspace_named_by(from_environment(Settings))


def _refuse_newer_format(workspace: Path) -> None:
    found = workspace_marks.stored_format(workspace)
    if found > workspace_marks.FORMAT:
        raise SettingError(
            f"The workspace {workspace} was written by a newer version of memory-pipeline: its format is {found}, and "
            f"this version knows {workspace_marks.FORMAT}. Update memory-pipeline, or name another MEMORY_WORKSPACE."
        )


def _refuse_other_zone(settings: Settings, places: Callable[[], Given]) -> None:
    zone = workspace_marks.stored_zone(settings.workspace)
    if zone and zone != settings.timezone:
        asked = assignment(Settings, "timezone", settings.timezone, places())
        raise SettingError(
            f"{asked}: the workspace {settings.workspace} was made with {zone}; keep that zone, or name another "
            "MEMORY_WORKSPACE."
        )
