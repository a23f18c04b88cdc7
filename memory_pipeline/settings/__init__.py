"""Every setting, once, with the paths of a workspace that follow from where it lies.

In order of precedence: the environment; `settings.toml` in the workspace; pi's memory.json (models only); the default.
The workspace itself is named by MEMORY_WORKSPACE alone. A wrong value is an error of one sentence, and so is a name
that nothing reads; names of the last release are read with a warning.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, available_timezones

import tzlocal
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from memory_pipeline.days import today
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.settings import marks as workspace_marks
from memory_pipeline.settings import memory_json
from memory_pipeline.settings.extras import missing_extras
from memory_pipeline.settings.model_names import model_name
from memory_pipeline.settings.sources import (
    ADVANCED,
    FILE_NAME,
    FRONT,
    HIDDEN,
    Given,
    SettingsFile,
    Shown,
    Variable,
    Variables,
    assignment,
    given,
    in_file,
    nested,
    sentences,
    settings_of,
    unknown_variables,
    values_of,
)
from memory_pipeline.text import tokens
from memory_pipeline.text.priorities import MARKS

BUNDLED_MODEL = "all-MiniLM-L6-v2"
IDENTITY_FILES = ("SOUL.md", "IDENTITY.md", "USER.md", "AGENTS.md")
"""In the order in which an agent reads them; then it reads MEMORY.md and today's log."""


class SettingError(MemoryPipelineError):
    """A setting cannot be used. The message names it, its value, and what was expected."""


_timezones = cache(available_timezones)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("expected a directory; there is no such user") from None


def _normal(path: Path) -> Path:
    """Absolute and without `..`, so that a directory has one spelling; links keep their names."""
    return Path(os.path.abspath(_expanded(path)))  # noqa: PTH100 - resolve() would follow links


def _are_paths(parts: Any) -> bool:
    return isinstance(parts, list | tuple) and all(isinstance(part, str | Path) for part in parts)


def _timezone_of(known: dict[str, Any]) -> str:
    return workspace_marks.kept_zone(known["workspace"]) or tzlocal.get_localzone_name() or "UTC"


def _first_day_of(known: dict[str, Any]) -> date:
    return workspace_marks.first_day(known["workspace"], today(ZoneInfo(known["timezone"])))


class _Group(BaseModel):
    """Settings that are a table of settings.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


_PRICE = r"^\d+(\.\d+)?/\d+(\.\d+)?$"


class ModelSettings(_Group):
    """Which model a stage asks, and how."""

    base_url: str | None = Field(None, description="Base URL of the provider's API, for OpenAI-compatible servers.")
    model: Annotated[str | None, FRONT] = Field(
        None, description="`provider:model`, or a command with its arguments; without it, quotes and no model."
    )
    temperature: Annotated[float, ADVANCED] = Field(0, ge=0, le=2, description="Temperature of the model.")
    max_output_tokens: Annotated[int, ADVANCED] = Field(8_000, ge=256, description="Maximum tokens of an answer.")
    price: str | None = Field(
        None,
        pattern=_PRICE,
        description="USD per million input and output tokens, such as 0.25/2, if `genai-prices` lacks the model.",
    )

    fallback_base_url: Annotated[str | None, ADVANCED] = Field(None, description="As `base_url`, for the second model.")
    fallback_model: str | None = Field(
        None, description="A second model, asked when the first is misconfigured, refuses or cannot be reached."
    )
    fallback_price: Annotated[str | None, ADVANCED] = Field(
        None, pattern=_PRICE, description="As `price`, for the second model."
    )

    @field_validator("model", "fallback_model")
    @classmethod
    def _model_or_command(cls, value: str | None, info: ValidationInfo) -> str | None:
        url = info.data.get("base_url" if info.field_name == "model" else "fallback_base_url")
        return model_name(value, url) if value and value.strip() else None

    @field_validator("fallback_model")
    @classmethod
    def _of_a_first(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and "model" in info.data and not info.data["model"]:
            raise ValueError("expected a first model beside it")
        return value


class ObserverSettings(ModelSettings):
    """The observer's model."""

    temperature: Annotated[float, ADVANCED] = Field(0.3, ge=0, le=2, description="Temperature of the model.")
    fallback: Annotated[bool, ADVANCED] = Field(
        False, description="Observe by quotes while the model does not answer, until it does."
    )


