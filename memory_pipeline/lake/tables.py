"""The row schema of every table: what one row is, its columns and types.

Times are UTC, `day` is the local calendar day, ids are strings, `start` and `end` are character offsets
into `messages.text`. Columns are added, never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

UTC_TIME = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String())
SPANS = pl.List(pl.Struct({"start": pl.Int64(), "end": pl.Int64()}))
IMAGES = pl.List(pl.Struct({"line": pl.Int64(), "block": pl.Int64(), "media_type": pl.String()}))
EVIDENCE = pl.List(pl.Struct({"message_id": pl.String(), "start": pl.Int64(), "end": pl.Int64()}))

DISTILLATION: dict[str, pl.DataType] = {
    "day": pl.Date(),
    "distillation_id": pl.String(),
    "level": pl.Int64(),
    "text": pl.String(),
    "kind": pl.String(),
    "priority": pl.String(),
    "sources": TEXTS,
    "first_seen": UTC_TIME,
    "last_seen": UTC_TIME,
    "tokens": pl.Int64(),
    "projects": TEXTS,
}


@dataclass(frozen=True)
class Table:
    """A table of the lake. `daily` tables have one file per day, the others one file in all."""

    row: str
    columns: dict[str, pl.DataType]
    order: tuple[str, ...]
    """Columns that rows are sorted by before they are written, so that equal rows are equal bytes."""
    daily: bool = True
    is_derived: bool = True
    """Whether the rows can be made again from the session files."""

    @property
    def fix(self) -> str:
        """What to do when a file of the table cannot be read."""
        if self.is_derived:
            return "Delete it and run `memory run --all`: it is made again from the session files."
        return (
            "No version of it in backups/lake can be read either. Put a copy of it back; it holds what was offered, "
            "decided or spent and cannot be made again."
        )


TABLES: dict[str, Table] = {
    "files": Table(
        "a session file as it was last looked at, read or not",
        {
            "path": pl.String(),
            "member": pl.String(),
            "harness": pl.String(),
            "session_id": pl.String(),
            "size": pl.Int64(),
            "modified_ns": pl.Int64(),
            "reader": pl.String(),
            "last_said_at": UTC_TIME,
            "began_at": UTC_TIME,
            "messages": pl.Int64(),
            "records": pl.Int64(),
            "unknown_records": pl.List(pl.Struct({"type": pl.String(), "count": pl.Int64()})),
            "problems": pl.List(pl.Struct({"line": pl.Int64(), "reason": pl.String()})),
            "days": pl.List(
                pl.Struct(
                    {"day": pl.Date(), "digest": pl.String()}
                    | dict.fromkeys(("messages", "inherited", "voided"), pl.Int64())
                    | {"typed": TEXTS}
                )
            ),
            "parent_id": pl.String(),
            "reason": pl.String(),
            "excluded": pl.String(),
            "cwd": pl.String(),
            "branch": pl.String(),
            "repository": pl.String(),
            "hidden_characters": pl.Int64(),
        },
        ("path",),
        daily=False,
    ),
    "sessions": Table(
        "a session on a day",
        {
            "day": pl.Date(),
            "session_id": pl.String(),
            "harness": pl.String(),
            "name": pl.String(),
            "cwd": pl.String(),
            "source_file": pl.String(),
            "started_at": UTC_TIME,
            "ended_at": UTC_TIME,
            "messages": pl.Int64(),
            "user_messages": pl.Int64(),
            "files_read": TEXTS,
            "files_modified": TEXTS,
            "project": pl.String(),
        },
        ("started_at", "session_id", "source_file"),
    ),
    "messages": Table(
        "one message",
        {
            "day": pl.Date(),
            "session_id": pl.String(),
            "message_id": pl.String(),
            "role": pl.String(),
            "said_at": UTC_TIME,
            "written_at": UTC_TIME,
            "text": pl.String(),
            "tool_name": pl.String(),
            "is_error": pl.Boolean(),
            "source_file": pl.String(),
            "source_line": pl.Int64(),
            "dedupe_key": pl.String(),
            "voided": pl.Boolean(),
            "quoted": SPANS,
            "images": IMAGES,
            "untimed": pl.String(),
            "answer_to": pl.String(),
            "answered": pl.String(),
        },
        ("session_id", "said_at", "source_line", "message_id"),
    ),
    "windows": Table(
        "the messages of one session and day that are observed together",
        {
            "day": pl.Date(),
            "dedupe_key": pl.String(),
            "session_id": pl.String(),
            "trigger": pl.String(),
            "started_at": UTC_TIME,
            "messages": pl.Int64(),
            "user_messages": pl.Int64(),
            "tokens": pl.Int64(),
            "tokens_said": pl.Int64(),
            "observed": pl.Boolean(),
            "reason": pl.String(),
            "current_task": pl.String(),
            "suggested_response": pl.String(),
            "ended_at": UTC_TIME,
            "captured_at": UTC_TIME,
            "tokens_before": pl.Int64(),
            "files_read": TEXTS,
            "files_modified": TEXTS,
            "schema_version": pl.Int64(),
            "untimed": pl.String(),
            "rules_only": pl.Boolean(),
        },
        ("started_at", "dedupe_key"),
    ),
    "segments": Table(
        "a topic within a window, with what was asked, done and reached",
        {
            "day": pl.Date(),
            "segment_id": pl.String(),
            "dedupe_key": pl.String(),
            "session_id": pl.String(),
            "position": pl.Int64(),
            "narrative": pl.String(),
            "first_message_id": pl.String(),
            "last_message_id": pl.String(),
            "title": pl.String(),
            "observer": pl.String(),
            "parsed": pl.Boolean(),
            "problem": pl.String(),
            "answer": pl.String(),
            "current_task": pl.String(),
            "suggested_response": pl.String(),
            "used": TEXTS,
            "basis": pl.String(),
            "times_written": pl.Int64(),
            "times_invented": pl.Int64(),
        },
        ("dedupe_key", "position"),
    ),
    "observations": Table(
        "one fact, with the words that carry it",
        {
            "day": pl.Date(),
            "observation_id": pl.String(),
            "segment_id": pl.String(),
            "dedupe_key": pl.String(),
            "session_id": pl.String(),
            "priority": pl.String(),
            "kind": pl.String(),
            "observed_at": UTC_TIME,
            "referenced_at": UTC_TIME,
            "text": pl.String(),
            "evidence": EVIDENCE,
            "observer": pl.String(),
            "trust": pl.String(),
            "flags": TEXTS,
            "tokens": pl.Int64(),
            "trace": pl.String(),
            "untimed": pl.String(),
            "cwd": pl.String(),
            "project": pl.String(),
            "owner": pl.String(),
        },
        ("observed_at", "observation_id"),
    ),
    "notes": Table(
        "a paragraph or list item that a user wrote into the day's log by hand",
        {
            "day": pl.Date(),
            "note_id": pl.String(),
            "line": pl.Int64(),
            "text": pl.String(),
            "kind": pl.String(),
            "priority": pl.String(),
            "source_file": pl.String(),
        },
        ("line", "note_id"),
    ),
    "embeddings": Table(
        "the record of one vector in the index",
        {
            "day": pl.Date(),
            "point_id": pl.String(),
            "kind": pl.String(),
            "source_id": pl.String(),
            "model": pl.String(),
            "dimension": pl.Int64(),
            "content_hash": pl.String(),
        },
        ("source_id",),
    ),
    "reflections": Table(
        "one condensed line, at a level (1 = from observations)",
        {
            "day": pl.Date(),
            "reflection_id": pl.String(),
            "level": pl.Int64(),
            "section": pl.String(),
            "text": pl.String(),
            "priority": pl.String(),
            "kind": pl.String(),
            "support": pl.Int64(),
            "sessions": pl.Int64(),
            "sources": TEXTS,
            "first_seen": UTC_TIME,
            "last_seen": UTC_TIME,
            "input_tokens": pl.Int64(),
            "tokens": pl.Int64(),
            "reflector": pl.String(),
            "item_type": pl.String(),
            "trust": pl.String(),
            "superseded": TEXTS,
            "tags": TEXTS,
            "contradicts": TEXTS,
            "summary": pl.String(),
            "cwds": TEXTS,
            "projects": TEXTS,
            "owner": pl.String(),
        },
        ("reflection_id",),
    ),
    "pool_reflections": Table(
        "lines of many days, condensed once and for all",
        {
            "pool_id": pl.String(),
            "section": pl.String(),
            "text": pl.String(),
            "priority": pl.String(),
            "support": pl.Int64(),
            "sources": TEXTS,
            "observations": TEXTS,
            "left_out": TEXTS,
            "first_seen": UTC_TIME,
            "last_seen": UTC_TIME,
            "tokens": pl.Int64(),
            "reflector": pl.String(),
            "reflected_at": UTC_TIME,
            "cwds": TEXTS,
            "projects": TEXTS,
            "owner": pl.String(),
        },
        ("reflected_at", "pool_id"),
        daily=False,
        is_derived=False,
    ),
    "day_distillations": Table(
        "a line that a day comes down to once it is some days old", DISTILLATION, ("first_seen", "distillation_id")
    ),
    "week_distillations": Table(
        "a line that a week, which ends with `day`, comes down to", DISTILLATION, ("first_seen", "distillation_id")
    ),
    "month_distillations": Table(
        "a line that the weeks that end in a month come down to", DISTILLATION, ("first_seen", "distillation_id")
    ),
    "proposals": Table(
        "one line offered for MEMORY.md; never changed once made",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "section": pl.String(),
            "text": pl.String(),
            "priority": pl.String(),
            "sources": TEXTS,
            "support": pl.Int64(),
            "content_hash": pl.String(),
            "evidence": EVIDENCE,
            "sessions": pl.Int64(),
            "session_ids": TEXTS,
            "last_seen": UTC_TIME,
            "supersedes": TEXTS,
            "worth": pl.Float64(),
            "cwds": TEXTS,
            "projects": TEXTS,
            "owner": pl.String(),
        },
        ("proposal_id",),
        is_derived=False,
    ),
    "supports": Table(
        "a line of a later reflection that says what a proposal says, merged into it instead of offered again",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "reflection_id": pl.String(),
            "sessions": pl.Int64(),
            "session_ids": TEXTS,
            "said_at": UTC_TIME,
            "sources": TEXTS,
            "cwds": TEXTS,
            "projects": TEXTS,
        },
        ("proposal_id", "reflection_id"),
    ),
    "decisions": Table(
        "what became of a proposal, on the day it was decided",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "decision": pl.String(),
            "decided_at": UTC_TIME,
            "surface": pl.String(),
            "section": pl.String(),
            "text": pl.String(),
            "reason": pl.String(),
            "content_hash": pl.String(),
        },
        ("decided_at", "proposal_id"),
        is_derived=False,
    ),
    "showings": Table(
        "a proposal as it was first shown on a surface, and as it came back to REVIEW.md after better ones took its "
        "place",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "surface": pl.String(),
            "shown_at": UTC_TIME,
            "external_id": pl.String(),
            "lines": pl.String(),
        },
        ("proposal_id", "surface"),
        is_derived=False,
    ),
    "displacements": Table(
        "a proposal whose place in REVIEW.md a better one took; it is pending, and its time to expire stands still",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "surface": pl.String(),
            "displaced_at": UTC_TIME,
        },
        ("proposal_id", "displaced_at"),
        is_derived=False,
    ),
    "promotions": Table(
        "an approved proposal that reached MEMORY.md, on the day it did",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "section": pl.String(),
            "text": pl.String(),
            "promoted_at": UTC_TIME,
            "already_there": pl.Boolean(),
        },
        ("proposal_id",),
        is_derived=False,
    ),
    "auto_promotions": Table(
        "a proposal that would have been promoted without asking, when that was first so",
        {
            "day": pl.Date(),
            "proposal_id": pl.String(),
            "section": pl.String(),
            "would_promote_at": UTC_TIME,
            "acceptance": pl.Float64(),
            "lower_bound": pl.Float64(),
            "decisions_counted": pl.Int64(),
        },
        ("proposal_id",),
        is_derived=False,
    ),
    "friction_clusters": Table(
        "one recurring pattern over the days that end with `day`",
        {
            "day": pl.Date(),
            "pattern_id": pl.String(),
            "kind": pl.String(),
            "title": pl.String(),
            "target_file": pl.String(),
            "change": pl.String(),
            "sessions": pl.Int64(),
            "occurrences": pl.Int64(),
            "severity": pl.Float64(),
            "confidence": pl.Float64(),
            "evidence": EVIDENCE,
            "session_ids": TEXTS,
            "cwds": TEXTS,
            "projects": TEXTS,
            "owner": pl.String(),
        },
        ("pattern_id",),
    ),
    "ledger": Table(
        "one call of a language model",
        {
            "day": pl.Date(),
            "call_id": pl.String(),
            "stage": pl.String(),
            "model": pl.String(),
            "input_tokens": pl.Int64(),
            "output_tokens": pl.Int64(),
            "cost_usd": pl.Float64(),
            "seconds": pl.Float64(),
            "cached": pl.Boolean(),
            "for_day": pl.Date(),
            "asked_at": UTC_TIME,
            "state": pl.String(),
            "error": pl.String(),
        },
        ("asked_at", "call_id"),
        is_derived=False,
    ),
}


COLUMN_NOTES = {
    "day": "local calendar day",
    "days": "the days on which something in the file was said, each with a digest of it, counts and the ids of what "
    "the user typed",
    "path": "path of the file; of one that holds several sessions, with `#` and the session",
    "member": "the session, where the file holds several",
    "size": "bytes",
    "modified_ns": "when the file was changed last: nanoseconds since 1970",
    "reader": "version of the reader that read it",
    "began_at": "when the session began, UTC",
    "last_said_at": "when its last message was said, UTC",
    "records": "how many records the file has",
    "unknown_records": "types of record that the reader does not know, with how many there were",
    "problems": "the first lines that could not be read, and why",
    "hidden_characters": "how many characters that nobody sees were taken out of its messages: zero-width ones, those "
    "that turn the direction of writing, tags",
    "harness": "the program that wrote the session: pi, claude_code, codex, opencode or gemini",
    "session_id": "the harness's own id of the session",
    "session_ids": "the sessions in which it was said",
    "sessions": "in how many sessions it was said or happened",
    "name": "title of the session, where the harness has one",
    "cwd": "directory that the session worked in",
    "started_at": "when the first message was said, UTC; only its day is meant where nobody recorded that",
    "ended_at": "when the last message was said, UTC",
    "messages": "how many messages",
    "user_messages": "how many of them a user typed or said through a tool",
    "files_read": "paths that the agent read",
    "files_modified": "paths that the agent wrote to",
    "message_id": "id of the message, the same in every copy of its session",
    "text": "the words",
    "tool_name": "the tool that was called or answered",
    "is_error": "whether the tool failed; a call that the user refused did not",
    "answer_to": "what the user answers through a tool: question, approved or refused plan, approved or refused call; "
    "of a tool's result, that they refused it",
    "answered": "that question, plan or call itself (clipped), where it is known",
    "source_file": "path of the file it was read from",
    "source_line": "line in the session file, from 1",
    "line": "line in the daily log, from 1, when the note was read last",
    "role": "user, assistant, tool or injected",
    "said_at": "when it was said, UTC; where `untimed` says that nobody recorded it, only its day and order are meant",
    "untimed": "where in its session it was said, when nobody recorded at what time; stands in place of a clock",
    "written_at": "when the harness wrote it down, UTC",
    "dedupe_key": "id of the window: sha256 of session, trigger and time of its first entry",
    "trigger": "compaction or shutdown",
    "tokens": "estimated tokens",
    "tokens_said": "estimated tokens of people and the model, without tools",
    "voided": "whether the turn was taken out of the session (rewind, rollback, a branch left); kept, not observed",
    "quoted": "spans of a user's message that were pasted, not typed",
    "images": "images in the message: line and number within the record, for the source file",
    "captured_at": "when the window was complete: at its compaction, or with its last message",
    "tokens_before": "size of the context when it was compacted, as the harness counted it",
    "schema_version": "of the window's columns",
    "excluded": "why nothing of the session is stored",
    "parent_id": "the session that this one continues or forks",
    "observed": "whether the window is observed; if not, `reason` says why",
    "rules_only": "whether only the user's rules and corrections are observed, because the session is short",
    "reason": "why: a file was not read, a window not observed, a proposal decided so",
    "current_task": "what was being worked on at the end: of a window the user's last words that say so, of a segment "
    "what a model reported",
    "suggested_response": "how to go on: the question of the model or the words of the user that wait for an answer, "
    "or that the session was completed",
    "segment_id": "id of the segment",
    "position": "place of the segment in its window, from 0",
    "title": "what it is about, in a few words",
    "first_message_id": "the message that the segment begins with",
    "last_message_id": "the message that it ends with",
    "problem": "what was wrong with the model's answer",
    "narrative": "what was asked and how it ended, quoted or told by a model; empty where a model told facts alone",
    "parsed": "whether the model kept to the format; if not, this is what could be saved and `problem` says why",
    "answer": "key of the model's answer, a file below answers/",
    "basis": "hash of the messages that a model was shown for it and of what decides how; while it holds, they are not "
    "observed again",
    "used": "ids of earlier observations that it builds on",
    "times_written": "clock times that a model wrote into its answer",
    "times_invented": "how many of them are no message's and were not said; they were taken out",
    "for_day": "the day that the call was made for",
    "asked_at": "when the call was made, UTC",
    "call_id": "id of the call",
    "stage": "the stage that asked",
    "model": "the model, of vectors or of language",
    "input_tokens": "tokens that went in: of the observations of the lookback, or sent to the model",
    "output_tokens": "tokens of the model's answer",
    "seconds": "how long the call took",
    "state": "reserved (under way or killed; counts in full), done or failed",
    "error": "why the call failed",
    "cost_usd": "what the call cost; empty where the price is not known",
    "cached": "whether an answer of before was used again, which costs nothing",
    "priority": "high (matters for weeks or months), medium (days) or low (hours)",
    "kind": "what sort of fact, vector or pattern it is",
    "observation_id": "id of the observation",
    "note_id": "id of the note",
    "observed_at": "when it was said, UTC; see `untimed`",
    "referenced_at": "the day that it speaks of, where it names one: its first moment, UTC",
    "evidence": "the spans of the messages that carry it: characters start to end of messages.text",
    "observer": "which observer made the row",
    "trust": "the speaker: user, assistant, tool, paste, injected or model",
    "flags": "what is known against it, or about how it was made",
    "trace": "what led to it: what set it off → what was looked into → what was decided → why",
    "point_id": "id of the vector in the index",
    "source_id": "id of the row that the vector is of",
    "dimension": "numbers in the vector",
    "content_hash": "sha256 of what it stands for",
    "reflection_id": "id of the reflection",
    "pool_id": "id of the pool reflection",
    "distillation_id": "id of the distilled line",
    "level": "1: from observations (of a distillation: a day), 2: from days (a week), 3: from weeks (a month)",
    "section": "section of MEMORY.md; `Reflected` for what fits none",
    "support": "observations that say it",
    "sources": "ids of the rows it was made from",
    "observations": "ids of the observations that these rows were made from",
    "first_seen": "when it was said first, UTC",
    "last_seen": "when it was said last, UTC",
    "reflector": "which reflector made the row",
    "item_type": "knowledge, behaviour, event or skill",
    "tags": "the things and subjects that a model files it under",
    "contradicts": "lines of MEMORY.md that say something else",
    "summary": "what was new, in a sentence or two of the model; the same in all rows of a day",
    "superseded": "ids of observations that it replaced",
    "left_out": "ids of observations that were looked at with these and not kept",
    "reflected_at": "when it was condensed, UTC",
    "proposal_id": "id of the proposal",
    "worth": "score of the line, by what can be seen in it, from about -2.5 to 2.1: the highest are shown first",
    "supersedes": "ids of the proposals whose line this one replaces once it is approved",
    "decision": "approved, rejected, expired, invalid or superseded",
    "surface": "where it was shown or decided: REVIEW.md, command, todoist; expiry, supersession, auto: by no user",
    "decided_at": "when it was decided, UTC",
    "promoted_at": "when it reached MEMORY.md, UTC",
    "would_promote_at": "when it was first found that it would be promoted without asking, UTC",
    "shown_at": "when it was first shown there, or came back, UTC",
    "lines": "how it stood in REVIEW.md then: a line that still stands so was touched by nobody",
    "displaced_at": "when a better one took its place, UTC",
    "external_id": "what the surface calls it, such as a Todoist task",
    "acceptance": "share of the last decisions on the section that took the line as it was offered",
    "lower_bound": "of the 95 % interval of that share",
    "decisions_counted": "how many decisions that were",
    "already_there": "the line stood in MEMORY.md before",
    "pattern_id": "id of the friction pattern",
    "occurrences": "how often it happened",
    "severity": "occurrences times what one costs a user",
    "confidence": "that it is a pattern and no accident, 0 to 1",
    "project": "the repository or folder that the session worked on, by name; empty where there is none",
    "branch": "branch of the repository when the session began",
    "repository": "owner and name of the repository's remote",
    "cwds": "folders of the sessions that it comes from",
    "projects": "projects that it comes from, each by name",
    "owner": "whose memory it is: the setting `owner` when the row was made",
    "change": "what would end it",
    "target_file": "where the change belongs",
}
"""What every column means, for the UI: one note per name, for all tables that have it."""


def duckdb_type(kind: pl.DataType) -> str:
    """The DuckDB type that reads a column of this type back from Parquet."""
    if isinstance(kind, pl.List):
        return f"{duckdb_type(_instance(kind.inner))}[]"
    if isinstance(kind, pl.Struct):
        return "STRUCT({})".format(", ".join(f'"{f.name}" {duckdb_type(_instance(f.dtype))}' for f in kind.fields))
    names: dict[type[pl.DataType], str] = {
        pl.String: "VARCHAR",
        pl.Int64: "BIGINT",
        pl.Float64: "DOUBLE",
        pl.Boolean: "BOOLEAN",
        pl.Date: "DATE",
        pl.Datetime: "TIMESTAMPTZ",
    }
    return names[type(kind)]


def _instance(kind: object) -> pl.DataType:
    return kind() if isinstance(kind, type) else kind  # type: ignore[return-value]
