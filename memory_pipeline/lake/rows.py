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
Cwd = Annotated[str, "directory that the session worked in"]
Day = Annotated[date, "local calendar day"]
SourceFile = Annotated[Name, "path of the file it was read from"]
StartedAt = Annotated[
    datetime, "when the first message was said, UTC; only its day is meant where nobody recorded that"
]
EndedAt = Annotated[datetime, "when the last message was said, UTC"]
UserMessages = Annotated[int, "how many of them a user typed or said through a tool"]
FilesRead = Annotated[list[str], "paths that the agent read"]
FilesModified = Annotated[list[str], "paths that the agent wrote to"]
Project = Annotated[str, "the repository or folder that the session worked on, by name; empty where there is none"]
Text = Annotated[str, "the words"]
SourceLine = Annotated[int, "line of the file, from 1; of a row in a database its number"]
DedupeKey = Annotated[Name, "id of the window: sha256 of session, trigger and time of its first entry"]
Untimed = Annotated[
    Name, "where in its session it was said, when nobody recorded at what time; stands in place of a clock"
]
Tokens = Annotated[int, "estimated tokens"]
CurrentTask = Annotated[
    str,
    "what was being worked on at the end: of a window the user's last words that say so, of a segment what a model "
    "reported",
]
SuggestedResponse = Annotated[
    str,
    "how to go on: the question of the model or the words of the user that wait for an answer, or that the session "
    "was completed",
]
SegmentId = Annotated[Name, "id of the segment"]
Title = Annotated[str, "what it is about, in a few words"]
Observer = Annotated[Name, "which observer made the row"]
Priority = Annotated[Name, "high (matters for weeks or months), medium (days) or low (hours)"]
FactKind = Annotated[Name, "sort of fact, such as rule, decision or root_cause"]
Evidence = Annotated[
    list[EvidenceRow], "the spans of the messages that carry it: characters start to end of messages.text"
]
Trust = Annotated[
    Name, "the speaker: user, assistant, tool, paste, injected, model or team; `imported` of an imported line"
]
Owner = Annotated[Name, "whose memory it is: `me`, or what an earlier version was told"]
PointId = Annotated[Name, "id of the vector in the index"]
SourceId = Annotated[Name, "id of the row that the vector is of"]
EmbeddingModel = Annotated[Name, "the embedding model"]
Dimension = Annotated[int, "numbers in the vector"]
ContentHash = Annotated[Name, "sha256 of what it stands for"]
ReflectionId = Annotated[Name, "id of the reflection"]
Section = Annotated[Name, "section of MEMORY.md; `Reflected` for what fits none"]
Support = Annotated[int, "observations that say it"]
Sessions = Annotated[int, "number of sessions in which it was said"]
Sources = Annotated[list[Name], "ids of the rows it was made from"]
FirstSeen = Annotated[datetime, "when it was said first, UTC"]
LastSeen = Annotated[datetime, "when it was said last, UTC"]
Reflector = Annotated[Name, "which reflector made the row"]
Cwds = Annotated[list[str], "folders of the sessions that it comes from"]
Projects = Annotated[list[str], "projects that it comes from, each by name"]
DistillationId = Annotated[Name, "id of the distilled line"]
ProposalId = Annotated[Name, "id of the proposal; of a friction fix that of its pattern"]
SessionIds = Annotated[list[Name], "the sessions in which it was said"]
Supersedes = Annotated[list[Name], "ids of the proposals whose line this one replaces once it is approved"]
Worth = Annotated[
    float,
    "score of the line, by what can be seen in it, from about -3 to 3.1, or of a friction fix its severity: the "
    "highest are shown first",
]
SaidAt = Annotated[datetime, "when it was said, UTC"]
Surface = Annotated[
    Name,
    "where it was shown or decided: REVIEW.md, command, page, todoist; by no user: expiry, supersession, friction, "
    "auto; of an applied fix its file",
]
TargetFile = Annotated[str, "where the change belongs"]
Adds = Annotated[str, "the line to write into the target file, without its bullet; empty where it is not a line"]
Replaces = Annotated[str, "the line of the target file, as it stands, that goes or that `adds` takes the place of"]
Change = Annotated[str, "what would end it"]
LowRisk = Annotated[bool, "whether the fix may be applied without asking, where that is switched on"]
Occurrences = Annotated[int, "how often it happened"]
Minutes = Annotated[float, "time from what went wrong to where the work went on, in all occurrences"]
FirstDay = Annotated[date, "day of its first occurrence"]
LastDay = Annotated[date, "day of its last occurrence"]
Place = Annotated[
    Name, "the file in the workspace that approval changes, from its top; empty where the user makes the change"
]
ObservationId = Annotated[Name, "id of the observation"]
ObservedAt = Annotated[datetime, "when it was said, UTC; see `untimed`"]
Flags = Annotated[list[Name], "what is known against it, or about how it was made"]