class TodoistSettings(_Group):
    """The review on Todoist."""

    enabled: Annotated[bool, FRONT, Variable("MEMORY_TODOIST")] = Field(
        False, description="Also review proposals as Todoist tasks; needs todoist.api_token."
    )
    api_token: str | None = Field(None, repr=False, description="API token of the Todoist account.")


class QdrantSettings(_Group):
    """A server for the index."""

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
    def _rooted(cls, value: Any, info: ValidationInfo) -> Any:
        """Absolute, for nobody knows which directory a daemon works in; links in them are not followed here."""
        if value is None:
            return None
        is_one = info.field_name == "directory"
        parts = [value] if is_one else value.split(os.pathsep) if isinstance(value, str) else value
        if not _are_paths(parts):
            return value  # which pydantic refuses with a sentence
        paths = tuple(_expanded(Path(part)) for part in parts if str(part).strip())
        if wrong := [path for path in paths if not path.is_absolute()]:
            raise ValueError(f"expected absolute paths or ones that begin with ~, but {str(wrong[0])!r} is neither")
        return (paths[0] if paths else None) if is_one else paths


MIN_KEEP_DAYS = 91
"""Reflections and friction look back up to 90 days, and would be made from half of the rows."""


class RetentionSettings(_Group):
    """Age in days from which rows of a table are deleted; 0 keeps them. All other tables are always kept: they hold
    what was read, what the memory is made of, and what a user decided."""

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
        """The days of each table whose rows are deleted as a whole."""
        return self.model_dump(exclude={"messages", "keep_last"})

    @field_validator("message_embeddings", "embeddings", "summary_embeddings", "friction_clusters")
    @classmethod
    def _beyond_all_lookbacks(cls, value: int) -> int:
        if 0 < value < MIN_KEEP_DAYS:
            raise ValueError(f"expected 0 (never) or at least {MIN_KEEP_DAYS} days")
        return value


class BriefSettings(_Group):
    """What a session is told when it begins."""

    tokens: Annotated[int, ADVANCED] = Field(2_000, ge=200, description="Maximum tokens of `memory context`.")


class McpSettings(_Group):
    """The server that agents ask while they work."""

    tokens: Annotated[int, ADVANCED] = Field(2_000, ge=200, description="Maximum tokens of an answer of `memory mcp`.")
    seconds: Annotated[float, HIDDEN] = Field(5, gt=0, description="Seconds after which a tool gives up.")


class PackSettings(_Group):
    """The context pack, which stands before the messages of a session until it is rebuilt."""

    tokens: Annotated[int, ADVANCED] = Field(
        15_000, ge=500, description="Maximum tokens of other sessions' lines in a context pack."
    )
    working_tokens: Annotated[int, ADVANCED] = Field(
        30_000,
        ge=1_000,
        description="Maximum tokens of the newest messages, which stay as they are; older ones must be condensed when "
        "there are twice as many.",
    )
    session_tokens: Annotated[int, ADVANCED] = Field(
        10_000, ge=500, description="Maximum tokens of the session's condensed messages."
    )
    cross_session_tokens: Annotated[int, ADVANCED] = Field(
        5_000, ge=500, description="Maximum tokens of other sessions' lines in the pack of a session."
    )


