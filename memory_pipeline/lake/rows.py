"""The rows of the tables as typed dicts: what a row has on its way between modules.

`| None` stands where a row that is written today may have no value. A row of a file from before a column was added has
none there either, in any column.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    import polars as pl

RowT = TypeVar("RowT")


def typed_rows(frame: pl.DataFrame, kind: type[RowT]) -> list[RowT]:
    """The rows of a frame that has the columns of this kind."""
    return cast("list[RowT]", frame.to_dicts())


def distinct(values: Iterable[str | None]) -> list[str]:
    """Each of these texts once, in order; without those that say nothing."""
    return sorted({value for value in values if value})


class SpanRow(TypedDict):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


class EvidenceRow(SpanRow):
    """A span of a message's text."""

    message_id: str


class ImageRow(TypedDict):
    """Where an image stands in a session file."""

    line: int
    block: int
    media_type: str


class UnknownRecordRow(TypedDict):
    """How many records of a type there were that the reader does not know."""

    type: str
    count: int


class ProblemRow(TypedDict):
    """A line that could not be read."""

    line: int
    reason: str


class FileDayRow(TypedDict):
    """A day on which something in a session file was said."""

    day: date
    digest: str
    messages: int
    inherited: int
    voided: int
    typed: list[str] | None


class FilePartRow(TypedDict):
    """Which part of its session a file is; see `sessions.model.Part`."""

    name: str
    began_at: datetime | None
    base: str
    base_end: int
    end: int


class FileContents(TypedDict):
    """Columns of `files` that reading the session gives."""

    harness: str | None
    session_id: str | None
    last_said_at: datetime | None
    began_at: datetime | None
    messages: int
    records: int
    unknown_records: list[UnknownRecordRow]
    problems: list[ProblemRow]
    days: list[FileDayRow]
    parent_id: str | None
    excluded: str | None
    cwd: str | None
    branch: str | None
    repository: str | None
    begins_with_plan: bool | None
    hidden_characters: int | None
    part: FilePartRow | None


class FileRow(FileContents):
    """A row of `files`."""

    path: str
    member: str | None
    size: int
    modified_ns: int | None
    reader: str
    reason: str | None
    side_file_of: str | None
    repository_dir: str | None
    withdrawn_from: int | None


class SessionRow(TypedDict):
    """A row of `sessions`."""

    day: date
    session_id: str
    harness: str
    name: str
    cwd: str
    source_file: str
    started_at: datetime
    ended_at: datetime
    messages: int
    user_messages: int
    files_read: list[str]
    files_modified: list[str]
    project: str | None


class MessageRow(TypedDict):
    """A row of `messages`."""

    day: date
    session_id: str
    message_id: str
    role: str
    said_at: datetime
    written_at: datetime
    text: str
    tool_name: str | None
    is_error: bool
    source_file: str
    source_line: int
    dedupe_key: str
    voided: bool
    quoted: list[SpanRow]
    images: list[ImageRow]
    untimed: str | None
    answer_to: str | None
    answered: str | None


class WindowRow(TypedDict):
    """A row of `windows`."""

    day: date
    dedupe_key: str
    session_id: str
    trigger: str
    started_at: datetime
    messages: int
    user_messages: int
    tokens: int
    tokens_said: int
    observed: bool
    reason: str | None
    current_task: str | None
    suggested_response: str | None
    ended_at: datetime
    captured_at: datetime
    tokens_before: int | None
    files_read: list[str]
    files_modified: list[str]
    schema_version: int
    untimed: str | None
    rules_only: bool | None


class SegmentRow(TypedDict):
    """A row of `segments`."""

    day: date
    segment_id: str
    dedupe_key: str
    session_id: str
    position: int
    narrative: str
    first_message_id: str
    last_message_id: str
    title: str | None
    observer: str
    parsed: bool
    problem: str | None
    answer: str | None
    current_task: str | None
    suggested_response: str | None
    used: list[str]
    basis: str | None
    times_written: int | None
    times_invented: int | None


