"""Every setting, once. Each is read from the environment; a wrong value is an error of one sentence."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

import tzlocal
from pydantic import AliasChoices, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from memory_pipeline import memory_json
from memory_pipeline.extras import missing_extras
from memory_pipeline.text.priorities import MARKS

BUNDLED_MODEL = "all-MiniLM-L6-v2"


class WrongSetting(Exception):
    """A setting cannot be used. The message names the variable, its value and what was expected."""


_timezones = cache(available_timezones)


def _local_timezone() -> str:
    return tzlocal.get_localzone_name() or "UTC"


class Settings(BaseSettings):
    """Where things lie and how the stages behave.

    Field `x` is the environment variable `MEMORY_X` unless its description names another.
    """

    model_config = SettingsConfigDict(
        env_prefix="MEMORY_", env_ignore_empty=True, extra="ignore", populate_by_name=True, frozen=True
    )

    workspace: Path = Field(
        Path("~/.memory-pipeline"),
        description="The one directory that is written to: MEMORY.md, REVIEW.md, memory/, lake/, index/, dagster/.",
    )
    session_dirs: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="More directories with session files, separated like PATH. Read, never written."
    )
    default_session_dirs: bool = Field(
        True, description="Also read the places where the coding agents keep their sessions."
    )
    timezone: str = Field(
        default_factory=_local_timezone, description="IANA name of the zone whose calendar days are the partitions."
    )
    start_date: date = Field(date(2025, 1, 1), description="The first day; what was said earlier is counted, not kept.")
    user_name: str = Field("User", description="The name that the first section of MEMORY.md carries.")
    markers: Literal["emoji", "brackets", "words"] = Field(
        "emoji", description="How priorities are written: 🔴, [!] or CRITICAL."
    )
    idle_minutes: int = Field(10, ge=0, description="A session is over when nothing was written for so long.")
    min_user_messages: int = Field(5, ge=0, description="Shutdown windows with fewer are stored, not observed.")
    tool_text_limit: int = Field(1500, ge=100, description="Characters kept of a tool call or result.")
    redact: bool = Field(
        True, description="Replace secrets by marks before anything is stored. Only `false` keeps them as they are."
    )
    observation_budget: float = Field(
        0.10, gt=0, le=0.5, description="Tokens of a window's observations per token that people and models said in it."
    )
    observer_model: str | None = Field(
        None,
        validation_alias=AliasChoices("OBSERVER_MODEL", "observer_model"),
        description="OBSERVER_MODEL: `provider:model`, or a command with its arguments; none: the extractive observer.",
    )
    observer_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("OBSERVER_BASE_URL", "observer_base_url"),
        description="OBSERVER_BASE_URL: where the provider's API is, for servers that speak OpenAI's protocol.",
    )
    observer_temperature: float = Field(
        0.3,
        ge=0,
        le=2,
        validation_alias=AliasChoices("OBSERVER_TEMPERATURE", "observer_temperature"),
        description="OBSERVER_TEMPERATURE: of the observer's model.",
    )
    observer_max_output_tokens: int = Field(
        8_000,
        ge=256,
        validation_alias=AliasChoices("OBSERVER_MAX_OUTPUT_TOKENS", "observer_max_output_tokens"),
        description="OBSERVER_MAX_OUTPUT_TOKENS: most that one answer may have.",
    )
    observer_price: str | None = Field(
        None,
        pattern=r"^\d+(\.\d+)?/\d+(\.\d+)?$",
        validation_alias=AliasChoices("OBSERVER_PRICE", "observer_price"),
        description="OBSERVER_PRICE: USD per million tokens in and out, like 0.25/2, where it is not known or another.",
    )
    observer_images: bool | None = Field(
        None,
        validation_alias=AliasChoices("OBSERVER_IMAGES", "observer_images"),
        description="OBSERVER_IMAGES: whether images go along; unset: with models that are known to see.",
    )
    observer_fallback: bool = Field(
        False,
        validation_alias=AliasChoices("OBSERVER_FALLBACK", "observer_fallback"),
        description="OBSERVER_FALLBACK: observe extractively what the model could not, until it can.",
    )
    reflector_model: str | None = Field(
        None,
        validation_alias=AliasChoices("REFLECTOR_MODEL", "reflector_model"),
        description="REFLECTOR_MODEL: like OBSERVER_MODEL, for reflections; none: the extractive reflector.",
    )
    reflector_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("REFLECTOR_BASE_URL", "reflector_base_url"),
        description="REFLECTOR_BASE_URL: where the provider's API is, for servers that speak OpenAI's protocol.",
    )
    reflector_temperature: float = Field(
        0,
        ge=0,
        le=2,
        validation_alias=AliasChoices("REFLECTOR_TEMPERATURE", "reflector_temperature"),
        description="REFLECTOR_TEMPERATURE: of the reflector's model.",
    )
    reflector_max_output_tokens: int = Field(
        8_000,
        ge=256,
        validation_alias=AliasChoices("REFLECTOR_MAX_OUTPUT_TOKENS", "reflector_max_output_tokens"),
        description="REFLECTOR_MAX_OUTPUT_TOKENS: most that one answer may have.",
    )
    reflector_price: str | None = Field(
        None,
        pattern=r"^\d+(\.\d+)?/\d+(\.\d+)?$",
        validation_alias=AliasChoices("REFLECTOR_PRICE", "reflector_price"),
        description="REFLECTOR_PRICE: USD per million tokens in and out, like 3/15, where it is not known or another.",
    )
    reflect_early_tokens: int = Field(
        40_000, ge=1, description="Tokens of a day's observations from which it is reflected on before it has ended."
    )
    model_timeout: float = Field(180, gt=0, description="Seconds that a model may take for one answer.")
    model_retries: int = Field(4, ge=0, le=20, description="More tries of a call that failed for the moment.")
    model_concurrency: int = Field(4, ge=1, le=64, description="Calls of a model at once.")
    effective_context: int = Field(
        200_000, ge=8_000, description="Tokens that the models take in and give in one call; requests are cut to fit."
    )
    chunk_tokens: int = Field(35_000, ge=500, description="Most of a window that a model is shown in one call.")
    prior_tokens: int = Field(4_000, ge=0, description="Most of earlier observations that go along with a call.")
    daily_budget_usd: float = Field(1.0, ge=0, description="Money that may be spent on models a day.")
    daily_budget_tokens: int = Field(2_000_000, ge=0, description="Tokens, in and out, that models may take a day.")
    lookback_days: int = Field(7, ge=1, le=90, description="Days that a reflection and a friction search look at.")
    distil_after_days: int = Field(3, ge=1, description="Age in days from which a day is distilled.")
    max_recall_loss: float = Field(
        0.10, ge=0, le=1, description="Share of questions about highs that a distillation may no longer answer."
    )
    pending_limit: int = Field(20, ge=1, description="Proposals shown in REVIEW.md at once; the rest wait their turn.")
    proposal_expiry_days: int = Field(
        7, ge=1, description="Days after which a proposal expires, from when it was first shown."
    )
    proposal_warning_days: int = Field(5, ge=0, description="Days after which a shown proposal is marked as expiring.")
    auto_promote: Literal["off", "shadow", "on"] = Field(
        "off", description="Whether a section's lines are promoted unasked once it has earned it; shadow: only noted."
    )
    todoist: bool = Field(False, description="Also offer proposals as Todoist tasks; needs TODOIST_API_TOKEN.")
    todoist_api_token: str | None = Field(
        None,
        repr=False,
        validation_alias=AliasChoices("TODOIST_API_TOKEN", "todoist_api_token"),
        description="TODOIST_API_TOKEN: of the Todoist account that reviews.",
    )
    archive_after_days: int = Field(
        0, ge=0, description="Age in days from which a daily log is archived, once its day is reflected on; 0: never."
    )
    identity_directory: Path | None = Field(
        None, description="Directory of SOUL.md, IDENTITY.md, USER.md and AGENTS.md, to have them checked."
    )
    identity_links: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="Paths that must lead to a file in the identity directory, separated like PATH."
    )
    embedding_model: str = Field(
        BUNDLED_MODEL,
        validation_alias=AliasChoices("EMBEDDING_MODEL", "embedding_model"),
        description="EMBEDDING_MODEL: sentence-transformers model; the default is bundled, others must be on disk.",
    )
    qdrant_url: str | None = Field(
        None,
        validation_alias=AliasChoices("QDRANT_URL", "qdrant_url"),
        description="QDRANT_URL: a Qdrant server instead of the embedded index.",
    )
    qdrant_api_key: str | None = Field(
        None,
        repr=False,
        validation_alias=AliasChoices("QDRANT_API_KEY", "qdrant_api_key"),
        description="QDRANT_API_KEY: for the Qdrant server.",
    )

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *args: PydanticBaseSettingsSource, **kwargs: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments of the call, then the environment, then memory.json."""
        from_files = InitSettingsSource(settings_cls, memory_json.fields())
        return *args, kwargs["init_settings"], kwargs["env_settings"], from_files

    @field_validator("workspace")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        path = _normal(value)
        existing = next(p for p in (path, *path.parents) if p.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise ValueError(f"expected a directory that can be written to, but {existing} is none")
        return path

    @field_validator("session_dirs", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        parts = value.split(os.pathsep) if isinstance(value, str) else value
        return tuple(_normal(Path(part)) for part in parts if str(part).strip())

    @field_validator("identity_directory", "identity_links", mode="before")
    @classmethod
    def _rooted(cls, value: Any, info: ValidationInfo) -> Any:
        """Absolute, for nobody knows which directory a daemon works in; links in them are not followed here."""
        if value is None:
            return None
        is_one = info.field_name == "identity_directory"
        parts = [value] if is_one else value.split(os.pathsep) if isinstance(value, str) else value
        paths = tuple(_expanded(Path(part)) for part in parts if str(part).strip())
        if wrong := [path for path in paths if not path.is_absolute()]:
            raise ValueError(f"expected absolute paths or ones that begin with ~, but {str(wrong[0])!r} is neither")
        return (paths[0] if paths else None) if is_one else paths

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in _timezones():
            raise ValueError("expected an IANA time zone such as Europe/London")
        return value

    @field_validator("observer_model", "reflector_model")
    @classmethod
    def _model_or_command(cls, value: str | None) -> str | None:
        value = value.strip() if value else None
        if value and ":" not in value and " " not in value:
            raise ValueError("expected provider:model, like openai:gpt-5-mini, or a command with its arguments")
        return value or None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def lake_dir(self) -> Path:
        return self.workspace / "lake"

    @property
    def index_dir(self) -> Path:
        return self.workspace / "index"

    @property
    def dagster_home(self) -> Path:
        return self.workspace / "dagster"

    @property
    def backups(self) -> Path:
        return self.workspace / "backups"

    @property
    def memory_file(self) -> Path:
        return self.workspace / "MEMORY.md"

    @property
    def review_file(self) -> Path:
        return self.workspace / "REVIEW.md"

    @property
    def review_shown(self) -> Path:
        """REVIEW.md as it was last written: what was shown to the person."""
        return self.backups / "REVIEW.md.shown"

    @property
    def log_dir(self) -> Path:
        return self.workspace / "memory"

    def daily_log(self, day: date) -> Path:
        """Where the day's log is, or will be: an archived one goes on where it lies."""
        path, archived = self.log_dir / f"{day:%Y-%m-%d}.md", self.archived_log(day)
        return archived if os.path.lexists(archived) and not os.path.lexists(path) else path

    def archived_log(self, day: date) -> Path:
        return self.log_dir / "archive" / f"{day:%Y-%m-%d}.md"

    @property
    def marks(self) -> Mapping[str, str]:
        """What stands for high, medium and low."""
        return MARKS[self.markers]

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of MEMORY.md, in order."""
        return (self.user_name, "Hard Rules", "System Architecture", "Patterns")


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("expected a directory; there is no such user") from None


def _normal(path: Path) -> Path:
    """Absolute and without `..`, so that a directory has one spelling; links keep their names."""
    return Path(os.path.abspath(_expanded(path)))  # noqa: PTH100 - resolve() would follow links


def variable(field: str) -> str:
    """The environment variable of a field of `Settings`."""
    alias = Settings.model_fields[field].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"MEMORY_{field.upper()}"


def load_settings() -> Settings:
    """The settings of this process's environment, with the time zone that the workspace was made with.

    Raises `WrongSetting` with one sentence per wrong variable and per extra that is needed and not installed, and when
    another zone is asked for than the workspace's: its tables are cut by that zone's days, and two zones would hold
    every message twice.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        raise WrongSetting(" ".join(_sentence(dict(e)) for e in error.errors())) from None
    except memory_json.WrongFile as error:
        raise WrongSetting(str(error)) from None
    if missing := missing_extras(settings):
        raise WrongSetting(" ".join(missing))
    mark = _zone_mark(settings)
    zone = mark.read_text("utf-8").strip() if mark.exists() else settings.timezone
    if zone != settings.timezone and "timezone" in settings.model_fields_set:
        raise WrongSetting(
            f"MEMORY_TIMEZONE={settings.timezone!r}: the workspace {settings.workspace} was made with {zone}; "
            "keep that zone, or name another MEMORY_WORKSPACE."
        )
    return settings.model_copy(update={"timezone": zone})


def keep_timezone(settings: Settings) -> None:
    """Make the zone the workspace's own, so that a journey does not move its days."""
    mark = _zone_mark(settings)
    if not mark.exists():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"{settings.timezone}\n", "utf-8")


_SALT_BYTES = 16


def salt_of(settings: Settings) -> bytes:
    """The workspace's own random bytes for marks of secrets, made once: equal secrets get equal marks only in it."""
    path = settings.lake_dir / "salt"
    with contextlib.suppress(FileNotFoundError):
        if len(salt := path.read_bytes()) >= _SALT_BYTES:
            return salt
        path.unlink()  # a disk was full when it was made
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".salt.{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(os.urandom(_SALT_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename, it leaves what another process has made meanwhile
        temporary.unlink()
    return path.read_bytes()


def _zone_mark(settings: Settings) -> Path:
    return settings.lake_dir / "timezone"


def unknown_variables() -> list[str]:
    """Names in the environment that look like settings and are none: most likely misspelt."""
    known = {variable(field) for field in Settings.model_fields}
    return sorted(name for name in os.environ if name.startswith("MEMORY_") and name not in known)


def _sentence(error: dict[str, Any]) -> str:
    place = str(error["loc"][0]) if error["loc"] else "settings"
    name = variable(place) if place in Settings.model_fields else place
    reason = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"{name}={str(error.get('input'))!r}: {reason}; correct the variable or unset it for the default."