class Settings(BaseSettings):
    """Where things lie and how the stages behave."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    owner: ClassVar[str] = "me"
    """Value of the column `owner`: a workspace is the memory of one person."""
    workspace: Annotated[Path, FRONT] = Field(
        Path("~/.memory-pipeline"),
        description="The only directory that is written to: MEMORY.md, REVIEW.md, memory/, lake/, index/, dagster/.",
    )
    session_dirs: Annotated[tuple[Path, ...], FRONT] = Field(
        (), description="Additional directories with session files, separated like PATH; never written to."
    )
    default_session_dirs: Annotated[bool, HIDDEN] = Field(
        True, description="Also read where the coding agents keep their sessions."
    )
    timezone: Annotated[str, FRONT, Shown("the machine's, when the workspace is created")] = Field(
        default_factory=_timezone_of, description="IANA name of the time zone whose calendar days are the partitions."
    )
    start_date: Annotated[date, FRONT, Shown("the day of the oldest session, when the workspace is created")] = Field(
        default_factory=_first_day_of, description="The first day; earlier messages are counted, not stored."
    )
    user_name: Annotated[str, FRONT] = Field("User", description="The title of the first section of MEMORY.md.")
    redact: Annotated[bool, FRONT] = Field(
        True, description="Replace secrets by marks before anything is stored; `false` stores them as they are."
    )
    daily_budget_usd: Annotated[float, FRONT] = Field(1.0, ge=0, description="Maximum cost of models per day, in USD.")
    pending_limit: Annotated[int, FRONT] = Field(
        20, ge=1, description="Maximum proposals in REVIEW.md; the rest wait their turn."
    )
    auto_promote: Annotated[Literal["off", "shadow", "on"], FRONT] = Field(
        "off",
        description="Promote lines of a section unasked once its acceptance rate has earned it; `shadow` only logs.",
    )
    auto_fix: bool = Field(
        False, description="Apply low-risk friction fixes in the workspace unasked, after a dry run of a day."
    )
    lake: str | None = Field(
        None,
        pattern=r"^((s3|gs|az)://[^/\s?#@]+(/[^\s?#@]*)?|file:///[^?#]*)$",
        description="Location of the tables outside the workspace: s3://bucket/prefix, gs://, az:// or file:///.",
    )
    embedding_model: Annotated[str, Variable("EMBEDDING_MODEL")] = Field(
        BUNDLED_MODEL, description="Sentence-transformers model; the default is bundled, others must be on disk."
    )
    archive_after_days: int = Field(
        0, ge=0, description="Days until a daily log is archived, once its day is reflected on; 0: never."
    )
    notify: str = Field(
        "off",
        repr=False,  # an address may hold a token
        pattern=r"^(off|desktop|https?://\S+)$",
        description="How a failed run is reported: `desktop` notification, or a URL that receives JSON with `text`.",
    )
    observer: ObserverSettings = ObserverSettings()
    reflector: ModelSettings = ModelSettings()
    todoist: TodoistSettings = TodoistSettings()
    qdrant: QdrantSettings = QdrantSettings()
    identity: Annotated[IdentitySettings, Variable("MEMORY_IDENTITY_")] = IdentitySettings()
    retention: Annotated[RetentionSettings, Variable("MEMORY_KEEP_DAYS_")] = RetentionSettings()

    markers: Annotated[Literal["emoji", "brackets", "words"], ADVANCED] = Field(
        "emoji", description="How priorities are written: 🔴, [!] or CRITICAL."
    )
    idle_minutes: Annotated[int, ADVANCED] = Field(
        10, ge=0, description="Minutes without a new message after which a session has ended."
    )
    min_user_messages: Annotated[int, ADVANCED] = Field(
        5,
        ge=0,
        description="Minimum user messages of a session; one with fewer, and without an approved plan, is observed "
        "only for rules and corrections.",
    )
    tool_text_limit: Annotated[int, ADVANCED] = Field(
        1500, ge=100, description="Maximum characters kept of a tool call or result."
    )
    observation_budget: Annotated[float, ADVANCED] = Field(
        0.10, gt=0, le=0.5, description="Maximum tokens of observations per token of a window's conversation."
    )
    token_estimate: Annotated[Literal["script", "chars4"], ADVANCED] = Field(
        "script",
        description="How tokens are estimated: by the scripts of the text, or `chars4`: characters / 4. A change "
        "rebuilds all days.",
    )
    reflect_early_tokens: Annotated[int, ADVANCED] = Field(
        40_000, ge=1, description="Tokens of a day's observations that start a reflection before the day ends."
    )
    model_timeout: Annotated[float, ADVANCED] = Field(180, gt=0, description="Seconds that a model may take to answer.")
    model_retries: Annotated[int, ADVANCED] = Field(
        4, ge=0, le=20, description="Retries of a call after a temporary failure."
    )
    model_concurrency: Annotated[int, ADVANCED] = Field(4, ge=1, le=64, description="Concurrent calls of a model.")
    effective_context: Annotated[int, ADVANCED] = Field(
        200_000,
        ge=8_000,
        description="Tokens that the models take and return in one call; up to 32768 the instructions are short.",
    )
    chunk_tokens: Annotated[int, ADVANCED] = Field(
        35_000, ge=500, description="Maximum tokens of a window in one call."
    )
    prior_tokens: Annotated[int, ADVANCED] = Field(
        4_000, ge=0, description="Maximum tokens of earlier observations in one call."
    )
    context_file_tokens: Annotated[int, ADVANCED] = Field(
        4_000,
        ge=0,
        description="Maximum tokens of MEMORY.md and of each identity file that the reflector is shown; 0: none.",
    )
    daily_budget_tokens: Annotated[int, ADVANCED] = Field(
        2_000_000, ge=0, description="Maximum input and output tokens of models per day."
    )
    lookback_days: Annotated[int, ADVANCED] = Field(
        7, ge=1, le=90, description="Days that a reflection and a friction search look back."
    )
    friction_min_points: Annotated[int, ADVANCED] = Field(
        100, ge=1, description="Minimum points of the index in those days for a friction search."
    )
    distil_after_days: Annotated[int, ADVANCED] = Field(3, ge=1, description="Days until a day is distilled.")
    proposal_expiry_days: Annotated[int, ADVANCED] = Field(
        7, ge=1, description="Days on which a proposal is shown before it expires."
    )
    brief: Annotated[BriefSettings, Variable("MEMORY_BRIEF_")] = BriefSettings()
    mcp: Annotated[McpSettings, Variable("MEMORY_MCP_")] = McpSettings()
    pack: Annotated[PackSettings, Variable("MEMORY_PACK_")] = PackSettings()

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *args: PydanticBaseSettingsSource, **kwargs: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments of the call, then what the module's docstring says."""
        arguments, variables = kwargs["init_settings"], Variables(settings_cls)
        workspace = _named_workspace({**variables(), **arguments()})
        pi = nested({key: value for key, (value, _) in memory_json.found().items()})
        file, from_pi = SettingsFile(settings_cls, workspace), InitSettingsSource(settings_cls, pi)
        return *args, arguments, variables, file, from_pi

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
        if not _are_paths(parts):
            return value  # which pydantic refuses with a sentence
        return tuple(_normal(Path(part)) for part in parts if str(part).strip())

    @field_validator("lookback_days")
    @classmethod
    def _words_are_kept_as_long(cls, value: int, info: ValidationInfo) -> int:
        kept = info.data["retention"].messages if "retention" in info.data else 0
        if 0 < kept <= value:
            raise ValueError(f"expected fewer days than the {kept} of retention.messages")
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in _timezones():
            raise ValueError("expected an IANA time zone such as Europe/London")
        return value

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def lake_dir(self) -> Path:
        """Of the marks and locks, and of the tables where `lake` names no other place."""
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
        """REVIEW.md as it was last written: what was shown to the user."""
        return self.backups / "REVIEW.md.shown"

    @property
    def report_dir(self) -> Path:
        return self.workspace / "reports"

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
    def settings_file(self) -> Path:
        return self.workspace / FILE_NAME

    @property
    def proposal_warning_days(self) -> int:
        """Days after which a shown proposal is marked as expiring: five of seven."""
        return self.proposal_expiry_days * 5 // 7

    @property
    def marks(self) -> Mapping[str, str]:
        """What stands for high, medium and low."""
        return MARKS[self.markers]

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of MEMORY.md, in order."""
        return (self.user_name, "Hard Rules", "System Architecture", "Patterns")


def variable(key: str) -> str:
    """The environment variable of a setting, by its path."""
    return settings_of(Settings)[key].variable


def load_settings() -> Settings:
    """The settings as the environment of this process and the files have them.

    Raises `SettingError` with one sentence per wrong value, per name that nothing reads and per extra that is needed
    and not installed, when a newer version has written to the workspace, and when another time zone is asked for than
    the workspace's: its tables are cut by that zone's days, and two zones would hold every message twice.
    """
    if unknown := unknown_variables(Settings):
        raise SettingError(" ".join(unknown))
    try:
        settings = Settings()
    except ValidationError as error:
        raise SettingError(sentences(Settings, error, given(Settings, named_workspace()))) from None
    except memory_json.WrongFileError as error:
        raise SettingError(str(error)) from None
    if missing := missing_extras(settings):
        raise SettingError(" ".join(missing))
    _refuse_a_newer_format(settings.workspace)
    if settings.lake and _marks_of_the_lake().take_over(settings):
        settings = Settings()
    _refuse_another_zone(settings, lambda: given(Settings, settings.workspace))
    tokens.estimate_by(settings.token_estimate)
    return settings


class _FileOnly(Settings):
    """Settings of which nothing is read but what is handed over."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *args: PydanticBaseSettingsSource, **kwargs: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (kwargs["init_settings"],)