class FileRow(TypedDict):
    """A session file as of the last scan, read or not."""

    path: Annotated[Name, "path of the file; of one that holds several sessions, with `#` and the session"]
    member: Annotated[Name | None, "the session, where the file holds several"]
    harness: Harness | None
    session_id: SessionId | None
    size: Annotated[int, "bytes"]
    modified_ns: Annotated[int | None, "when the file was changed last: nanoseconds since 1970"]
    reader: Annotated[Name, "version of the reader that read it"]
    last_said_at: Annotated[datetime | None, "when its last message was said, UTC"]
    began_at: Annotated[datetime | None, "when the session began, UTC"]
    messages: Annotated[int, "number of messages in the file"]
    records: Annotated[int, "how many records the file has"]
    unknown_records: Annotated[
        list[UnknownRecordRow], "types of record that the reader does not know, with how many there were"
    ]
    problems: Annotated[list[ProblemRow], "the first lines that could not be read, and why"]
    days: Annotated[
        list[FileDayRow],
        "the days on which something in the file was said, each with a digest of it, counts and the ids of what the "
        "user typed",
    ]
    parent_id: Annotated[Name | None, "the session that this one continues or forks"]
    reason: Annotated[str | None, "why the file was not read"]
    excluded: Annotated[str | None, "why nothing of the session is stored"]
    cwd: Cwd | None
    branch: Annotated[str | None, "branch of the repository when the session began"]
    repository: Annotated[str | None, "owner and name of the repository's remote"]
    begins_with_plan: Annotated[bool | None, "whether a plan that the user approved is the first that was said in it"]
    hidden_characters: Annotated[
        int | None,
        "how many characters that nobody sees were taken out of its messages: zero-width ones, those that turn the "
        "direction of writing, tags",
    ]
    side_file_of: Annotated[str | None, "the agent that keeps this file beside its sessions, where it is none"]
    repository_dir: Annotated[
        str | None,
        "the folder of the git repository that `cwd` lay in when the file was read, of a worktree that of its "
        "repository; empty where there was none",
    ]
    part: Annotated[
        FilePartRow | None,
        "which part of the session the file is, where the harness continues a session in another file: its name, when "
        "it was begun, the part that it continues and up to which record, and the number behind its last record",
    ]
    withdrawn_from: Annotated[
        int | None, "number of the record from which on a later part took the file's records out of the session"
    ]


class SessionRow(TypedDict):
    """A session on a day."""

    day: Day
    session_id: SessionId
    harness: Harness
    name: Annotated[str, "title of the session, where the harness has one"]
    cwd: Cwd
    source_file: SourceFile
    started_at: StartedAt
    ended_at: EndedAt
    messages: Annotated[int, "number of messages on the day"]
    user_messages: UserMessages
    files_read: FilesRead
    files_modified: FilesModified
    project: Project | None


