"""The rows of the tables: every column is declared here once, with its type and meaning.

There is a class per table: its docstring describes a row, and an `Annotated` column has a note. The schemas in
`lake/tables.py`, Dagster's columns and docs/reference.md are generated from them. Times are UTC, `day` is the local
calendar day, ids are strings, `start` and `end` are character offsets into `messages.text`. Columns are added, never
renamed.

`| None` marks columns that may be empty in rows written today. In a file from before a column was added, any column may
be null.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    import polars as pl

RowT = TypeVar("RowT")

NAME = object()
Name = Annotated[str, NAME]
"""An id, a digest, a file name or an enumeration value: never quoted text. Other text columns may quote a session."""


def typed_rows(frame: pl.DataFrame, kind: type[RowT]) -> list[RowT]:
    """The rows of a frame that has the columns of this kind."""
    return cast("list[RowT]", frame.to_dicts())


def distinct(values: Iterable[str | None]) -> list[str]:
    """The unique non-empty texts, in order."""
    return sorted({value for value in values if value})


class SpanRow(TypedDict):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


class EvidenceRow(TypedDict):
    """A span of a message's text."""

    message_id: str
    start: int
    end: int


class ImageRow(TypedDict):
    """The place of an image in a session file."""

    line: int
    block: int
    media_type: str


class UnknownRecordRow(TypedDict):
    """The number of records of a type that the reader does not know."""

    type: str
    count: int


class ProblemRow(TypedDict):
    """An unreadable line."""

    line: int
    reason: str


class FileDayRow(TypedDict):
    """A day with messages in a session file."""

    day: date
    digest: str
    messages: int
    inherited: int
    voided: int
    typed: list[str] | None


class FilePartRow(TypedDict):
    """The part of its session that a file is; see `harnesses.model.Part`."""

    name: str
    began_at: datetime | None
    base: str
    base_end: int
    end: int


class WeekRow(TypedDict):
    """The number of occurrences in a week, by its Monday."""

    week: date
    occurrences: int


