"""A day's rows of `sessions`, `messages` and `windows`, from the session files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Self

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake import Lake
from memory_pipeline.schemas import TABLES
from memory_pipeline.sessions.catalogue import Catalogue, Refresh
from memory_pipeline.sessions.discovery import find_files, roots
from memory_pipeline.sessions.model import Message, ParsedSession
from memory_pipeline.sessions.windows import Window, cut_windows, reason_not_observed
from memory_pipeline.settings import Settings

NAMES = ("sessions", "messages", "windows")


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
        return self.catalogue.refresh(find_files(roots(self.settings)))

    def fingerprint(self, day: date) -> str:
        return self.catalogue.fingerprint(day, self.now)

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        """The day's tables, with what is kept of files that are not there (any more).

        Harnesses delete old transcripts and a run may look at other directories than the one before:
        rows of a file that this run cannot see stay as they are.
        """
        readable = {path for path in self.catalogue.present if not self.catalogue.is_unreadable(path)}
        live: dict[str, ParsedSession] = {}
        for path in self._in_order(day):
            session = self.catalogue.session(path) if path in readable else None
            if session:
                live[path] = session
            else:
                readable.discard(path)
        longest = {s.session_id: len(self._of_day(s, day)) for s in reversed(live.values())}
        kept = _kept_rows(self.lake, day, readable, longest)
        seen = set(kept["messages"]["message_id"])
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
        for path, session in live.items():
            new = [m for m in self._of_day(session, day) if m.message_id not in seen]
            seen.update(m.message_id for m in new)
            if new:
                self._add(rows, session, path, day, new)
        return {name: pl.concat([pl.DataFrame(rows[name], schema=TABLES[name].columns), kept[name]]) for name in NAMES}

    def _of_day(self, session: ParsedSession, day: date) -> list[Message]:
        """The session's messages of the day, in the order in which they were said."""
        return [m for m in session.messages if day_of(m.said_at, self.settings.zone) == day]

    def _in_order(self, day: date) -> list[str]:
        """The day's files, of several copies of one session the longest first: the others then add nothing."""
        files = {path: self.catalogue.rows[path] for path in self.catalogue.files_of(day)}
        first = {row["session_id"]: path for path, row in sorted(files.items(), reverse=True)}
        return sorted(files, key=lambda path: (first[files[path]["session_id"]], -files[path]["messages"], path))

    def _add(
        self,
        rows: dict[str, list[dict[str, Any]]],
        session: ParsedSession,
        path: str,
        day: date,
        messages: list[Message],
    ) -> None:
        """Append what this file adds to the day."""
        rows["sessions"].append(
            {
                "day": day,
                "session_id": session.session_id,
                "harness": session.harness,
                "name": session.name,
                "cwd": session.cwd,
                "source_file": path,
                "started_at": messages[0].said_at,
                "ended_at": messages[-1].said_at,
                "messages": len(messages),
                "user_messages": sum(m.role == "user" for m in messages),
                "files_read": list(session.files_read),
                "files_modified": list(session.files_modified),
            }
        )
        idle = self.catalogue.is_idle(path, day, self.now)
        for window in cut_windows(session, messages, self.settings.zone):
            reason = reason_not_observed(window, idle=idle, min_user_messages=self.settings.min_user_messages)
            rows["windows"].append(_window_row(window, reason))
            rows["messages"].extend(_message_rows(window, path))


def _window_row(window: Window, reason: str | None) -> dict[str, Any]:
    return {
        "day": window.day,
        "dedupe_key": window.dedupe_key,
        "session_id": window.session_id,
        "trigger": window.trigger,
        "started_at": window.messages[0].said_at,
        "messages": len(window.messages),
        "user_messages": window.user_messages,
        "tokens": window.tokens,
        "tokens_said": window.tokens_said,
        "observed": reason is None,
        "reason": reason,
        "current_task": window.current_task,
        "suggested_response": window.suggested_response,
    }


def _message_rows(window: Window, path: str) -> Iterable[dict[str, Any]]:
    for m in window.messages:
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
            "source_file": path,
            "source_line": m.line,
            "dedupe_key": window.dedupe_key,
        }


def _kept_rows(lake: Lake, day: date, readable: set[str], live: Mapping[str, int]) -> dict[str, pl.DataFrame]:
    """The day's stored rows from files that cannot be read now, unless a live file has as much of their session.

    `live` has the messages of the day by session.
    """
    stored = lake.read("messages", [day]).filter(~pl.col("source_file").is_in(list(readable)))
    counts = dict(stored.group_by("session_id").len().iter_rows())
    gone = [session for session, count in counts.items() if live.get(session, 0) < count]
    messages = stored.filter(pl.col("session_id").is_in(gone))
    keys, files = messages["dedupe_key"].unique().to_list(), messages["source_file"].unique().to_list()
    return {
        "messages": messages,
        "windows": lake.read("windows", [day]).filter(pl.col("dedupe_key").is_in(keys)),
        "sessions": lake.read("sessions", [day]).filter(pl.col("source_file").is_in(files)),
    }
