"""The catalogue of all sessions: the days that each touches and its contents, so that a day opens only the files that
it needs and an unchanged file is not read again.

The catalogue is derived: deleting `lake/files/` costs one reading of all files. Only facts about files that are gone
are lost: that a session asked not to be stored, and of what it was a copy.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path, PurePath
from typing import cast

import polars as pl

from memory_pipeline.days import day_of, today
from memory_pipeline.harnesses.compressed import where_it_lies
from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError, ParsedSession, Source
from memory_pipeline.lake.rows import FileDayRow, FileRow, typed_rows
from memory_pipeline.lake.store import Lake, fingerprint_of
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import make_folder
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.sessions.catalogue_row import new_row, read_row, unread_row
from memory_pipeline.sessions.discovery import roots
from memory_pipeline.sessions.forks import left_out, repeats, typed_in_all
from memory_pipeline.sessions.not_read import owner_of_side_file
from memory_pipeline.sessions.parts import withdrawn, without_withdrawn
from memory_pipeline.sessions.projects import Place, Projects
from memory_pipeline.sessions.reading import Readings, source_of
from memory_pipeline.sessions.worktrees import repository_of_folder
from memory_pipeline.settings import Settings, keep_first_day, keep_timezone

LOCK_SECONDS = 60.0
"""Seconds to wait for another process that writes the table, which takes a second with 100,000 files."""
READER_VERSION = "11"
"""Part of every day's fingerprint: raise it when the same file would be read into other rows."""

_READINGS = Readings()


@dataclass(frozen=True)
class Refresh:
    """The result of scanning the directories."""

    files: int
    changed: int
    left: int = 0
    """Files that changed but were not read because the time was up; the next refresh reads them."""


def _key(source: Source) -> str:
    """The name of the source as it is stored: a table contains only text that can be encoded."""
    return source.key.encode(errors="backslashreplace").decode()


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)  # noqa: PTH121
    except OSError:
        return False


def _place(row: FileRow) -> Place:
    return Place(
        row["cwd"] or "", row["branch"] or "", row["repository"] or "", row["began_at"], row["repository_dir"] or ""
    )


@dataclass(frozen=True)
class _Stored:
    """The stored catalogue as this process last saw it; its rows are replaced, never changed."""

    version: str | int | None
    """The version of the file; see `Lake.version`."""
    frame: pl.DataFrame
    rows: dict[str, FileRow]


_STORED: dict[str, _Stored] = {}


