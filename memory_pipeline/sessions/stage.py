"""The stage that writes a day's rows of `sessions`, `messages` and `windows` from the session files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import groupby
from operator import attrgetter
from typing import Self, cast

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.harnesses.model import Message, ParsedSession
from memory_pipeline.lake.rows import MessageRow, SessionRow, WindowRow
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.sessions.catalogue import Catalogue, Refresh
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.projects import place_of
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.retained import RetainedRows
from memory_pipeline.sessions.windows import Window, cut_windows, is_too_few, reason_not_observed
from memory_pipeline.stages import Built
from memory_pipeline.text.dates import instead_of_clock
from memory_pipeline.workspace.workspace import Workspace

NAMES = ("sessions", "messages", "windows")
WINDOW_VERSION = 3
"""The version of the columns of a window."""

Frames = dict[str, list[pl.DataFrame]]
MessagesByFile = dict[str, tuple[Message, str]]
"""Messages by their id, each with the key of its file."""


class SessionsStage:
    """The stage that reads the session files that touch a day. `now` determines which sessions are idle."""

    tables = NAMES

    def __init__(self, workspace: Workspace, catalogue: Catalogue, now: datetime) -> None:
        self.settings, self.lake, self.catalogue, self.now = workspace.settings, workspace.lake, catalogue, now

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        """A stage with the stored catalogue."""
        return cls(workspace, Catalogue(workspace.lake, workspace.settings), datetime.now(UTC))

    def look(self) -> Refresh:
        """Refresh the catalogue from the session directories."""
        return self.catalogue.refresh(find_sources(roots(self.settings)))

    def days_read(self, day: date) -> list[date]:
        return [day]

    def is_owned_elsewhere(self, day: date) -> bool:
        """Whether only other machines have files of the day, whose rows must not be changed."""
        files = self.catalogue.files_of(day)
        return bool(files) and not any(map(self.catalogue.is_of_this_machine, files))

    def fingerprint(self, day: date) -> str:
        return self.catalogue.fingerprint(day, self.now)

    def build(self, day: date) -> Built:
        """The day's tables: the current contents of the files, and stored messages that no file has any more. Harnesses
        delete old transcripts, but the messages are kept. Sessions are read one at a time, as a busy team's day does
        not fit into memory."""
        return self._build(day, lost=set())

    def _build(self, day: date, lost: set[str]) -> Built:
        """Build the day without the files in ``lost``, which became unreadable: the day is then incomplete."""
        known, stored = self.catalogue, {name: self.lake.version(name, day) for name in NAMES}
        files = [key for key in self._files_in_order(day) if key not in lost and known.is_readable(key)]
        kept = RetainedRows(self.lake, day, known, self.settings, self.now)
        # an earlier fork has copies of the messages of an excluded session
        seen = set(kept.ids_without(files)) | self._message_ids(filter(known.is_excluded, known.files_of(day)))
        frames: Frames = {name: [frame] for name, frame in kept.without(files).items()}
        # a message withdrawn in one session may continue in a fork of it
        has_voided = any(known.files_of(day)[key]["voided"] for key in files)
        active = self._message_ids(files, is_voided=False) if has_voided else set()
        has_all = not lost
        for _, keys in groupby(files, key=lambda key: str(known.rows[key]["session_id"])):
            read = {key: known.session(key) for key in keys}
            if gone := {key for key, session in read.items() if session is None}:
                return self._build(day, lost | gone)  # deleted or blocked meanwhile
            present = [(key, s) for key, s in read.items() if s]
            has_all = self._add_session(frames, kept, day, present, seen, active) and has_all
        made = {name: pl.concat(frames[name]) for name in NAMES}
        has_all = has_all and known.waiting(day) <= set(made["messages"]["session_id"])
        return Built(made, is_complete=has_all, replaces=stored)

    def _add_session(
        self,
        frames: Frames,
        kept: RetainedRows,
        day: date,
        read: list[tuple[str, ParsedSession]],
        seen: set[str],
        active: set[str],
    ) -> bool:
        """Append a session with the contents of all its files, longest first, and its retained rows. False if it is
        unknown what the session repeats of others."""
        said: MessagesByFile = {}
        has_all = True
        files = [key for key, _ in read]
        read = list(zip(files, kept.under_stored_ids([session for _, session in read]), strict=True))
        for key, session in read:
            repeated = self.catalogue.repeated(session)
            has_all = has_all and repeated is not None
            repeats = session.inherited if repeated is None else repeated
            for message in self._new_messages(session, day, seen | repeats, active):
                other, _ = said.get(message.message_id, (None, ""))
                if other is None or (other.voided and not message.voided):
                    said[message.message_id] = message, key
        session = read[0][1]
        for message, key in kept.messages_of([session for _, session in read], files):
            if message.message_id not in seen:
                said.setdefault(message.message_id, (message, key))
        seen.update(said)
        if said:
            for name, frame in self._rows(dict(read), session, day, said).items():
                frames[name].append(frame)
        return has_all

    def _new_messages(self, session: ParsedSession, day: date, seen: set[str], active: set[str]) -> Iterator[Message]:
        """The messages of the session on the day that no earlier session has."""
        for message in session.messages:
            if (
                message.message_id not in seen
                and day_of(message.said_at, self.settings.zone) == day
                and not (message.voided and message.message_id in active)
            ):
                yield message

    def _message_ids(self, files: Iterable[str], *, is_voided: bool = True) -> set[str]:
        """Ids of the messages in the files, with or without voided ones."""
        sessions = filter(None, map(self.catalogue.session, files))
        return {m.message_id for session in sessions for m in session.messages if is_voided or not m.voided}

    def _files_in_order(self, day: date) -> list[str]:
        """The day's files by session, the longest of several copies first, so that the others add nothing. Shared
        messages belong to the oldest session, so that a fork takes nothing from its original; if that is unknown, to
        the one that already has them in the tables."""
        files = {key: self.catalogue.rows[key] for key in self.catalogue.files_of(day)}
        stored = self.lake.read("sessions", [day], ["session_id", "started_at"])
        since = dict(stored.group_by("session_id").agg(pl.col("started_at").min()).iter_rows())
        ages: dict[str | None, tuple[datetime, bool, datetime, str]] = {}
        for key, row in sorted(files.items()):
            known = since.get(row["session_id"])
            last = cast("datetime", row["last_said_at"])  # who speaks on a day has spoken
            age = (row["began_at"] or last, known is None, known or last, key)
            ages[row["session_id"]] = min(age, ages.get(row["session_id"], age))
        return sorted(files, key=lambda key: (ages[files[key]["session_id"]], -files[key]["messages"], key))

    def _rows(
        self, read: dict[str, ParsedSession], session: ParsedSession, day: date, said: MessagesByFile
    ) -> dict[str, pl.DataFrame]:
        """The rows of one session for the day."""
        sessions: list[SessionRow] = []
        windows: list[WindowRow] = []
        rows: list[MessageRow] = []
        source = {message_id: key for message_id, (_, key) in said.items()}
        messages = sorted((message for message, _ in said.values()), key=attrgetter("said_at", "line"))
        for key in dict.fromkeys(source.values()):
            own = [m for m in messages if source[m.message_id] == key]
            source_session = read.get(key, session)
            place = self.catalogue.place(key) if key in self.catalogue.rows else place_of(source_session)
            project = self.catalogue.projects.of(place)
            sessions.append(_session_row(source_session, key, day, own, project))
        idle = all(self.catalogue.is_idle(key, day, self.now) for key in read)
        cut = cut_windows(session, messages, self.settings.zone)
        typed = max(self.catalogue.typed(session.session_id), sum(window.user_messages for window in cut))
        least, has_plan = self.settings.min_user_messages, self.catalogue.begins_with_plan(session.session_id)
        for window in cut:
            reason = reason_not_observed(window, idle=idle, typed=typed, min_user_messages=least, has_plan=has_plan)
            windows.append(_window_row(window, reason))
            rows.extend(_message_rows(window, source))
        return {
            "sessions": pl.DataFrame(sessions, schema=TABLES["sessions"].columns),
            "messages": pl.DataFrame(rows, schema=TABLES["messages"].columns),
            "windows": pl.DataFrame(windows, schema=TABLES["windows"].columns),
        }


def _session_row(
    session: ParsedSession, key: str, day: date, messages: list[Message], project: str | None
) -> SessionRow:
    return {
        "day": day,
        "session_id": session.session_id,
        "harness": session.harness,
        "name": session.name,
        "cwd": session.cwd,
        "source_file": key,
        "started_at": messages[0].said_at,
        "ended_at": messages[-1].said_at,
        "messages": len(messages),
        "user_messages": sum(m.role == "user" and not m.voided for m in messages),
        "files_read": list(session.files_read),
        "files_modified": list(session.files_modified),
        "project": project,
    }


def _window_row(window: Window, reason: str | None) -> WindowRow:
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
        "untimed": _untimed(window.messages[0]),
        "rules_only": is_too_few(reason),
    }


def _untimed(message: Message) -> str | None:
    return None if message.is_timed else instead_of_clock(message.line)


def _message_rows(window: Window, source: dict[str, str]) -> Iterable[MessageRow]:
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
            "source_file": source[m.message_id],
            "source_line": m.line,
            "dedupe_key": window.dedupe_key,
            "voided": m.voided,
            "quoted": [{"start": start, "end": end} for start, end in quoted],
            "images": [{"line": i.line, "block": i.block, "media_type": i.media_type} for i in m.images],
            "untimed": _untimed(m),
            "answer_to": m.answer_to,
            "answered": m.answered,
        }