Harness = Annotated[Name, "the agent that wrote the session, by its name in docs/agents.md"]
SessionId = Annotated[Name, "the harness's own id of the session"]
Cwd = Annotated[str, "working directory of the session"]
Day = Annotated[date, "local calendar day"]
SourceFile = Annotated[Name, "path of the source file"]
StartedAt = Annotated[datetime, "time of the first message, or only its day if no time was recorded"]
EndedAt = Annotated[datetime, "time of the last message"]
UserMessages = Annotated[int, "messages that a user typed or sent through a tool"]
FilesRead = Annotated[list[str], "paths that the agent read"]
FilesModified = Annotated[list[str], "paths that the agent wrote to"]
Project = Annotated[str, "name of the session's repository or folder"]
Text = Annotated[str, "the text"]
SourceLine = Annotated[int, "line of the file, from 1, or row of a database"]
DedupeKey = Annotated[Name, "id of the window: sha256 of session, trigger and time of its first entry"]
Untimed = Annotated[Name, "position in the session, if no time was recorded"]
Tokens = Annotated[int, "estimated tokens"]
CurrentTask = Annotated[str, "task at the end: of a window, as the user last named it; of a segment, as a model did"]
SuggestedResponse = Annotated[str, "how to continue: the unanswered question or request, or that all is done"]
SegmentId = Annotated[Name, "id of the segment"]
Observer = Annotated[Name, "the observer that created the row"]
Priority = Annotated[Name, "high (matters for weeks or months), medium (days) or low (hours)"]
FactKind = Annotated[Name, "kind of fact, such as rule, decision or root_cause"]
Evidence = Annotated[list[EvidenceRow], "supporting spans of messages"]
Trust = Annotated[Name, "the speaker: user, assistant, tool, paste, injected, model or team; also `imported`"]
Owner = Annotated[Name, "owner of the memory: `me`, or as configured in an earlier version"]
PointId = Annotated[Name, "id of the vector in the index"]
EmbeddingModel = Annotated[Name, "the embedding model"]
Dimension = Annotated[int, "dimensions of the vector"]
ContentHash = Annotated[Name, "sha256 of the embedded content"]
ReflectionId = Annotated[Name, "id of the reflection"]
Section = Annotated[Name, "section of MEMORY.md; `Reflected` if none fits"]
Support = Annotated[int, "supporting observations"]
Sessions = Annotated[int, "supporting sessions"]
Sources = Annotated[list[Name], "ids of the source rows"]
FirstSeen = Annotated[datetime, "first time it was said"]
LastSeen = Annotated[datetime, "last time it was said"]
Reflector = Annotated[Name, "the reflector that created the row"]
Cwds = Annotated[list[str], "working directories of the source sessions"]
Projects = Annotated[list[str], "names of the source projects"]
ProposalId = Annotated[Name, "id of the proposal; for a friction fix, of its pattern"]
SessionIds = Annotated[list[Name], "ids of the supporting sessions"]
Supersedes = Annotated[list[Name], "proposals whose lines this one replaces once approved"]
Worth = Annotated[float, "score of a line (about -3 to 3.1) or severity of a friction fix; the highest are shown first"]
SaidAt = Annotated[datetime, "time of the message"]
TargetFile = Annotated[str, "file to be changed"]
Adds = Annotated[str, "line to add to the target file, without its bullet; empty for other changes"]
Replaces = Annotated[str, "existing line of the target file that is removed or replaced by `adds`"]
Change = Annotated[str, "the change that would end it"]
LowRisk = Annotated[bool, "whether the fix may be applied without asking, if enabled"]
Occurrences = Annotated[int, "occurrences"]
Minutes = Annotated[float, "minutes between the problem and progress, in all occurrences"]
FirstDay = Annotated[date, "day of its first occurrence"]
LastDay = Annotated[date, "day of its last occurrence"]
ObservationId = Annotated[Name, "id of the observation"]
ObservedAt = Annotated[datetime, "time of the message; see `untimed`"]
Flags = Annotated[list[Name], "flags of the fact, such as `ungrounded`"]


class FileRow(TypedDict):
    """A session file as of the last scan, read or not."""

    path: Annotated[Name, "path, with `#` and the session if the file contains several"]
    member: Annotated[Name | None, "the session, if the file contains several"]
    harness: Harness | None
    session_id: SessionId | None
    size: Annotated[int, "bytes"]
    modified_ns: Annotated[int | None, "modification time in nanoseconds since 1970"]
    reader: Annotated[Name, "version of the reader that read it"]
    last_said_at: Annotated[datetime | None, "time of its last message"]
    began_at: Annotated[datetime | None, "start of the session"]
    messages: Annotated[int, "messages in the file"]
    records: Annotated[int, "records in the file"]
    unknown_records: Annotated[list[UnknownRecordRow], "record types unknown to the reader, with their counts"]
    problems: Annotated[list[ProblemRow], "first unreadable lines, with the reason"]
    days: Annotated[list[FileDayRow], "days with messages, each with a digest, counts and ids of what the user typed"]
    parent_id: Annotated[Name | None, "the session that this one continues or forks"]
    reason: Annotated[str | None, "why the file was not read"]
    excluded: Annotated[str | None, "why nothing of the session is stored"]
    cwd: Cwd | None
    branch: Annotated[str | None, "branch of the repository when the session began"]
    repository: Annotated[str | None, "owner and name of the repository's remote"]
    begins_with_plan: Annotated[bool | None, "whether it begins with a plan that the user approved"]
    hidden_characters: Annotated[int | None, "invisible characters removed from its messages"]
    side_file_of: Annotated[str | None, "the agent whose auxiliary file this is; empty for a session"]
    repository_dir: Annotated[str | None, "folder of the git repository of `cwd`; for a worktree, of the main one"]
    part: Annotated[
        FilePartRow | None,
        "part of a session in several files: name, start, the part that it continues and up to which record, and the "
        "number after its last record",
    ]
    withdrawn_from: Annotated[int | None, "first record of the file that a later part withdrew from the session"]