class MessageRow(TypedDict):
    """One message."""

    day: Day
    session_id: SessionId
    message_id: Annotated[Name, "id of the message, the same in every copy of its session"]
    role: Annotated[Name, "user, assistant, tool or injected"]
    said_at: Annotated[
        datetime,
        "when it was said, UTC; where `untimed` says that nobody recorded it, only its day and order are meant",
    ]
    written_at: Annotated[datetime, "when the harness wrote it down, UTC"]
    text: Text
    tool_name: Annotated[str | None, "the tool that was called or answered"]
    is_error: Annotated[bool, "whether the tool failed; a call that the user refused did not"]
    source_file: SourceFile
    source_line: SourceLine
    dedupe_key: DedupeKey
    voided: Annotated[
        bool, "whether the turn was taken out of the session (rewind, rollback, a branch left); kept, not observed"
    ]
    quoted: Annotated[list[SpanRow], "spans of a user's message that were pasted, not typed"]
    images: Annotated[list[ImageRow], "images in the message: line and number within the record, for the source file"]
    untimed: Untimed | None
    answer_to: Annotated[
        Name | None,
        "what the user answers through a tool: question, approved or refused plan, approved or refused call; of a "
        "tool's result, that they refused it",
    ]
    answered: Annotated[str | None, "that question, plan or call itself (clipped), where it is known"]


class WindowRow(TypedDict):
    """The messages of one session and day that are observed together."""

    day: Day
    dedupe_key: DedupeKey
    session_id: SessionId
    trigger: Annotated[Name, "compaction or shutdown"]
    started_at: StartedAt
    messages: Annotated[int, "number of messages in the window"]
    user_messages: UserMessages
    tokens: Tokens
    tokens_said: Annotated[int, "estimated tokens of people and the model, without tools"]
    observed: Annotated[bool, "whether the window is observed; if not, `reason` says why"]
    reason: Annotated[str | None, "why the window is not observed"]
    current_task: CurrentTask | None
    suggested_response: SuggestedResponse | None
    ended_at: EndedAt
    captured_at: Annotated[datetime, "when the window was complete: at its compaction, or with its last message"]
    tokens_before: Annotated[int | None, "size of the context when it was compacted, as the harness counted it"]
    files_read: FilesRead
    files_modified: FilesModified
    schema_version: Annotated[int, "version of the window's columns"]
    untimed: Untimed | None
    rules_only: Annotated[bool | None, "whether only what the user said is observed, because the session is short"]


class SegmentRow(TypedDict):
    """A topic within a window, with what was asked, done and reached."""

    day: Day
    segment_id: SegmentId
    dedupe_key: DedupeKey
    session_id: SessionId
    position: Annotated[int, "place of the segment in its window, from 0"]
    narrative: Annotated[
        str, "what was asked and how it ended, quoted or told by a model; empty where a model told facts alone"
    ]
    first_message_id: Annotated[Name, "the message that the segment begins with"]
    last_message_id: Annotated[Name, "the message that it ends with"]
    title: Title | None
    observer: Observer
    parsed: Annotated[
        bool, "whether the model kept to the format; if not, this is what could be saved and `problem` says why"
    ]
    problem: Annotated[str | None, "what was wrong with the model's answer"]
    answer: Annotated[Name | None, "key of the model's answer, a file below answers/"]
    current_task: CurrentTask | None
    suggested_response: SuggestedResponse | None
    used: Annotated[list[Name], "ids of earlier observations that it builds on"]
    basis: Annotated[
        Name | None,
        "hash of the messages that a model was shown for it and of what decides how; while it holds, they are not "
        "observed again",
    ]
    times_written: Annotated[int | None, "clock times that a model wrote into its answer"]
    times_invented: Annotated[int | None, "how many of them are no message's and were not said; they were taken out"]


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
    referenced_at: Annotated[datetime | None, "the day that it speaks of, where it names one: its first moment, UTC"]
    text: Text
    evidence: Evidence
    observer: Observer
    trust: Trust
    flags: Flags
    tokens: Tokens
    trace: Annotated[str | None, "what led to it: what set it off → what was looked into → what was decided → why"]
    untimed: Untimed | None
    cwd: Cwd | None
    project: Project | None
    owner: Owner | None