@dataclass
class Catalogue:
    """The `files` table, with the means to bring it up to date."""

    lake: Lake
    settings: Settings
    rows: dict[str, FileRow] = field(default_factory=dict)
    present: dict[str, Source] = field(default_factory=dict)
    """The sources that the last refresh found."""
    unsent: set[str] = field(default_factory=set)
    """Rows that a refresh has changed and not stored."""

    def __post_init__(self) -> None:
        self.rows = dict(self._stored().rows)

    def _stored(self) -> _Stored:
        place, version = self.lake.place("files"), self.lake.version("files")
        known = _STORED.get(place)
        if known is None or known.version != version:
            frame = self.lake.read("files")
            known = _STORED[place] = _Stored(version, frame, {row["path"]: row for row in typed_rows(frame, FileRow)})
        return known

    def _store(self, changed: Collection[str], gone: Collection[str]) -> None:
        """Write the rows that changed among those that are stored now: with many files most of the work is theirs.

        Other processes write what they have read at the same time, so the stored rows are those of all of them.
        """
        keep_timezone(self.settings)
        made: list[_Stored] = []

        def with_changes(_: pl.DataFrame) -> pl.DataFrame:
            stored = self._stored()
            old = stored.frame.filter(~pl.col("path").is_in([*changed, *gone]))
            new = pl.DataFrame([self.rows[key] for key in changed], schema_overrides=old.schema)
            frame = pl.concat([old, new.select(old.columns)]) if len(new) else old
            rows = {key: row for key, row in stored.rows.items() if key not in gone}
            made.append(_Stored(None, frame, rows | {key: self.rows[key] for key in changed}))
            return frame

        make_folder(self.settings.lake_dir)
        with FileLock(self.settings.lake_dir / "files.lock", timeout=LOCK_SECONDS):
            self.lake.update("files", with_changes)
            _STORED[self.lake.place("files")] = replace(made[-1], version=self.lake.version("files"))

    def refresh(
        self,
        sources: Iterable[Source],
        *,
        seconds: float | None = None,
        on_file: Callable[[Source], None] | None = None,
        is_stored: bool = True,
    ) -> Refresh:
        """Read the sessions that are new or changed, until the time is up, and store what was learnt, unless that is
        left to `send`.

        A file that vanished keeps its row: what was read from it stays in the tables.
        """
        end = time.monotonic() + seconds if seconds is not None else None
        changed: list[str] = []
        left = 0
        self.present = {}
        self.__dict__.pop("_paths_by_name", None)
        for source in map(self._under_known_path, sources):
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
        changed += [key for key in self._withdraw() if key not in changed]
        # of those nothing was read, so there is nothing to keep
        gone = [
            key
            for key, row in self.rows.items()
            if row["reason"] and not row["session_id"] and key not in self.present and self._is_gone(key)
        ]
        for key in gone:
            del self.rows[key]
        filled = self._fill_repositories()
        for known in ("_by_day", "_by_session", "_left_out", "_typed", "_with_plan", "projects"):
            self.__dict__.pop(known, None)
        if not is_stored:
            self.unsent.update(changed, filled)
        elif changed or filled or gone:
            self._store({*changed, *filled}, gone)
        if days := self._all_days():
            self.settings = keep_first_day(self.settings, days, is_complete=not left)
        return Refresh(len(self.present), len(changed), left)

    def _withdraw(self) -> list[str]:
        """Void what later files of a session took out of earlier ones, whose days are then others; the keys of these
        files."""
        first = withdrawn(self.rows.values())
        other = [key for key, row in self.rows.items() if row["withdrawn_from"] != first.get(key)]
        affected = {key: source for key in other if (source := self.present.get(key) or self._known_source(key))}
        for key, source in affected.items():
            self.rows[key] = self.rows[key] | {"withdrawn_from": first.get(key)}
            self.rows[key] = self._row(source)
        return list(affected)

    def send(self, last: date, left: Collection[date] = ()) -> int:
        """Store the rows that a refresh has left to this call, of files whose days are all there, up to this one; how
        many. Those of files with a day that is ``left`` stay unsent.

        Who shares the lake takes what a row says for what the tables hold: it may not be there before its messages.
        """

        def is_done(key: str) -> bool:
            days = [entry["day"] for entry in self.rows[key]["days"] or []]
            return all(day <= last and day not in left for day in days)

        done = sorted(filter(is_done, self.unsent))
        if done:
            self._store(done, ())
            self.unsent.difference_update(done)
        return len(done)

    def session(self, key: str) -> ParsedSession | None:
        """The current session; None if it is gone, cannot be read, or is not one.

        Stored facts count even if the last refresh scanned other directories.
        """
        source = self.present.get(key) or self._known_source(key)
        try:
            return without_withdrawn(self._read(source), self.rows[key]["withdrawn_from"]) if source else None
        except NotASessionError:
            return None

    def _read(self, source: Source) -> ParsedSession:
        return _READINGS.read(source, self.settings.tool_text_limit, self.redactor)

    @cached_property
    def redactor(self) -> Redactor:
        return redactor_of(self.settings)

    def is_unreadable(self, key: str) -> bool:
        """Whether no session could be read from the source when it was last looked at."""
        return key in self.rows and self.rows[key]["reason"] is not None

    def is_of_this_machine(self, key: str) -> bool:
        """Whether the file is, or was, in a directory that is read here. With a lake in object storage others are known
        too: a file at their path on this machine belongs to somebody else."""
        return not self.lake.storage.is_far or key in self.present or key.startswith(self._directories)

    @cached_property
    def _directories(self) -> tuple[str, ...]:
        # a root may be a database, whose sessions are named behind a #
        return tuple(f"{root}{mark}" for root in roots(self.settings) for mark in "/#")

    def _known_source(self, key: str) -> Source | None:
        if not self.is_of_this_machine(key):
            return None
        row = self.rows[key]
        member = row["member"] or ""
        path = where_it_lies(Path(key.removesuffix(f"#{member}") if member else key))
        if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file() raises where a folder may not be entered
            return None
        if member:  # a file of many sessions: its state says nothing of one of them
            return Source(str(path), member, row["size"], row["modified_ns"] or 0, row["harness"] or "")
        return source_of(path)._replace(agent=row["harness"] or "")

    def _is_gone(self, key: str) -> bool:
        """Whether the file is no longer there, also where the last refresh did not look."""
        source = self._known_source(key)
        is_there = source is not None and all(source.path != other.path for other in self.present.values())
        return self.is_of_this_machine(key) and not is_there

    def is_readable(self, key: str) -> bool:
        """Whether the session exists, whatever the last refresh scanned, is readable, and may be stored."""
        there = key in self.present or self._known_source(key) is not None
        return there and not self.is_unreadable(key) and not self.is_excluded(key)

    def is_excluded(self, key: str) -> bool:
        """Whether nothing of the session may be stored."""
        return self.is_left_out(self.rows[key]["session_id"])

    def is_left_out(self, session_id: str | None) -> bool:
        """Whether nothing of the session may be stored, as some file of it says, or of one that it belongs to."""
        return session_id in self._left_out or (bool(session_id) and str(session_id).split("/")[0] in self._left_out)

    @cached_property
    def _left_out(self) -> set[str]:
        return left_out(self.rows.values())

    def typed(self, session_id: str) -> int:
        """The number of messages that the user typed in the session, on all of its days; see `typed_in_all`."""
        return self._typed.get(session_id, 0)

    def begins_with_plan(self, session_id: str) -> bool:
        """Whether a plan that the user approved begins the session."""
        return session_id in self._with_plan

    def is_long(self, session_id: str) -> bool:
        """Whether the user typed enough in it, or approved enough at its head, to have it observed as a whole."""
        return self.typed(session_id) >= self.settings.min_user_messages or self.begins_with_plan(session_id)

    @cached_property
    def _with_plan(self) -> set[str]:
        return {str(row["session_id"]) for row in self.rows.values() if row["begins_with_plan"]}

    @cached_property
    def _typed(self) -> dict[str, int]:
        return typed_in_all(self.rows.values())

    def repeated(self, session: ParsedSession) -> frozenset[str] | None:
        """Ids of the messages with which the session repeats another one that is known: they count there. None while
        the other one cannot be read.

        Where the other one is only stored, everything that was copied is taken to be there, but for what is stored of
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
                return session.inherited - self._stored_of(session)
            return None if key and self.is_readable(key) else frozenset()
        return repeats(session, parent)

    def _stored_of(self, session: ParsedSession) -> set[str]:
        """Ids of the messages that are stored of the session."""
        of_session = pl.col("session_id") == session.session_id
        days = self.lake.read("sessions", columns=["day", "session_id"]).filter(of_session)["day"]
        stored = self.lake.read("messages", days, columns=["session_id", "message_id"])
        return set(stored.filter(of_session)["message_id"])

    def waiting(self, day: date) -> set[str]:
        """Ids of the sessions that say something on the day and cannot be read for now."""
        found = set()
        for key, entry in self._by_day.get(day, {}).items():
            there = key in self.present or self._known_source(key) is not None
            speaks = (entry["messages"] or 0) > (entry["inherited"] or 0)
            if speaks and there and self.rows[key]["modified_ns"] is None and not self.is_excluded(key):
                found.add(str(self.rows[key]["session_id"]))
        return found

    def has_voided(self, key: str, day: date) -> bool:
        """Whether turns of the day were taken back in this session."""
        return bool(self._by_day[day][key]["voided"])

    @property
    def has_sessions(self) -> bool:
        """Whether any file was read."""
        return any(row["session_id"] for row in self.rows.values())

    def days(self) -> list[date]:
        """Days with messages, from the start date on and not in the future, oldest first."""
        last = today(self.settings.zone)
        return [day for day in self._all_days() if self.settings.start_date <= day <= last]

    def days_outside(self) -> list[date]:
        """Days with messages that are no partition: before the start date, or by a clock that ran ahead."""
        inside = set(self.days())
        return [day for day in self._all_days() if day not in inside]

    def _all_days(self) -> list[date]:
        return sorted(self._by_day)

    @cached_property
    def _by_day(self) -> dict[date, dict[str, FileDayRow]]:
        """Digest and number of messages by source by day: made once per refresh, because a plan asks for every day
        several times.
        """
        found: dict[date, dict[str, FileDayRow]] = {}
        for key in sorted(self.rows):
            for entry in self.rows[key]["days"] or []:
                found.setdefault(entry["day"], {})[key] = entry
        return found

    @cached_property
    def _by_session(self) -> dict[tuple[str | None, str | None], str]:
        return {(row["harness"], row["session_id"]): key for key, row in self.rows.items() if not row["reason"]}

    @cached_property
    def projects(self) -> Projects:
        """The projects of all sessions, also of those whose files are gone."""
        return Projects(map(_place, self.rows.values()))

    def files_of(self, day: date) -> dict[str, str]:
        """The files with messages of the day, each with a digest of them."""
        return {key: entry["digest"] for key, entry in self._by_day.get(day, {}).items()}

    def messages_of(self, key: str, day: date) -> int:
        """The number of messages of the day in the source."""
        return self._by_day[day][key]["messages"]

    def is_idle(self, key: str, day: date, now: datetime) -> bool:
        """Whether the session's part on this day is over: the day is, or nothing was written for the configured time.

        A session that is taken up again days later must not take back what was observed of it.
        """
        if day < day_of(now, self.settings.zone):
            return True
        row = self.rows[key]
        last = cast("datetime", row["last_said_at"])  # who speaks on a day has spoken
        if last > now:  # a clock that ran ahead: the file's own time decides
            last = datetime.fromtimestamp((row["modified_ns"] or 0) / 1e9, UTC)
        return now - last >= timedelta(minutes=self.settings.idle_minutes)

    def fingerprint(self, day: date, now: datetime) -> str:
        """A hash of everything that decides the day's sessions, messages and windows."""
        least = self.settings.min_user_messages
        files = [
            (
                *(key, entry["digest"], self.is_idle(key, day, now), self.is_excluded(key), self._repeated(key, entry)),
                # not how many: what is typed on other days matters once, when the session becomes long enough
                self.is_long(str(self.rows[key]["session_id"])),
                self.projects.of(_place(self.rows[key])),
            )
            for key, entry in self._by_day.get(day, {}).items()
        ]
        return fingerprint_of(self._reader, least, files)

    def _repeated(self, key: str, entry: FileDayRow) -> bool:
        """Whether the file repeats messages of the day from a session that is known."""
        row = self.rows[key]
        return bool(entry["inherited"]) and (row["harness"], row["parent_id"]) in self._by_session

    @cached_property
    def _reader(self) -> str:
        settings = self.settings
        # with another salt the marks are others, so everything is read anew
        salt = hashlib.sha256(self.redactor.salt).hexdigest()[:8]
        return f"{READER_VERSION}/{settings.timezone}/{settings.tool_text_limit}/{settings.redact}/{salt}"

    def is_to_be_stored(self, source: Source, days: Collection[date], is_stored: Callable[[date], bool]) -> bool:
        """Whether the source, as it is now, says or may say something on one of these days that is not stored."""
        source = self._under_known_path(source)
        row = self.rows.get(_key(source))
        if row is None:
            return owner_of_side_file(source) is None
        if row["reason"] and not row["session_id"]:
            return False
        said_on = (entry["day"] for entry in row["days"] or [])
        return self._is_stale(source) or any(day in days and not is_stored(day) for day in said_on)

    def _fill_repositories(self) -> list[str]:
        """Find, once, the repository of the worktree that each session worked in; the keys of the changed rows.

        If the folder is gone, an earlier session in it has the answer. Folders of another machine are skipped: the same
        path here is another folder.
        """
        new = [
            (key, row)
            for key, row in self.rows.items()
            if row["repository_dir"] is None and row["cwd"] and self.is_of_this_machine(key)
        ]
        if not new:
            return []
        found = {cwd: repository_of_folder(cwd) for cwd in {row["cwd"] or "" for _, row in new}}
        told = (row for key, row in self.rows.items() if row["repository_dir"] and self.is_of_this_machine(key))
        known = found | {row["cwd"]: row["repository_dir"] for row in told}
        for key, row in new:
            folder = PurePath(row["cwd"] or "")
            above = (known.get(str(parent)) for parent in (folder, *folder.parents))
            repository = found[row["cwd"] or ""]
            self.rows[key] = row | {
                "repository_dir": next(filter(None, above), "") if repository is None else repository
            }
        return [key for key, _ in new]

    def place(self, key: str) -> Place:
        """The place where the session of the file worked."""
        return _place(self.rows[key])

    def _under_known_path(self, source: Source) -> Source:
        """The source under the path by which the same file was read before it was reached by this one: a link that is
        added or removed makes no new sessions.
        """
        if _key(source) in self.rows:
            return source
        others = self._paths_by_name.get(os.path.basename(source.path), ())  # noqa: PTH119 - of every new file
        known = next((path for path in sorted(others) if _is_same_file(path, source.path)), source.path)
        return source._replace(path=known)

    @cached_property
    def _paths_by_name(self) -> dict[str, set[str]]:
        """The paths of all files that are known by their names."""
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
                row["modified_ns"] = None  # it may become readable without a change: look again each time
            elif not known["session_id"]:
                row["side_file_of"] = owner_of_side_file(source)
            return unread_row(row, known, str(error))
        if session.cwd == known["cwd"]:
            row["repository_dir"] = known["repository_dir"]
        row["withdrawn_from"] = known["withdrawn_from"]
        return read_row(row, session, self.settings.zone, known["days"] or [])