class SourceRow(TypedDict):
    """What a line can be made from: an observation, or a note in the same shape."""

    day: date
    observation_id: str
    session_id: str
    priority: str
    kind: str
    observed_at: datetime
    text: str
    evidence: list[EvidenceRow]
    trust: str
    flags: list[str]
    tokens: int
    untimed: str | None
    cwd: str | None
    project: str | None


class ObservationRow(SourceRow):
    """A row of `observations`."""

    segment_id: str
    dedupe_key: str
    referenced_at: datetime | None
    observer: str
    trace: str | None
    owner: str | None


class NoteRow(TypedDict):
    """A row of `notes`."""

    day: date
    note_id: str
    line: int
    text: str
    kind: str
    priority: str
    source_file: str


class EmbeddingRow(TypedDict):
    """A row of `embeddings`."""

    day: date
    point_id: str
    kind: str
    source_id: str
    model: str
    dimension: int
    content_hash: str


class MessageEmbeddingRow(TypedDict):
    """A row of `message_embeddings`."""

    day: date
    point_id: str
    record: str
    source_id: str
    session_id: str
    start: int
    end: int
    model: str | None
    dimension: int
    content_hash: str


class ReflectionRow(TypedDict):
    """A row of `reflections`."""

    day: date
    reflection_id: str
    level: int
    section: str
    text: str
    priority: str
    kind: str
    support: int
    sessions: int
    sources: list[str]
    first_seen: datetime
    last_seen: datetime
    input_tokens: int
    tokens: int
    reflector: str
    item_type: str | None
    trust: str
    superseded: list[str]
    tags: list[str]
    contradicts: list[str]
    summary: str | None
    cwds: list[str] | None
    projects: list[str] | None
    owner: str | None


class PoolReflectionRow(TypedDict):
    """A row of `pool_reflections`."""

    pool_id: str
    section: str
    text: str
    priority: str
    support: int
    sources: list[str]
    observations: list[str]
    left_out: list[str]
    first_seen: datetime
    last_seen: datetime
    tokens: int
    reflector: str
    reflected_at: datetime
    cwds: list[str] | None
    projects: list[str] | None
    owner: str | None


class DistillationRow(TypedDict):
    """A row of `day_distillations`, `week_distillations` or `month_distillations`."""

    day: date
    distillation_id: str
    level: int
    text: str
    kind: str
    priority: str
    sources: list[str]
    first_seen: datetime
    last_seen: datetime
    tokens: int
    projects: list[str] | None


class ProposalRow(TypedDict):
    """A row of `proposals`; what was never made anew has no value in columns that came later."""

    day: date
    proposal_id: str
    section: str
    text: str
    priority: str
    sources: list[str]
    support: int
    content_hash: str
    evidence: list[EvidenceRow] | None
    sessions: int
    session_ids: list[str] | None
    last_seen: datetime | None
    supersedes: list[str] | None
    worth: float | None
    cwds: list[str] | None
    projects: list[str] | None
    owner: str | None


class RememberedRow(TypedDict):
    """A row of `remembered`."""

    day: date
    proposal_id: str
    section: str
    text: str
    priority: str
    trust: str
    client: str | None
    said_at: datetime
    content_hash: str
    worth: float
    cwd: str | None
    project: str | None
    owner: str
    source_file: str | None
    source_line: int | None


class ProposalState(ProposalRow):
    """A proposal and what became of it: a row of `ProposalLog.frame`, which is no table."""

    status: str
    decided_text: str | None
    decided_section: str | None
    reason: str | None
    surface: str | None
    decided_at: datetime | None
    shown_since: datetime | None
    shown_on: list[date] | None


class SupportRow(TypedDict):
    """A row of `supports`."""

    day: date
    proposal_id: str
    reflection_id: str
    sessions: int
    session_ids: list[str]
    said_at: datetime
    sources: list[str]
    cwds: list[str] | None
    projects: list[str] | None


