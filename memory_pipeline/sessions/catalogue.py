"""The catalogue of all sessions: the days that each touches and the digests of its contents, so that a day opens only
the files that it needs and an unchanged file is not read again.

The catalogue is derived: deleting `lake/files/` costs one reading of all files. Only facts about missing files are
lost: that a session asked not to be stored, and what it was a copy of.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePath
from typing import cast

import polars as pl

from memory_pipeline.days import day_of, today
from memory_pipeline.harnesses.compressed import where_it_lies
from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError, ParsedSession, Source, source_of
from memory_pipeline.lake.rows import FileDayRow, FileRow
from memory_pipeline.lake.store import Lake, fingerprint_of
from memory_pipeline.markdown.safe_write import make_folder
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.sessions.discovery import owner_of_side_file, roots
from memory_pipeline.sessions.file_rows import new_row, read_row, stored, unread_row, write_rows
from memory_pipeline.sessions.forks import left_out, repeats, typed_in_all, withdrawn, without_withdrawn
from memory_pipeline.sessions.projects import Place, Projects
from memory_pipeline.sessions.reading import Readings
from memory_pipeline.sessions.worktrees import repository_of_folder
from memory_pipeline.settings import Settings, keep_first_day, keep_timezone

READER_VERSION = "11"
"""A part of every day's fingerprint. Increase it when the same file would give other rows."""

_READINGS = Readings()


@dataclass(frozen=True)
class Refresh:
    """The result of scanning the directories."""

    files: int
    changed: int
    left: int = 0
    """Changed files that were not read because the time was up; the next refresh reads them."""


def _key(source: Source) -> str:
    """The stored name of the source: tables contain only text that can be encoded."""
    return source.key.encode(errors="backslashreplace").decode()


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)  # noqa: PTH121
    except OSError:
        return False