class SessionRow(TypedDict):
    """A session on a day."""

    day: Day
    session_id: SessionId
    harness: Harness
    name: Annotated[str, "title of the session, if the harness has one"]
    cwd: Cwd
    source_file: SourceFile
    started_at: StartedAt
    ended_at: EndedAt
    messages: Annotated[int, "messages on the day"]
    user_messages: UserMessages
    files_read: FilesRead
    files_modified: FilesModified
    project: Project | None


class MessageRow(TypedDict):
    """One message."""

    day: Day
    session_id: SessionId
    message_id: Annotated[Name, "id, the same in every copy of the session"]
    role: Annotated[Name, "user, assistant, tool or injected"]
    said_at: Annotated[datetime, "time of the message; with `untimed` set, only its day and order are known"]
    written_at: Annotated[datetime, "when the harness recorded it"]
    text: Text
    tool_name: Annotated[str | None, "the tool that was called or answered"]
    is_error: Annotated[bool, "whether the tool failed; a call that the user refused did not"]
    source_file: SourceFile
    source_line: SourceLine
    dedupe_key: DedupeKey
    voided: Annotated[bool, "whether its turn was removed from the session (rewind, abandoned branch): not observed"]
    quoted: Annotated[list[SpanRow], "spans of a user's message that were pasted, not typed"]
    images: Annotated[list[ImageRow], "images: line of the source file and number within the record"]
    untimed: Untimed | None
    answer_to: Annotated[Name | None, "what the user answers through a tool: a question, plan or call; or refuses"]
    answered: Annotated[str | None, "the question, plan or call (clipped), if known"]


class WindowRow(TypedDict):
    """The messages of one session and day that are observed together."""

    day: Day
    dedupe_key: DedupeKey
    session_id: SessionId
    trigger: Annotated[Name, "compaction or shutdown"]
    started_at: StartedAt
    messages: Annotated[int, "messages in the window"]
    user_messages: UserMessages
    tokens: Tokens
    tokens_said: Annotated[int, "estimated tokens of people and the model, without tools"]
    observed: Annotated[bool, "whether the window is observed"]
    reason: Annotated[str | None, "why the window is not observed"]
    current_task: CurrentTask | None
    suggested_response: SuggestedResponse | None
    ended_at: EndedAt
    captured_at: Annotated[datetime, "time of its compaction or last message"]
    tokens_before: Annotated[int | None, "size of the compacted context, as the harness counted it"]
    files_read: FilesRead
    files_modified: FilesModified
    schema_version: Annotated[int, "version of the window's columns"]
    untimed: Untimed | None
    rules_only: Annotated[bool | None, "whether only the user's messages are observed because the session is short"]


class SegmentRow(TypedDict):
    """A topic within a window, with what was asked, done and reached."""

    day: Day
    segment_id: SegmentId
    dedupe_key: DedupeKey
    session_id: SessionId
    position: Annotated[int, "position of the segment in its window, from 0"]
    narrative: Annotated[str, "request and outcome, quoted or summarized; empty if a model returned only facts"]
    first_message_id: Annotated[Name, "first message of the segment"]
    last_message_id: Annotated[Name, "last message of the segment"]
    title: Annotated[str | None, "its topic in a few words"]
    observer: Observer
    parsed: Annotated[bool, "whether the answer kept to the format; if not, `problem` says why"]
    problem: Annotated[str | None, "problem of the model's answer"]
    answer: Annotated[Name | None, "key of the model's answer, a file below answers/"]
    current_task: CurrentTask | None
    suggested_response: SuggestedResponse | None
    used: Annotated[list[Name], "ids of earlier observations that it builds on"]
    basis: Annotated[Name | None, "hash of messages and settings of the request, which is repeated only if they change"]
    times_written: Annotated[int | None, "clock times in the model's answer"]
    times_invented: Annotated[int | None, "those that occur nowhere in the transcript, and were removed"]