class DecisionRow(TypedDict):
    """A row of `decisions`."""

    day: date
    proposal_id: str
    decision: str
    decided_at: datetime
    surface: str
    section: str | None
    text: str
    reason: str | None
    content_hash: str | None
    reoffered: bool | None


class ShowingRow(TypedDict):
    """A row of `showings`."""

    day: date
    proposal_id: str
    surface: str
    shown_at: datetime
    external_id: str | None
    lines: str | None


class DisplacementRow(TypedDict):
    """A row of `displacements`."""

    day: date
    proposal_id: str
    surface: str
    displaced_at: datetime


class ShownDayRow(TypedDict):
    """A row of `shown_days`."""

    day: date
    proposal_id: str
    surface: str


class NewReoffer(TypedDict):
    """A row of `reoffers` without its day."""

    proposal_id: str
    reoffered_at: datetime
    days_shown: int | None


class ReofferRow(NewReoffer):
    """A row of `reoffers`."""

    day: date


class PromotionRow(TypedDict):
    """A row of `promotions`."""

    day: date
    proposal_id: str
    section: str
    text: str
    promoted_at: datetime
    already_there: bool


class NewAutoPromotion(TypedDict):
    """A row of `auto_promotions` that has no day yet: it gets that of the moment at which it is stored."""

    proposal_id: str
    section: str
    would_promote_at: datetime
    acceptance: float
    lower_bound: float
    decisions_counted: int


class AutoPromotionRow(NewAutoPromotion):
    """A row of `auto_promotions`."""

    day: date


class WatchedRuleRow(TypedDict):
    """A row of `watched_rules`."""

    rule_id: str
    file: str
    text: str
    project: str | None
    since: date


class WeekRow(TypedDict):
    """How often something happened in a week, by its Monday."""

    week: date
    occurrences: int


class FrictionRow(TypedDict):
    """A row of `friction_clusters`."""

    day: date
    pattern_id: str
    kind: str
    title: str
    target_file: str
    section: str | None
    adds: str | None
    replaces: str | None
    change: str
    low_risk: bool | None
    sessions: int
    occurrences: int
    turns: int | None
    minutes: float | None
    severity: float
    confidence: float
    first_day: date | None
    last_day: date | None
    ended_on: date | None
    by_week: list[WeekRow] | None
    evidence: list[EvidenceRow]
    session_ids: list[str] | None
    cwds: list[str] | None
    projects: list[str] | None
    owner: str | None
    written_by: str | None
    template: str | None


class NewFix(TypedDict):
    """A row of `friction_fixes` that has no day yet: it gets that of the moment at which it is stored."""

    proposal_id: str
    kind: str
    title: str
    text: str
    target_file: str
    section: str | None
    place: str | None
    adds: str | None
    replaces: str | None
    change: str
    low_risk: bool
    supersedes: list[str]
    sessions: int
    session_ids: list[str]
    occurrences: int
    minutes: float | None
    worth: float
    first_day: date
    last_day: date
    said_at: datetime
    evidence: list[EvidenceRow]
    content_hash: str
    cwds: list[str] | None
    projects: list[str] | None
    owner: str


class FixRow(NewFix):
    """A row of `friction_fixes`."""

    day: date


class AppliedFixRow(TypedDict):
    """A row of `applied_fixes`."""

    day: date
    proposal_id: str
    place: str
    applied_at: datetime


class NewAutoFix(TypedDict):
    """A row of `auto_fixes` without its day."""

    proposal_id: str
    would_apply_at: datetime


class AutoFixRow(NewAutoFix):
    """A row of `auto_fixes`."""

    day: date


class ForgottenRow(TypedDict):
    """A row of `forgotten`."""

    kind: str
    digest: str
    words: int | None
    forgotten_at: datetime
