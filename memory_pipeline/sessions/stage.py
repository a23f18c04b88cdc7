"""A day's rows of `sessions`, `messages` and `windows`, from the session files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, Self

import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.schemas import TABLES
from memory_pipeline.sessions.catalogue import Catalogue, Refresh
from memory_pipeline.sessions.discovery import find_files, roots
from memory_pipeline.sessions.model import ParsedSession
from memory_pipeline.sessions.windows import Window, cut_windows, reason_not_observed, windows_by_day
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
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
        seen: set[str] = set()
        reread = {path for path in self.catalogue.present if not self.catalogue.is_unreadable(path)}
        for path in self.catalogue.files_of(day):
            session = self.catalogue.session(path) if path in self.catalogue.present else None
            if session is None:
                reread.discard(path)
                continue
            idle = self.catalogue.is_idle(path, self.now)
            _add_session(rows, session, path, day, seen, self.settings, idle=idle)
        kept = _kept_rows(self.lake, day, reread, seen)
        return {name: pl.concat([pl.DataFrame(rows[name], schema=TABLES[name].columns), kept[name]]) for name in NAMES}


def _add_session(
    rows: dict[str, list[dict[str, Any]]],
    session: ParsedSession,
    path: str,
    day: date,
    seen: set[str],
    settings: Settings,
    *,
    idle: bool,
) -> None:
    """Append what this session adds to the day; messages that another file already gave are left out."""
    of_day = [m for w in windows_by_day(session, settings.zone).get(day, []) for m in w.messages]
    messages = sorted((m for m in of_day if m.message_id not in seen), key=lambda m: (m.said_at, m.line))
    if not messages:
        return
    seen.update(m.message_id for m in messages)
    windows = cut_windows(session, messages, settings.zone)
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
    for window in windows:
        reason = reason_not_observed(window, idle=idle, min_user_messages=settings.min_user_messages)
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


def _kept_rows(lake: Lake, day: date, reread: set[str], seen: set[str]) -> dict[str, pl.DataFrame]:
    """The day's stored rows that come from files which were not read again."""
    messages = lake.read("messages", [day]).filter(
        ~pl.col("source_file").is_in(list(reread)) & ~pl.col("message_id").is_in(list(seen))
    )
    keys = messages["dedupe_key"].unique().to_list()
    files = messages["source_file"].unique().to_list()
    return {
        "messages": messages,
        "windows": lake.read("windows", [day]).filter(pl.col("dedupe_key").is_in(keys)),
        "sessions": lake.read("sessions", [day]).filter(pl.col("source_file").is_in(files)),
    }
