"""Loading and validation of settings from their sources; errors have one sentence per fault.

Time zone, first day and salt are fixed when a workspace is created. Workspaces with the same lake in object storage or
another directory share them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from memory_pipeline.days import today
from memory_pipeline.errors import MisuseError
from memory_pipeline.settings import marks, memory_json
from memory_pipeline.settings.dagster_record import names_celery, names_postgres
from memory_pipeline.settings.fields import BUNDLED_MODEL, Settings, workspace_named_by
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

EXTRAS = {
    "encoders": ("sentence_transformers", "torch"),
    "models": ("pydantic_ai", "openai", "genai_prices"),
    "server": ("qdrant_client",),
    "mcp": ("mcp",),
    "postgres": ("dagster_postgres", "psycopg2"),
    "object-storage": ("obstore",),
    "celery": ("dagster_celery", "redis"),
}
"""The modules that each extra of pyproject.toml needs. They are imported inside functions, or by modules that functions
import."""


class SettingError(MisuseError):
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
    found = marks.stored_format(workspace)
    if found > marks.FORMAT:
        raise SettingError(
            f"The workspace {workspace} was written by a newer version of memory-pipeline: its format is {found}, and "
            f"this version knows {marks.FORMAT}. Update memory-pipeline, or name another MEMORY_WORKSPACE."
        )


def _refuse_other_zone(settings: Settings, places: Callable[[], Given]) -> None:
    zone = marks.stored_zone(settings.workspace)
    if zone and zone != settings.timezone:
        asked = assignment(Settings, "timezone", settings.timezone, places())
        raise SettingError(
            f"{asked}: the workspace {settings.workspace} was made with {zone}; keep that zone, or name another "
            "MEMORY_WORKSPACE."
        )


def is_installed(extra: str) -> bool:
    """Whether the extra's modules are installed, as far as known without importing them."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def missing_extras(settings: Settings) -> list[str]:
    """A sentence for each extra that a setting needs and that is not installed."""
    return [
        f"{cause}, whose packages are not installed: `pip install 'memory-pipeline[{extra}]'`."
        for extra, cause in _needed(settings)
        if not is_installed(extra)
    ]


def _needed(settings: Settings) -> Iterator[tuple[str, str]]:
    for role, asked in (("OBSERVER", settings.observer), ("REFLECTOR", settings.reflector)):
        for name, model in ((f"{role}_MODEL", asked.model), (f"{role}_FALLBACK_MODEL", asked.fallback_model)):
            if model and " " not in model:  # else a command with its arguments
                yield "models", f"{name} names the model of a provider"
    if settings.embedding_model != BUNDLED_MODEL:
        yield "encoders", f"EMBEDDING_MODEL={settings.embedding_model} is a model of sentence-transformers"
    if settings.qdrant.url:
        yield "server", "QDRANT_URL names a Qdrant server"
    if names_postgres(settings):
        yield "postgres", f"{settings.dagster_home / 'dagster.yaml'} names Postgres"
    if names_celery(settings):
        yield "celery", f"{settings.dagster_home / 'dagster.yaml'} names Celery"
    if settings.lake and not settings.lake.startswith("file://"):
        yield "object-storage", "MEMORY_LAKE names object storage"


def keep_timezone(settings: Settings) -> None:
    """Fix the time zone of the workspace and of its lake, so that travelling does not move its days.

    Raises `OtherMarksError` if the lake has another zone.
    """
    if settings.lake:
        shared_marks().share_zone(settings)
    marks.keep_zone(settings.workspace, settings.timezone)


def keep_first_day(settings: Settings, session_days: Iterable[date], *, is_complete: bool = True) -> Settings:
    """Fix the first day of a workspace that has none: the oldest of these days and of the stored ones.

    Returns the settings with the effective day: one set by the user, else the workspace's. Nothing is fixed unless the
    days are complete, nor for a shared lake without days, where sessions pushed later to a running server would be left
    out.
    """
    days = list(session_days)
    is_shared = settings.lake is not None and shared_marks().is_shared(settings)
    if is_complete and (days or not is_shared):
        marks.keep_first_day(settings.workspace, days, today(settings.zone))
        if is_shared:
            shared_marks().share_first_day(settings)
    if "start_date" in settings.model_fields_set:
        return settings
    first = marks.stored_first_day(settings.workspace) or min((*days, settings.start_date))
    return settings.model_copy(update={"start_date": first})


def workspace_salt(settings: Settings) -> bytes:
    """The random bytes of the workspace for marks of secrets: equal secrets get equal marks only within it and the
    workspaces that share its lake."""
    if settings.lake:
        shared_marks().make_salt(settings)
    return marks.salt(settings.workspace)


def shared_marks() -> ModuleType:
    """The module for marks of a shared lake, imported when needed: the client of a bucket takes long to import."""
    from memory_pipeline.lake import shared_marks

    return shared_marks