class NoteRow(TypedDict):
    """A paragraph or list item that a user wrote into the day's log by hand."""

    day: Day
    note_id: Annotated[Name, "id of the note"]
    line: Annotated[int, "line in the daily log, from 1, when the note was read last"]
    text: Text
    kind: FactKind
    priority: Priority
    source_file: SourceFile


class EmbeddingRow(TypedDict):
    """The record of one vector in the index."""

    day: Day
    point_id: PointId
    kind: Annotated[Name, "kind of the row that the vector is of"]
    source_id: SourceId
    model: EmbeddingModel
    dimension: Dimension
    content_hash: ContentHash


class SummaryEmbeddingRow(EmbeddingRow):
    """The record of the vector of a segment or reflection in the index."""


class MessageEmbeddingRow(TypedDict):
    """The record of a passage of a message, or of a session's words, in the index."""

    day: Day
    point_id: PointId
    record: Annotated[Name, "what the point is: message (a passage of one) or session (all its words)"]
    source_id: Annotated[Name, "id of the message or session that the vector is of"]
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
    input_tokens: Annotated[int, "tokens of the observations of the lookback"]
    tokens: Tokens
    reflector: Reflector
    item_type: Annotated[Name | None, "knowledge, behaviour, event or skill"]
    trust: Trust
    superseded: Annotated[list[Name], "ids of observations that it replaced"]
    tags: Annotated[list[str], "the things and subjects that a model files it under"]
    contradicts: Annotated[list[str], "lines of MEMORY.md that say something else"]
    summary: Annotated[str | None, "what was new, in a sentence or two of the model; the same in all rows of a day"]
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
    observations: Annotated[list[Name], "ids of the observations that these lines were made from"]
    left_out: Annotated[list[Name], "ids of observations that were looked at with these and not kept"]
    first_seen: FirstSeen
    last_seen: LastSeen
    tokens: Tokens
    reflector: Reflector
    reflected_at: Annotated[datetime, "when it was condensed, UTC"]
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None


class DistillationRow(TypedDict):
    """A line of `day_distillations`, `week_distillations` or `month_distillations`."""

    day: Day
    distillation_id: DistillationId
    level: Annotated[int, "1 of a day, 2 of a week, 3 of a month"]
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
    """One line that a user, or an agent for them, asked to be remembered, or that was imported from another tool's
    memory: a proposal that no stage made.
    """

    day: Day
    proposal_id: ProposalId
    section: Section
    text: Text
    priority: Priority
    trust: Trust
    client: Annotated[
        str | None,
        "the program through which an agent asked for it, as it calls itself, or the memory that it was imported "
        "from; empty where a user asked",
    ]
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
    """A line of a later reflection with the meaning of a proposal, merged into it instead of being offered again."""

    day: Day
    proposal_id: ProposalId
    reflection_id: ReflectionId
    sessions: Sessions
    session_ids: SessionIds
    said_at: SaidAt
    sources: Sources
    cwds: Cwds | None
    projects: Projects | None


class EventRow(TypedDict):
    """An event of a proposal, on the day it happened; the kind determines which columns are empty."""

    day: Day
    happened_at: Annotated[datetime | None, "when it happened, UTC; empty of a shown_day of an earlier version"]
    proposal_id: ProposalId
    kind: Annotated[
        Name,
        "what happened: decided; shown (put on a surface), displaced (a better one took its place there) or shown_day "
        "(a run had it on display that day); reoffered (offered again, once); promoted (its line reached MEMORY.md) or "
        "applied (a fix was written to a file); would_promote or would_apply (when it first qualified to be promoted "
        "or applied without asking)",
    ]
    surface: Surface | None
    decision: Annotated[Name | None, "approved, rejected, expired, invalid, superseded or withdrawn"]
    section: Section | None
    text: Text | None
    reason: Annotated[str | None, "why"]
    content_hash: ContentHash | None
    external_id: Annotated[Name | None, "what the surface calls it, such as a Todoist task"]
    lines: Annotated[str | None, "how it stood in REVIEW.md then: a line that still stands so was touched by nobody"]
    again: Annotated[
        bool | None, "true of a decision after it was offered again; the earlier expiry does not count then"
    ]
    already_there: Annotated[bool | None, "of a promoted line: whether it stood in MEMORY.md before"]


