"""A day's rows of `sessions`, `messages` and `windows`, from the session files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Self

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake import Lake
from memory_pipeline.schemas import TABLES
from memory_pipeline.sessions.catalogue import Catalogue, Refresh
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.model import Message, ParsedSession
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.windows import STILL_ACTIVE, Window, cut_windows, reason_not_observed, too_few
from memory_pipeline.settings import Settings

NAMES = ("sessions", "messages", "windows")
WINDOW_VERSION = 1
"""Of what the columns of a window mean."""


class SessionsStage:
    """Reads the session files that touch a day. `now` decides which sessions are idle."""

    tables = NAMES
    is_complete = True

    def __init__(self, settings: Settings, lake: Lake, catalogue: Catalogue, now: datetime) -> None:
        self.settings, self.lake, self.catalogue, self.now = settings, lake, catalogue, now

    @classmethod
    def of(cls, settings: Settings, lake: Lake) -> Self:
        """With what the stored catalogue knows, as of now."""
        return cls(settings, lake, Catalogue(lake, settings), datetime.now(UTC))

    def look(self) -> Refresh:
        """Bring the catalogue up to date with the session directories."""
        return self.catalogue.refresh(find_sources(roots(self.settings)))

    def fingerprint(self, day: date) -> str:
        return self.catalogue.fingerprint(day, self.now)

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        """The day's tables, with what is kept of files that are not there (any more).

        Harnesses delete old transcripts and a run may look at other directories than the one before:
        rows of a file that this run cannot see stay as they are.
        """
        return self._build(day, unreadable=set())

    def _build(self, day: date, unreadable: set[str]) -> dict[str, pl.DataFrame]:
        """One session at a time: a day of a busy team has more than fits into memory at once."""
        known = self.catalogue
        readable = {key for key in known.present if not known.is_unreadable(key)} - unreadable
        files = [key for key in self._in_order(day) if key in readable and not known.is_excluded(key)]
        longest = {known.rows[key]["session_id"]: known.messages_of(key, day) for key in reversed(files)}
        kept = _kept_rows(self.lake, day, readable, longest, self._excluded_sessions())
        kept["windows"] = self._decided(kept, day)
        seen = set(kept["messages"]["message_id"])
        frames = {name: [kept[name]] for name in NAMES}
        for key in files:
            session = known.session(key)
            if session is None:  # it went away since it was looked at
                return self._build(day, unreadable | {key})
            new = self._new_messages(session, day, seen)
            if any(m.voided for m in new):
                standing = self._standing_elsewhere(files, key)
                new = [m for m in new if not m.voided or m.message_id not in standing]
            seen.update(m.message_id for m in new)
            if new and not session.excluded:
                for name, rows in self._rows(session, key, day, new).items():
                    frames[name].append(pl.DataFrame(rows, schema=TABLES[name].columns))
        return {name: pl.concat(frames[name]) for name in NAMES}

    def _decided(self, kept: Mapping[str, pl.DataFrame], day: date) -> pl.DataFrame:
        """The kept windows. Of a file that went away while its session was active nothing more will come."""
        rows, least = self.catalogue.rows, self.settings.min_user_messages
        files = [key for key in kept["messages"]["source_file"].unique() if key in rows and rows[key]["session_id"]]
        active = [key for key in files if not self.catalogue.is_idle(key, day, self.now)]
        ended = kept["messages"].filter(~pl.col("source_file").is_in(active))["dedupe_key"].unique().to_list()
        waited = (pl.col("reason") == STILL_ACTIVE) & pl.col("dedupe_key").is_in(ended)
        decided = pl.when(pl.col("user_messages") < least).then(pl.lit(too_few(least)))
        reason = pl.when(waited).then(decided).otherwise(pl.col("reason"))
        return kept["windows"].with_columns(reason=reason, observed=reason.is_null())

    def _new_messages(self, session: ParsedSession, day: date, seen: Container[str]) -> list[Message]:
        """The session's messages of the day that no other file has, in the order in which they were said."""
        inherited = session.inherited if self.catalogue.has_parent(session) else frozenset()
        return [
            m
            for m in session.messages
            if day_of(m.said_at, self.settings.zone) == day
            and m.message_id not in seen
            and m.message_id not in inherited
        ]

    def _standing_elsewhere(self, files: list[str], key: str) -> set[str]:
        """Ids of messages that other files of the day have and that stand there: a turn that was taken back in one
        session may go on in a fork of it.
        """
        harness = self.catalogue.rows[key]["harness"]
        others = [other for other in files if other != key and self.catalogue.rows[other]["harness"] == harness]
        sessions = [session for other in others if (session := self.catalogue.session(other))]
        return {m.message_id for session in sessions for m in session.messages if not m.voided}

    def _in_order(self, day: date) -> list[str]:
        """The day's files, of several copies of one session the longest first: the others then add nothing."""
        files = {key: self.catalogue.rows[key] for key in self.catalogue.files_of(day)}
        first = {row["session_id"]: key for key, row in sorted(files.items(), reverse=True)}
        return sorted(files, key=lambda key: (first[files[key]["session_id"]], -files[key]["messages"], key))

    def _excluded_sessions(self) -> list[str]:
        return [row["session_id"] for row in self.catalogue.rows.values() if row["excluded"]]

    def _rows(
        self, session: ParsedSession, key: str, day: date, messages: list[Message]
    ) -> dict[str, list[dict[str, Any]]]:
        """What this file adds to the day."""
        standing = [m for m in messages if not m.voided]
        own = {
            "day": day,
            "session_id": session.session_id,
            "harness": session.harness,
            "name": session.name,
            "cwd": session.cwd,
            "source_file": key,
            "started_at": messages[0].said_at,
            "ended_at": messages[-1].said_at,
            "messages": len(messages),
            "user_messages": sum(m.role == "user" for m in standing),
            "files_read": list(session.files_read),
            "files_modified": list(session.files_modified),
        }
        rows: dict[str, list[dict[str, Any]]] = {"sessions": [own], "messages": [], "windows": []}
        idle = self.catalogue.is_idle(key, day, self.now)
        for window in cut_windows(session, messages, self.settings.zone):
            reason = reason_not_observed(window, idle=idle, min_user_messages=self.settings.min_user_messages)
            rows["windows"].append(_window_row(window, reason))
            rows["messages"].extend(_message_rows(window, key))
        return rows