class SourceRow(TypedDict):
    """A row that a line can be made from: an observation, or a note in the same shape."""

    day: Day
    observation_id: ObservationId
    session_id: SessionId
    priority: Priority
    kind: FactKind
    observed_at: ObservedAt
    text: Text
    evidence: Evidence
    trust: Trust
    flags: Flags
    tokens: Tokens
    untimed: Untimed | None
    cwd: Cwd | None
    project: Project | None


class ObservationRow(TypedDict):
    """One fact, with its evidence."""

    day: Day
    observation_id: ObservationId
    segment_id: SegmentId
    dedupe_key: DedupeKey
    session_id: SessionId
    priority: Priority
    kind: FactKind
    observed_at: ObservedAt
    referenced_at: Annotated[datetime | None, "start of the day that the text refers to, if any"]
    text: Text
    evidence: Evidence
    observer: Observer
    trust: Trust
    flags: Flags
    tokens: Tokens
    trace: Annotated[str | None, "steps behind it: trigger → investigation → decision → reason"]
    untimed: Untimed | None
    cwd: Cwd | None
    project: Project | None
    owner: Owner | None


class NoteRow(TypedDict):
    """A paragraph or list item that a user wrote into the day's log by hand."""

    day: Day
    note_id: Annotated[Name, "id of the note"]
    line: Annotated[int, "line in the daily log, from 1, when last read"]
    text: Text
    kind: FactKind
    priority: Priority
    source_file: SourceFile


class EmbeddingRow(TypedDict):
    """The record of one vector in the index."""

    day: Day
    point_id: PointId
    kind: Annotated[Name, "kind of the embedded row"]
    source_id: Annotated[Name, "id of the embedded row"]
    model: EmbeddingModel
    dimension: Dimension
    content_hash: ContentHash


class SummaryEmbeddingRow(EmbeddingRow):
    """The record of the vector of a segment or reflection in the index."""


class MessageEmbeddingRow(TypedDict):
    """The record of a passage of a message, or of a session's words, in the index."""

    day: Day
    point_id: PointId
    record: Annotated[Name, "kind of point: message (a passage) or session (its whole text)"]
    source_id: Annotated[Name, "id of the embedded message or session"]
    session_id: SessionId
    start: Annotated[int, "first character in the message's text"]
    end: Annotated[int, "character after the last one"]
    model: EmbeddingModel | None
    dimension: Dimension
    content_hash: ContentHash


class ReflectionRow(TypedDict):
    """One condensed line, at a level (1 = from observations)."""

    day: Day
    reflection_id: ReflectionId
    level: Annotated[int, "1: made from observations"]
    section: Section
    text: Text
    priority: Priority
    kind: FactKind
    support: Support
    sessions: Sessions
    sources: Sources
    first_seen: FirstSeen
    last_seen: LastSeen
    input_tokens: Annotated[int, "tokens of the observations in the lookback"]
    tokens: Tokens
    reflector: Reflector
    item_type: Annotated[Name | None, "knowledge, behaviour, event or skill"]
    trust: Trust
    superseded: Annotated[list[Name], "ids of the observations it replaced"]
    tags: Annotated[list[str], "topics assigned by a model"]
    contradicts: Annotated[list[str], "lines of MEMORY.md that contradict it"]
    summary: Annotated[str | None, "the model's summary of what was new on the day"]
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None


class PoolReflectionRow(TypedDict):
    """Lines of many days, condensed once and for all."""

    pool_id: Annotated[Name, "id of the pool reflection"]
    section: Section
    text: Text
    priority: Priority
    support: Support
    sources: Sources
    observations: Annotated[list[Name], "ids of the observations behind these lines"]
    left_out: Annotated[list[Name], "ids of observations that were not kept"]
    first_seen: FirstSeen
    last_seen: LastSeen
    tokens: Tokens
    reflector: Reflector
    reflected_at: Annotated[datetime, "when it was condensed"]
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None