@dataclass
class Catalogue:
    """The `files` table, and its refresh."""

    lake: Lake
    settings: Settings
    rows: dict[str, FileRow] = field(default_factory=dict)
    present: dict[str, Source] = field(default_factory=dict)
    """The sources found by the last refresh."""
    unsent: set[str] = field(default_factory=set)
    """Keys of rows that a refresh changed but did not store."""

    def __post_init__(self) -> None:
        self.rows = dict(stored(self.lake))

    def _store(self, changed: Collection[str], gone: Collection[str]) -> None:
        keep_timezone(self.settings)
        make_folder(self.settings.lake_dir)
        write_rows(self.lake, self.settings.lake_dir, {key: self.rows[key] for key in changed}, gone)

    def refresh(
        self,
        sources: Iterable[Source],
        *,
        seconds: float | None = None,
        on_file: Callable[[Source], None] | None = None,
        is_stored: bool = True,
    ) -> Refresh:
        """Read new and changed sessions until the time is up, and store the results, unless that is left to `send`.

        A missing file keeps its row, as its messages stay in the tables.
        """
        end = time.monotonic() + seconds if seconds is not None else None
        changed: list[str] = []
        left = 0
        self.present = {}
        self.__dict__.pop("_paths_by_name", None)
        for source in map(self._with_known_path, sources):
            self.present[_key(source)] = source
            if not self._is_stale(source):
                continue
            if end is not None and time.monotonic() > end:
                left += 1
                continue
            self.rows[_key(source)] = self._row(source)
            changed.append(_key(source))
            if on_file:
                on_file(source)
        changed += [key for key in self._void_withdrawn() if key not in changed]
        # nothing was read from these, so there is nothing to keep
        gone = [
            key
            for key, row in self.rows.items()
            if row["reason"] and not row["session_id"] and key not in self.present and self._is_gone(key)
        ]
        for key in gone:
            del self.rows[key]
        filled = self._find_repositories()
        self._clear_cache()
        if not is_stored:
            self.unsent.update(changed, filled)
        elif changed or filled or gone:
            self._store({*changed, *filled}, gone)
        if self._by_day:
            self.settings = keep_first_day(self.settings, list(self._by_day), is_complete=not left)
        return Refresh(len(self.present), len(changed), left)

    def _void_withdrawn(self) -> list[str]:
        """Void the messages of earlier files that later files of the session withdrew. Returns the keys of files whose
        days changed."""
        first = withdrawn(self.rows.values())
        other = [key for key, row in self.rows.items() if row["withdrawn_from"] != first.get(key)]
        affected = {key: source for key in other if (source := self._source(key))}
        for key, source in affected.items():
            self.rows[key] = self.rows[key] | {"withdrawn_from": first.get(key)}
            self.rows[key] = self._row(source)
        return list(affected)

    def send(self, last: date, left: Collection[date] = ()) -> int:
        """Store the rows that a refresh left to this call, up to the day `last`, for files whose days are all in the
        tables. Returns their number. Files with a day in ``left`` stay unsent. Other users of the lake rely on a row
        meaning that its messages are stored, so messages must come first."""

        def is_done(key: str) -> bool:
            days = [entry["day"] for entry in self.rows[key]["days"] or []]
            return all(day <= last and day not in left for day in days)

        done = sorted(filter(is_done, self.unsent))
        if done:
            self._store(done, ())
            self.unsent.difference_update(done)
        return len(done)

    def session(self, key: str) -> ParsedSession | None:
        """The current session; None if it is missing, unreadable, or not a session.

        Stored facts are used even if the last refresh scanned other directories.
        """
        source = self._source(key)
        try:
            return without_withdrawn(self._read(source), self.rows[key]["withdrawn_from"]) if source else None
        except NotASessionError:
            return None

    def _read(self, source: Source) -> ParsedSession:
        return _READINGS.read(source, self.settings.tool_text_limit, self.redactor)

    @cached_property
    def redactor(self) -> Redactor:
        return redactor_of(self.settings)

    def is_of_this_machine(self, key: str) -> bool:
        """Whether the file is, or was, in a directory that this machine reads. With a lake in object storage, files of
        other machines are known too; a file with the same path here is another one."""
        return not self.lake.storage.is_far or key in self.present or key.startswith(self._directories)

    @cached_property
    def _directories(self) -> tuple[str, ...]:
        # a root may be a database, whose sessions are named after a #
        return tuple(f"{root}{mark}" for root in roots(self.settings) for mark in "/#")

    def _source(self, key: str) -> Source | None:
        """The file as found by the last refresh or, if that scanned other directories, as it is now; None if it does
        not exist."""
        return self.present.get(key) or self._known_source(key)

    def _known_source(self, key: str) -> Source | None:
        if not self.is_of_this_machine(key):
            return None
        row = self.rows[key]
        member = row["member"] or ""
        path = where_it_lies(Path(key.removesuffix(f"#{member}") if member else key))
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file() raises where a folder may not be entered
            return None
        if member:  # a file of many sessions: its state is not that of one session
            return Source(str(path), member, row["size"], row["modified_ns"] or 0, row["harness"] or "")
        return source_of(path)._replace(agent=row["harness"] or "")

    def _is_gone(self, key: str) -> bool:
        """Whether the file no longer exists, even outside the directories of the last refresh."""
        source = self._known_source(key)
        is_there = source is not None and all(source.path != other.path for other in self.present.values())
        return self.is_of_this_machine(key) and not is_there

    def is_readable(self, key: str) -> bool:
        """Whether the session exists, regardless of what the last refresh scanned, is readable, and may be stored."""
        return self._source(key) is not None and self.rows[key]["reason"] is None and not self.is_excluded(key)

    def repeated(self, session: ParsedSession) -> frozenset[str] | None:
        """Ids of the messages that repeat another known session, to which they belong. None while that one cannot be
        read.

        If the other session is only in the tables, all copied messages are assumed to be there, except those stored for
        this session.
        """
        if not session.inherited:
            return frozenset()
        key = self._by_session.get((session.harness, session.parent_id))
        parent = self.session(key) if key else None
        if parent is None:
            if self.is_left_out(session.parent_id):
                return session.inherited
            if session.parent_id in self.lake.read("sessions", columns=["session_id"])["session_id"]:
                return session.inherited - self._stored_ids(session)
            return None if key and self.is_readable(key) else frozenset()
        return repeats(session, parent)

    def _stored_ids(self, session: ParsedSession) -> set[str]:
        """Ids of the stored messages of the session."""
        of_session = pl.col("session_id") == session.session_id
        days = self.lake.read("sessions", columns=["day", "session_id"]).filter(of_session)["day"]
        messages = self.lake.read("messages", days, columns=["session_id", "message_id"])
        return set(messages.filter(of_session)["message_id"])

    def waiting(self, day: date) -> set[str]:
        """Ids of the sessions with messages on the day that are currently unreadable."""
        found = set()
        for key, entry in self.files_of(day).items():
            speaks = (entry["messages"] or 0) > (entry["inherited"] or 0)
            is_unreadable = self.rows[key]["modified_ns"] is None and self._source(key) is not None
            if speaks and is_unreadable and not self.is_excluded(key):
                found.add(str(self.rows[key]["session_id"]))
        return found

    def fingerprint(self, day: date, now: datetime) -> str:
        """A hash of everything that determines the day's sessions, messages and windows."""
        least = self.settings.min_user_messages
        files = [
            (
                *(key, entry["digest"], self.is_idle(key, day, now), self.is_excluded(key), self._repeated(key, entry)),
                # not the number: messages of other days matter only once, when the session becomes long enough
                self.is_long(str(self.rows[key]["session_id"])),
                self.projects.of(self.place(key)),
            )
            for key, entry in self.files_of(day).items()
        ]
        return fingerprint_of(self._reader, least, files)

    @cached_property
    def _reader(self) -> str:
        settings = self.settings
        # another salt gives other redaction marks, so everything is read again
        salt = hashlib.sha256(self.redactor.salt).hexdigest()[:8]
        return f"{READER_VERSION}/{settings.timezone}/{settings.tool_text_limit}/{settings.redact}/{salt}"

    def is_to_be_stored(self, source: Source, days: Collection[date], is_stored: Callable[[date], bool]) -> bool:
        """Whether the source in its current state has, or may have, messages on one of these days that are not
        stored."""
        source = self._with_known_path(source)
        row = self.rows.get(_key(source))
        if row is None:
            return owner_of_side_file(source) is None
        if row["reason"] and not row["session_id"]:
            return False
        said_on = (entry["day"] for entry in row["days"] or [])
        return self._is_stale(source) or any(day in days and not is_stored(day) for day in said_on)

    def _find_repositories(self) -> list[str]:
        """Find the repository of each session's worktree, once per session; returns the keys of changed rows. If the
        folder is gone, the result of an earlier session in it is used. Folders of another machine are skipped: the same
        path here is another folder."""
        new = [
            (key, row)
            for key, row in self.rows.items()
            if row["repository_dir"] is None and row["cwd"] and self.is_of_this_machine(key)
        ]
        if not new:
            return []
        found = {cwd: repository_of_folder(cwd) for cwd in {row["cwd"] or "" for _, row in new}}
        looked_up = (row for key, row in self.rows.items() if row["repository_dir"] and self.is_of_this_machine(key))
        known = found | {row["cwd"]: row["repository_dir"] for row in looked_up}
        for key, row in new:
            folder = PurePath(row["cwd"] or "")
            above = (known.get(str(parent)) for parent in (folder, *folder.parents))
            repository = found[row["cwd"] or ""]
            self.rows[key] = row | {
                "repository_dir": next(filter(None, above), "") if repository is None else repository
            }
        return [key for key, _ in new]

    def _with_known_path(self, source: Source) -> Source:
        """The source with the path by which the same file was read before, so that a new or removed link does not
        create new sessions.
        """
        if _key(source) in self.rows:
            return source
        others = self._paths_by_name.get(os.path.basename(source.path), ())  # noqa: PTH119 - of every new file
        known = next((path for path in sorted(others) if _is_same_file(path, source.path)), source.path)
        return source._replace(path=known)

    @cached_property
    def _paths_by_name(self) -> dict[str, set[str]]:
        """The paths of all known files, by file name."""
        found: dict[str, set[str]] = {}
        for key, row in self.rows.items():
            path = key.removesuffix(f"#{row['member']}") if row["member"] else key
            found.setdefault(path.rpartition(os.sep)[2], set()).add(path)
        return found

    def _is_stale(self, source: Source) -> bool:
        row = self.rows.get(_key(source))
        return (
            row is None
            or row["size"] != source.size
            or row["modified_ns"] != source.modified_ns
            or row["reader"] != self._reader
        )

    def _row(self, source: Source) -> FileRow:
        key = _key(source)
        row = new_row(key, source, self._reader)
        known = self.rows.get(key, row)
        try:
            if key != source.key:
                raise NotASessionError("The file's name is not UTF-8; rename it to have it read.")
            session = without_withdrawn(self._read(source), known["withdrawn_from"])
        except NotASessionError as error:
            if isinstance(error, NotReadableNowError):
                row["modified_ns"] = None  # it may become readable without a change, so try each time
            elif not known["session_id"]:
                row["side_file_of"] = owner_of_side_file(source)
            return unread_row(row, known, str(error))
        if session.cwd == known["cwd"]:
            row["repository_dir"] = known["repository_dir"]
        row["withdrawn_from"] = known["withdrawn_from"]
        return read_row(row, session, self.settings.zone, known["days"] or [])

    def _clear_cache(self) -> None:
        """Clear all derived data, as the rows have changed."""
        for name in ("_by_day", "_by_session", "_left_out", "_typed", "_with_plan", "projects"):
            self.__dict__.pop(name, None)

    def is_excluded(self, key: str) -> bool:
        """Whether the session must not be stored."""
        return self.is_left_out(self.rows[key]["session_id"])

    def is_left_out(self, session_id: str | None) -> bool:
        """Whether the session must not be stored because of one of its files, or of a session to which it belongs."""
        return session_id in self._left_out or (bool(session_id) and str(session_id).split("/")[0] in self._left_out)

    @cached_property
    def _left_out(self) -> set[str]:
        return left_out(self.rows.values())

    def typed(self, session_id: str) -> int:
        """The number of messages that the user typed in the session on all days; see `typed_in_all`."""
        return self._typed.get(session_id, 0)

    def begins_with_plan(self, session_id: str) -> bool:
        """Whether the session begins with a plan that the user approved."""
        return session_id in self._with_plan

    def is_long(self, session_id: str) -> bool:
        """Whether the user typed, or approved at the beginning, enough for the session to be observed as a whole."""
        return self.typed(session_id) >= self.settings.min_user_messages or self.begins_with_plan(session_id)

    @cached_property
    def _with_plan(self) -> set[str]:
        return {str(row["session_id"]) for row in self.rows.values() if row["begins_with_plan"]}

    @cached_property
    def _typed(self) -> dict[str, int]:
        return typed_in_all(self.rows.values())

    @property
    def has_sessions(self) -> bool:
        """Whether any file was read."""
        return any(row["session_id"] for row in self.rows.values())

    def days(self) -> list[date]:
        """Days with messages, from the start date on and not in the future, oldest first."""
        last = today(self.settings.zone)
        return [day for day in self._by_day if self.settings.start_date <= day <= last]

    def days_outside(self) -> list[date]:
        """Days with messages that are not a partition: before the start date, or from a clock that was ahead."""
        inside = set(self.days())
        return [day for day in self._by_day if day not in inside]

    @cached_property
    def _by_day(self) -> dict[date, dict[str, FileDayRow]]:
        """Digest and number of messages by day, oldest first, and source; computed once per refresh, as a plan asks for
        every day several times."""
        found: dict[date, dict[str, FileDayRow]] = {}
        for key in sorted(self.rows):
            for entry in self.rows[key]["days"] or []:
                found.setdefault(entry["day"], {})[key] = entry
        return dict(sorted(found.items()))

    def days_no_longer_short(self) -> list[date]:
        """Days with stored windows of a session that was too short to be observed and has grown since, on any day."""
        windows = self.lake.read("windows", columns=["day", "session_id", "rules_only"])
        short = windows.filter(pl.col("rules_only").fill_null(False)).select("day", "session_id").unique()
        return sorted({day for day, session in short.iter_rows() if self.is_long(session)} & set(self.days()))

    @cached_property
    def _by_session(self) -> dict[tuple[str | None, str | None], str]:
        return {(row["harness"], row["session_id"]): key for key, row in self.rows.items() if not row["reason"]}

    @cached_property
    def projects(self) -> Projects:
        """The projects of all sessions, including those whose files are gone."""
        return Projects(map(_place, self.rows.values()))

    def files_of(self, day: date) -> dict[str, FileDayRow]:
        """The files with messages of the day, each with a digest and the numbers of them."""
        return self._by_day.get(day, {})

    def messages_of(self, key: str, day: date) -> int:
        """The number of messages of the day in the source."""
        return self._by_day[day][key]["messages"]

    def is_idle(self, key: str, day: date, now: datetime) -> bool:
        """Whether the session's part on this day is over: the day is over, or nothing was written for the configured
        time. So a session that is resumed days later does not undo earlier observations."""
        if day < day_of(now, self.settings.zone):
            return True
        row = self.rows[key]
        last = cast("datetime", row["last_said_at"])  # a session with a day has a last message
        if last > now:  # a clock that was ahead: the file's time decides
            last = datetime.fromtimestamp((row["modified_ns"] or 0) / 1e9, UTC)
        return now - last >= timedelta(minutes=self.settings.idle_minutes)

    def _repeated(self, key: str, entry: FileDayRow) -> bool:
        """Whether the file repeats messages of the day from a known session."""
        row = self.rows[key]
        return bool(entry["inherited"]) and (row["harness"], row["parent_id"]) in self._by_session

    def place(self, key: str) -> Place:
        """The place of work of the file's session."""
        return _place(self.rows[key])


def _place(row: FileRow) -> Place:
    return Place(
        row["cwd"] or "", row["branch"] or "", row["repository"] or "", row["began_at"], row["repository_dir"] or ""
    )