def _window_row(window: Window, reason: str | None) -> dict[str, Any]:
    return {
        "day": window.day,
        "dedupe_key": window.dedupe_key,
        "session_id": window.session_id,
        "trigger": window.trigger,
        "started_at": window.messages[0].said_at,
        "ended_at": window.messages[-1].said_at,
        "captured_at": window.captured_at,
        "messages": len(window.messages),
        "user_messages": window.user_messages,
        "tokens": window.tokens,
        "tokens_said": window.tokens_said,
        "tokens_before": window.compaction.tokens_before if window.compaction else None,
        "files_read": window.files_read,
        "files_modified": window.files_modified,
        "observed": reason is None,
        "reason": reason,
        "current_task": window.current_task,
        "suggested_response": window.suggested_response,
        "schema_version": WINDOW_VERSION,
    }


def _message_rows(window: Window, key: str) -> Iterable[dict[str, Any]]:
    for m in window.messages:
        quoted = quoted_spans(m.text) if m.role == "user" else []
        yield {
            "day": window.day,
            "session_id": window.session_id,
            "message_id": m.message_id,
            "role": m.role,
            "said_at": m.said_at,
            "written_at": m.written_at,
            "text": m.text,
            "tool_name": m.tool_name,
            "is_error": m.is_error,
            "source_file": key,
            "source_line": m.line,
            "dedupe_key": window.dedupe_key,
            "voided": m.voided,
            "quoted": [{"start": start, "end": end} for start, end in quoted],
            "images": [image._asdict() for image in m.images],
        }


def _kept_rows(
    lake: Lake, day: date, readable: set[str], live: Mapping[str, int], excluded: list[str]
) -> dict[str, pl.DataFrame]:
    """The day's stored rows from files that cannot be read now, unless a live file has as much of their session.

    `live` has the messages of the day by session. Of a session that may not be stored any more nothing is kept.
    """
    stored = lake.read("messages", [day]).filter(
        ~pl.col("source_file").is_in(list(readable)), ~pl.col("session_id").is_in(excluded)
    )
    counts = dict(stored.group_by("session_id").len().iter_rows())
    gone = [session for session, count in counts.items() if live.get(session, 0) < count]
    messages = stored.filter(pl.col("session_id").is_in(gone))
    keys, files = messages["dedupe_key"].unique().to_list(), messages["source_file"].unique().to_list()
    return {
        "messages": messages,
        "windows": lake.read("windows", [day]).filter(pl.col("dedupe_key").is_in(keys)),
        "sessions": lake.read("sessions", [day]).filter(pl.col("source_file").is_in(files)),
    }