class DistillationRow(TypedDict):
    """A line of `day_distillations`, `week_distillations` or `month_distillations`."""

    day: Day
    distillation_id: Annotated[Name, "id of the distilled line"]
    level: Annotated[int, "1 for a day, 2 for a week, 3 for a month"]
    text: Text
    kind: FactKind
    priority: Priority
    sources: Sources
    first_seen: FirstSeen
    last_seen: LastSeen
    tokens: Tokens
    projects: Projects | None


class DayDistillationRow(DistillationRow):
    """A line of the distillation of a day, made once it is some days old."""


class WeekDistillationRow(DistillationRow):
    """A line of the distillation of a week, which ends with `day`."""


class MonthDistillationRow(DistillationRow):
    """A line of the distillation of the weeks that end in a month."""


class ProposalRow(TypedDict):
    """One line offered for MEMORY.md; never changed afterwards."""

    day: Day
    proposal_id: ProposalId
    section: Section
    text: Text
    priority: Priority
    sources: Sources
    support: Support
    content_hash: ContentHash
    evidence: Evidence | None
    sessions: Sessions
    session_ids: SessionIds | None
    last_seen: LastSeen | None
    supersedes: Supersedes | None
    worth: Worth | None
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None


class RememberedRow(TypedDict):
    """One line that a user or an agent asked to be remembered, or that was imported from another tool's memory."""

    day: Day
    proposal_id: ProposalId
    section: Section
    text: Text
    priority: Priority
    trust: Trust
    client: Annotated[str | None, "client of the agent that requested it, or the memory that it was imported from"]
    said_at: SaidAt
    content_hash: ContentHash
    worth: Worth
    cwd: Cwd | None
    project: Project | None
    owner: Owner
    source_file: SourceFile | None
    source_line: SourceLine | None


class ProposalState(ProposalRow):
    """A proposal with its state: a row of `ProposalLog.frame`, which is not a table."""

    status: str
    decided_text: str | None
    decided_section: str | None
    reason: str | None
    surface: str | None
    decided_at: datetime | None
    on_display: bool
    first_shown: datetime | None
    shown_on: list[date] | None


class SupportRow(TypedDict):
    """A line of a later reflection that says what a proposal says, and is not offered again."""

    day: Day
    proposal_id: ProposalId
    reflection_id: ReflectionId
    sessions: Sessions
    session_ids: SessionIds
    said_at: SaidAt
    sources: Sources
    cwds: Cwds | None
    projects: Projects | None
    worth: Worth | None


class EventRow(TypedDict):
    """An event of a proposal, on the day it happened; the kind determines which columns are empty."""

    day: Day
    happened_at: Annotated[datetime | None, "time of the event"]
    proposal_id: ProposalId
    kind: Annotated[
        Name,
        "kind of event: decided; shown, displaced (by a better proposal) or shown_day (on display during a run that "
        "day); reoffered (offered again, once); promoted (written to MEMORY.md) or applied (a fix was written); "
        "would_promote or would_apply (first qualified for that without asking)",
    ]
    surface: Annotated[
        Name | None,
        "where it was shown or decided: REVIEW.md, command, page or todoist; without a user: expiry, supersession, "
        "friction or auto; for an applied fix, its file",
    ]
    decision: Annotated[Name | None, "approved, rejected, expired, invalid, superseded or withdrawn"]
    section: Section | None
    text: Text | None
    reason: Annotated[str | None, "why"]
    content_hash: ContentHash | None
    external_id: Annotated[Name | None, "id on the surface, such as of a Todoist task"]
    lines: Annotated[str | None, "its lines in REVIEW.md at that time, to detect edits by the user"]
    again: Annotated[bool | None, "whether it was decided after it was offered again, which cancels the expiry"]
    already_there: Annotated[bool | None, "whether MEMORY.md already contained the promoted line"]