def check_file(workspace: Path, text: str) -> Settings:
    """The settings that this text would give as the workspace's settings.toml, without the environment.

    Raises `SettingError` as `load_settings` does.
    """
    path = workspace / FILE_NAME
    try:
        places = in_file(Settings, path, text, tomllib.loads(text))
        settings = _FileOnly(**{"workspace": workspace} | values_of(places))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} cannot be read: {error}. Fix it or remove it.") from None
    except ValidationError as error:
        raise SettingError(sentences(Settings, error, places)) from None
    except memory_json.WrongFileError as error:
        raise SettingError(str(error)) from None
    _refuse_another_zone(settings, lambda: places)
    return settings


def named_workspace() -> Path:
    """Where the workspace is, whatever else is wrong with the settings."""
    return _named_workspace(Variables(Settings)())


def _named_workspace(values: Mapping[str, Any]) -> Path:
    named = values.get("workspace", Settings.model_fields["workspace"].default)
    try:
        return _normal(Path(named))
    except ValueError:
        return Path(os.path.abspath(named))  # noqa: PTH100 - no such user, as the field's own sentence will say


def _refuse_a_newer_format(workspace: Path) -> None:
    found = workspace_marks.kept_format(workspace)
    if found > workspace_marks.FORMAT:
        raise SettingError(
            f"The workspace {workspace} was written by a newer version of memory-pipeline: its format is {found}, and "
            f"this version knows {workspace_marks.FORMAT}. Update memory-pipeline, or name another MEMORY_WORKSPACE."
        )


