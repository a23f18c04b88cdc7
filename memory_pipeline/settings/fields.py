"""All settings with their defaults, and the paths of a workspace that follow from its location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

import tzlocal
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from memory_pipeline.days import today
from memory_pipeline.settings import marks as workspace_marks
from memory_pipeline.settings.groups import (
    IdentitySettings,
    ModelSettings,
    ObserverSettings,
    QdrantSettings,
    RetentionSettings,
    TodoistSettings,
    normalize,
    split_paths,
)
from memory_pipeline.settings.sources import (
    ADVANCED,
    FILE_NAME,
    FRONT,
    HIDDEN,
    Shown,
    Variable,
    from_environment,
    given,
    nested_values,
)
from memory_pipeline.text.priorities import MARKS

BUNDLED_MODEL = "all-MiniLM-L6-v2"
IDENTITY_FILES = ("SOUL.md", "IDENTITY.md", "USER.md", "AGENTS.md")
"""The identity files in the order in which an agent reads them; MEMORY.md and the log of the day follow."""


def _default_timezone(known: dict[str, Any]) -> str:
    return workspace_marks.stored_zone(known["workspace"]) or tzlocal.get_localzone_name() or "UTC"


def _default_start_date(known: dict[str, Any]) -> date:
    return workspace_marks.first_day(known["workspace"], today(ZoneInfo(known["timezone"])))


class Settings(BaseModel):
    """All settings of a workspace; attributes of groups are read like `settings.observer.model`."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True)

    owner: ClassVar[str] = "me"
    """The value of the column `owner`: a workspace is the memory of one person."""
    observation_budget: ClassVar[float] = 0.10
    """Maximum tokens of observations per token of a window's conversation."""
    pack_tokens: ClassVar[int] = 15_000
    """Maximum tokens of other sessions' lines in a context pack."""
    workspace: Annotated[Path, FRONT] = Field(
        Path("~/.memory-pipeline"),
        description="The only directory that is written to: MEMORY.md, REVIEW.md, memory/, lake/, index/, dagster/.",
    )
    session_dirs: Annotated[tuple[Path, ...], FRONT] = Field(
        (), description="Additional directories with session files, separated like PATH; never written to."
    )
    default_session_dirs: Annotated[bool, HIDDEN] = Field(
        True, description="Also read the coding agents' own session folders."
    )
    timezone: Annotated[str, FRONT, Shown("the machine's, when the workspace is created")] = Field(
        default_factory=_default_timezone,
        description="IANA name of the time zone whose calendar days are the partitions.",
    )
    start_date: Annotated[date, FRONT, Shown("the day of the oldest session, when the workspace is created")] = Field(
        default_factory=_default_start_date, description="The first day; earlier messages are counted, not stored."
    )
    user_name: Annotated[str, FRONT] = Field("User", description="The title of the first section of MEMORY.md.")
    redact: Annotated[bool, FRONT] = Field(
        True, description="Replace secrets by marks before anything is stored; `false` stores them as they are."
    )
    daily_budget_usd: Annotated[float, FRONT] = Field(1.0, ge=0, description="Maximum cost of models per day, in USD.")
    pending_limit: Annotated[int, FRONT] = Field(
        20, ge=1, description="Maximum proposals in REVIEW.md; the others wait."
    )
    auto_promote: Annotated[Literal["off", "shadow", "on"], FRONT] = Field(
        "off",
        description=(
            "Promote lines of a section without asking once its acceptance rate is high enough; `shadow` only logs."
        ),
    )
    auto_fix: bool = Field(
        False, description="Apply low-risk friction fixes in the workspace without asking, once shown for a day."
    )
    lake: str | None = Field(
        None,
        pattern=r"^((s3|gs|az)://[^/\s?#@]+(/[^\s?#@]*)?|file:///[^?#]*)$",
        description="Location of the tables outside the workspace: s3://bucket/prefix, gs://, az:// or file:///.",
    )
    embedding_model: Annotated[str, Variable("EMBEDDING_MODEL")] = Field(
        BUNDLED_MODEL,
        description="A sentence-transformers model on disk, with `[encoders]`; the default needs neither.",
    )
    archive_after_days: int = Field(
        0, ge=0, description="Days until a daily log is archived, once its day is reflected on; 0: never."
    )
    notify: str = Field(
        "off",
        repr=False,  # a URL may contain a token
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
    brief_tokens: Annotated[int, ADVANCED] = Field(2_000, ge=200, description="Maximum tokens of `memory context`.")
    mcp_seconds: Annotated[float, HIDDEN] = Field(5, gt=0, description="Seconds after which an MCP tool gives up.")

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**self.with_sources(arguments))

    @classmethod
    def with_sources(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the call, the environment, settings.toml and memory.json, in order of precedence."""
        found = nested_values(given(cls, workspace_named_by({**from_environment(cls), **arguments})))
        parts = {name: found.get(name, {}) | value for name, value in arguments.items() if isinstance(value, dict)}
        return found | dict(arguments) | parts

    @field_validator("workspace")
    @classmethod
    def _require_writable(cls, value: Path) -> Path:
        path = normalize(value)
        existing = next(p for p in (path, *path.parents) if p.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise ValueError(f"expected a directory that can be written to, but {existing} is not one")
        return path

    @field_validator("session_dirs", mode="before")
    @classmethod
    def _split_paths(cls, value: Any) -> Any:
        paths = split_paths(value)
        return tuple(map(normalize, paths)) if isinstance(paths, tuple) else paths

    @field_validator("lookback_days")
    @classmethod
    def _require_kept_text(cls, value: int, info: ValidationInfo) -> int:
        kept = info.data["retention"].messages if "retention" in info.data else 0
        if 0 < kept <= value:
            raise ValueError(f"expected fewer days than the {kept} of retention.messages")
        return value

    @field_validator("timezone")
    @classmethod
    def _require_known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, OSError, KeyError):  # for a path, a folder, and an unknown zone
            raise ValueError("expected an IANA time zone such as Europe/London") from None
        return value

    @property
    def shows_examples(self) -> bool:
        """Whether the workspace is that of the bundled examples, whose sessions are copied into it."""
        return self.session_dirs == (self.workspace / "sessions",)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def lake_dir(self) -> Path:
        """The directory of marks and locks, and of the tables unless `lake` names another place."""
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
        """A copy of REVIEW.md as last written, which is what the user was shown."""
        return self.backups / "REVIEW.md.shown"

    @property
    def actions_dir(self) -> Path:
        """The files that the hook of tool calls reads and writes."""
        return self.workspace / "connections" / "actions"

    @property
    def outcomes_file(self) -> Path:
        """The outcomes of the lines that sessions were shown at tool calls, as of the last run."""
        return self.actions_dir / "outcomes.json"

    @property
    def report_dir(self) -> Path:
        return self.workspace / "reports"

    @property
    def log_dir(self) -> Path:
        return self.workspace / "memory"

    def daily_log(self, day: date) -> Path:
        """The path of the day's log: in the archive if it is only there."""
        path = self.log_dir / f"{day}.md"
        if os.path.lexists(path):
            return path
        archived = self.archived_log(day)
        return archived if os.path.lexists(archived) else path

    def archived_log(self, day: date) -> Path:
        return self.log_dir / "archive" / f"{day}.md"

    @property
    def settings_file(self) -> Path:
        return self.workspace / FILE_NAME

    @property
    def proposal_warning_days(self) -> int:
        """Days after which a shown proposal is marked as expiring: five sevenths of its lifetime."""
        return self.proposal_expiry_days * 5 // 7

    @property
    def marks(self) -> Mapping[str, str]:
        """The symbols of the priorities high, medium and low."""
        return MARKS[self.markers]

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of MEMORY.md, in order."""
        return (self.user_name, "Hard Rules", "System Architecture", "Patterns")


def workspace_named_by(values: Mapping[str, Any]) -> Path:
    """The workspace given by these values of settings, valid or not, else the default one."""
    named = values.get("workspace", Settings.model_fields["workspace"].default)
    try:
        return normalize(Path(named))
    except ValueError:
        return Path(os.path.abspath(named))  # noqa: PTH100 - the validator of the field reports it