class FrictionRow(TypedDict):
    """One recurring pattern over the days that end with `day`."""

    day: Day
    pattern_id: Annotated[Name, "id of the friction pattern"]
    kind: Annotated[Name, "kind of friction, such as recurring_failure"]
    title: Annotated[str, "the pattern in a few words"]
    target_file: TargetFile
    section: Section | None
    adds: Adds | None
    replaces: Replaces | None
    change: Change
    low_risk: LowRisk | None
    sessions: Annotated[int, "sessions in which it happened"]
    occurrences: Occurrences
    turns: Annotated[int | None, "messages between the problem and progress, in all occurrences"]
    minutes: Minutes | None
    severity: Annotated[float, "sessions times the minutes that one occurrence costs"]
    confidence: Annotated[float, "confidence that it is a pattern and not a coincidence, 0 to 1"]
    first_day: FirstDay | None
    last_day: LastDay | None
    ended_on: Annotated[date | None, "day on which it had not occurred for a lookback; empty while it is active"]
    by_week: Annotated[list[WeekRow] | None, "occurrences by week, by Monday"]
    evidence: Evidence
    session_ids: SessionIds | None
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None
    written_by: Annotated[str | None, "the model that wrote title and change; only in rows of version 0.2"]
    template: Annotated[str | None, "the title of such a row without the model"]


class NewFix(TypedDict):
    """A row of `friction_fixes` that has no day yet: it gets the day on which it is stored."""

    proposal_id: ProposalId
    kind: Annotated[Name, "kind of friction, such as recurring_failure"]
    title: Annotated[str, "the pattern in a few words"]
    text: Text
    target_file: TargetFile
    section: Section | None
    place: Annotated[Name | None, "file in the workspace that approval changes; empty if the user makes the change"]
    adds: Adds | None
    replaces: Replaces | None
    change: Change
    low_risk: LowRisk
    supersedes: Supersedes
    sessions: Annotated[int, "sessions in which it happened"]
    session_ids: SessionIds
    occurrences: Occurrences
    minutes: Minutes | None
    worth: Worth
    first_day: FirstDay
    last_day: LastDay
    said_at: SaidAt
    evidence: Evidence
    content_hash: ContentHash
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner


class FixRow(NewFix):
    """A friction pattern as it was offered; never changed afterwards."""

    day: Day


class WatchedRuleRow(TypedDict):
    """A line of MEMORY.md, AGENTS.md or CLAUDE.md, as it was first seen."""

    rule_id: Annotated[Name, "id of the rule, from its file and text"]
    file: Annotated[Name, "MEMORY.md, or the path of the project file that contains the line"]
    text: Text
    project: Project | None
    since: Annotated[date, "first day on which it was seen there"]


class ForgottenRow(TypedDict):
    """A session, a message or a sequence of words that `memory forget` removed and that stays removed."""

    kind: Annotated[Name, "session, message or words"]
    digest: Annotated[Name, "hash of the id or of the words, with the salt of the workspace"]
    words: Annotated[int | None, "length of the sequence"]
    forgotten_at: Annotated[datetime, "time of the request"]


class LedgerRow(TypedDict):
    """One call of a language model."""

    day: Day
    call_id: Annotated[Name, "id of the call"]
    stage: Annotated[Name, "the stage that called"]
    model: Annotated[Name, "the language model"]
    input_tokens: Annotated[int, "tokens sent to the model"]
    output_tokens: Annotated[int, "tokens of the model's answer"]
    cost_usd: Annotated[float | None, "cost of the call; empty if the price is unknown"]
    seconds: Annotated[float | None, "duration of the call"]
    cached: Annotated[bool, "whether a cached answer was used, which costs nothing"]
    for_day: Annotated[date | None, "day for which the call was made"]
    asked_at: Annotated[datetime, "time of the call"]
    state: Annotated[Name, "reserved (in progress or killed, counts in full), done or failed"]
    error: Annotated[str | None, "why the call failed"]