class FrictionRow(TypedDict):
    """One recurring pattern over the days that end with `day`."""

    day: Day
    pattern_id: Annotated[Name, "id of the friction pattern"]
    kind: Annotated[Name, "sort of friction, such as recurring_failure"]
    title: Annotated[str, "the pattern in a few words"]
    target_file: TargetFile
    section: Section | None
    adds: Adds | None
    replaces: Replaces | None
    change: Change
    low_risk: LowRisk | None
    sessions: Annotated[int, "number of sessions in which it happened"]
    occurrences: Occurrences
    turns: Annotated[int | None, "messages from what went wrong to where the work went on, in all occurrences"]
    minutes: Minutes | None
    severity: Annotated[float, "sessions times the minutes that one occurrence costs"]
    confidence: Annotated[float, "that it is a pattern and no accident, 0 to 1"]
    first_day: FirstDay | None
    last_day: LastDay | None
    ended_on: Annotated[
        date | None, "day on which nothing of it had happened for as long as is looked back; empty while it goes on"
    ]
    by_week: Annotated[list[WeekRow] | None, "how often it happened, by the Monday of the week"]
    evidence: Evidence
    session_ids: SessionIds | None
    cwds: Cwds | None
    projects: Projects | None
    owner: Owner | None
    written_by: Annotated[
        str | None, "the model that wrote title and change of a pattern; none where they are a template's"
    ]
    template: Annotated[str | None, "the title as a template has it, where a model wrote another"]


class NewFix(TypedDict):
    """A row of `friction_fixes` that has no day yet: it gets the day on which it is stored."""

    proposal_id: ProposalId
    kind: Annotated[Name, "sort of friction, such as recurring_failure"]
    title: Annotated[str, "the pattern in a few words"]
    text: Text
    target_file: TargetFile
    section: Section | None
    place: Place | None
    adds: Adds | None
    replaces: Replaces | None
    change: Change
    low_risk: LowRisk
    supersedes: Supersedes
    sessions: Annotated[int, "number of sessions in which it happened"]
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
    """A friction pattern as it was offered: the user decides on it as on a proposal; never changed afterwards."""

    day: Day


class WatchedRuleRow(TypedDict):
    """A line of MEMORY.md, AGENTS.md or CLAUDE.md, as it was first seen."""

    rule_id: Annotated[Name, "id of the rule: of its file and its words"]
    file: Annotated[Name, "MEMORY.md, or the path of the project's file that the line stands in"]
    text: Text
    project: Project | None
    since: Annotated[date, "day since which it is known to stand there"]


class ForgottenRow(TypedDict):
    """A session, a message or a sequence of words that `memory forget` removed and that stays removed."""

    kind: Annotated[Name, "session, message or words"]
    digest: Annotated[Name, "hash of the id or of the words, with the salt of the workspace"]
    words: Annotated[int | None, "how many words the sequence has"]
    forgotten_at: Annotated[datetime, "when it was forgotten, UTC"]


class LedgerRow(TypedDict):
    """One call of a language model."""

    day: Day
    call_id: Annotated[Name, "id of the call"]
    stage: Annotated[Name, "the stage that asked"]
    model: Annotated[Name, "the language model"]
    input_tokens: Annotated[int, "tokens sent to the model"]
    output_tokens: Annotated[int, "tokens of the model's answer"]
    cost_usd: Annotated[float | None, "what the call cost; empty where the price is not known"]
    seconds: Annotated[float | None, "how long the call took"]
    cached: Annotated[bool, "whether an answer of before was used again, which costs nothing"]
    for_day: Annotated[date | None, "the day that the call was made for"]
    asked_at: Annotated[datetime, "when the call was made, UTC"]
    state: Annotated[Name, "reserved (under way or killed; counts in full), done or failed"]
    error: Annotated[str | None, "why the call failed"]