def _refuse_another_zone(settings: Settings, places: Callable[[], Given]) -> None:
    zone = workspace_marks.kept_zone(settings.workspace)
    if zone and zone != settings.timezone:
        asked = assignment(Settings, "timezone", settings.timezone, places())
        raise SettingError(
            f"{asked}: the workspace {settings.workspace} was made with {zone}; keep that zone, or name another "
            "MEMORY_WORKSPACE."
        )


def keep_timezone(settings: Settings) -> None:
    """Make the zone the workspace's own, so that a journey does not move its days, and that of the lake that it shares
    with others. Raises `OtherMarksError` where that has another."""
    if settings.lake:
        _marks_of_the_lake().share_zone(settings)
    workspace_marks.keep_zone(settings.workspace, settings.timezone)


def keep_first_day(settings: Settings, session_days: Iterable[date], *, is_complete: bool = True) -> Settings:
    """Make the oldest of these days, or of what is stored, the workspace's first, where it has none yet; the settings
    with the day that counts: one that a user has set, else the workspace's.

    Where they are not all the days that sessions have, nobody knows the oldest, and nothing is kept; nor where a lake
    is shared and has none yet, else what is pushed to a server that runs already would be left out.
    """
    days = list(session_days)
    is_shared = settings.lake is not None and _marks_of_the_lake().is_shared(settings)
    if is_complete and (days or not is_shared):
        workspace_marks.keep_first_day(settings.workspace, days, today(settings.zone))
        if is_shared:
            _marks_of_the_lake().share_first_day(settings)
    if "start_date" in settings.model_fields_set:
        return settings
    first = workspace_marks.kept_first_day(settings.workspace) or min((*days, settings.start_date))
    return settings.model_copy(update={"start_date": first})


def salt_of(settings: Settings) -> bytes:
    """The workspace's own random bytes for marks of secrets: equal secrets get equal marks only in it, and in those
    that share its lake."""
    if settings.lake:
        _marks_of_the_lake().make_salt(settings)
    return workspace_marks.salt(settings.workspace)


def _marks_of_the_lake() -> ModuleType:
    """Not above: the client of a bucket takes long to import, and only a lake in one needs it."""
    from memory_pipeline.lake import shared_marks

    return shared_marks
