"""What is known of every session file: which days it touches and what they hold, so that a day opens only
the files that it needs and a file that did not change is not read again.

The catalogue is derived: deleting `lake/files/` costs one reading of all files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from memory_pipeline.days import day_of, today
from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.sessions.harnesses import parse_file
from memory_pipeline.sessions.model import NotASession, ParsedSession
from memory_pipeline.sessions.windows import digest, windows_by_day
from memory_pipeline.settings import Settings, keep_timezone

READER_VERSION = "1"
"""Part of every day's fingerprint: raise it when the same file would be read into other rows."""

PROBLEMS_KEPT = 20


@dataclass(frozen=True)
class Refresh:
    """What a look at the directories found."""

    files: int
    changed: int
    left: int = 0
    """Files that changed but were not read because the time was up; the next refresh reads them."""


@lru_cache(maxsize=32)
def _read(path: str, size: int, modified_ns: int, tool_text_limit: int) -> ParsedSession:
    return parse_file(Path(path), tool_text_limit=tool_text_limit)


def _key(path: Path) -> str:
    """The path as it is stored: a table holds only text that can be encoded."""
    return str(path).encode(errors="backslashreplace").decode()


@dataclass
class Catalogue:
    """The `files` table, with the means to bring it up to date."""

    lake: Lake
    settings: Settings
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    """Paths that the last refresh saw."""

    def __post_init__(self) -> None:
        self.rows = {row["path"]: row for row in self.lake.read("files").iter_rows(named=True)}

    def refresh(
        self,
        paths: Iterable[Path],
        *,
        seconds: float | None = None,
        on_file: Callable[[Path], None] | None = None,
    ) -> Refresh:
        """Read the files that are new or changed, until the time is up, and store what was learnt.

        A file that vanished keeps its row: what was read from it stays in the tables.
        """
        end = time.monotonic() + seconds if seconds is not None else None
        changed = left = 0
        self.present = set()
        for path in paths:
            self.present.add(_key(path))
            if not self._is_stale(path):
                continue
            if end is not None and time.monotonic() > end:
                left += 1
                continue
            self.rows[_key(path)] = self._row(path)
            changed += 1
            if on_file:
                on_file(path)
        gone = [p for p, row in self.rows.items() if row["reason"] and p not in self.present and not Path(p).exists()]
        for path_gone in gone:  # nothing was read from it, so there is nothing to keep
            del self.rows[path_gone]
        self.__dict__.pop("_by_day", None)
        if changed or gone:
            keep_timezone(self.settings)
            self.lake.replace_all("files", pl.DataFrame(list(self.rows.values()), infer_schema_length=None))
        return Refresh(len(self.present), changed, left)

    def session(self, path: str) -> ParsedSession | None:
        """The file's session; None when it is gone, cannot be read, or is none."""
        try:
            stat = Path(path).stat()
            return _read(path, stat.st_size, stat.st_mtime_ns, self.settings.tool_text_limit)
        except (OSError, NotASession):
            return None

    def is_unreadable(self, path: str) -> bool:
        """Whether no session could be read from the file when it was last looked at."""
        return path in self.rows and self.rows[path]["reason"] is not None

    @property
    def has_sessions(self) -> bool:
        """Whether any file was read."""
        return any(not row["reason"] for row in self.rows.values())

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
    def _by_day(self) -> dict[date, dict[str, str]]:
        """Digest by path by day: made once per refresh, because a plan asks for every day several times."""
        found: dict[date, dict[str, str]] = {}
        for path, row in sorted(self.rows.items()):
            for entry in row["days"] or []:
                found.setdefault(entry["day"], {})[path] = entry["digest"]
        return found

    def files_of(self, day: date) -> dict[str, str]:
        """Paths that hold messages of the day, with the digest of what they hold."""
        return self._by_day.get(day, {})

    def is_idle(self, path: str, day: date, now: datetime) -> bool:
        """Whether the session's part on this day is over: the day is, or nothing was written for the configured time.

        A session that is taken up again days later must not take back what was observed of it.
        """
        if day < day_of(now, self.settings.zone):
            return True
        row = self.rows[path]
        last: datetime = row["last_said_at"]
        if last > now:  # a clock that ran ahead: the file's own time decides
            last = datetime.fromtimestamp(row["modified_ns"] / 1e9, UTC)
        return now - last >= timedelta(minutes=self.settings.idle_minutes)

    def fingerprint(self, day: date, now: datetime) -> str:
        """Of everything that decides the day's sessions, messages and windows."""
        files = [(path, digest, self.is_idle(path, day, now)) for path, digest in self.files_of(day).items()]
        return fingerprint_of(self._reader(), self.settings.min_user_messages, files)

    def _reader(self) -> str:
        return f"{READER_VERSION}/{self.settings.timezone}/{self.settings.tool_text_limit}"

    def _is_stale(self, path: Path) -> bool:
        row = self.rows.get(_key(path))
        try:
            stat = path.stat()
        except OSError:
            return row is None
        return row is None or (row["size"], row["modified_ns"], row["reader"]) != (
            stat.st_size,
            stat.st_mtime_ns,
            self._reader(),
        )

    def _row(self, path: Path) -> dict[str, Any]:
        row: dict[str, Any] = {"path": _key(path), "reader": self._reader(), "messages": 0, "records": 0}
        row |= {"size": None, "modified_ns": None}
        try:
            stat = path.stat()
            row |= {"size": stat.st_size, "modified_ns": stat.st_mtime_ns}
            if _key(path) != str(path):
                raise NotASession("The file's name is not UTF-8; rename it to have it read.")
            session = _read(str(path), stat.st_size, stat.st_mtime_ns, self.settings.tool_text_limit)
        except (OSError, NotASession) as error:
            if isinstance(error.__cause__, OSError):
                row["modified_ns"] = None  # it may become readable without a change: look again each time
            reason = str(error) if isinstance(error, NotASession) else f"cannot be opened: {error.strerror}"
            return row | {"reason": reason, "days": [], "problems": [], "unknown_records": []}
        days = windows_by_day(session, self.settings.zone)
        return row | {
            "harness": session.harness,
            "session_id": session.session_id,
            "last_said_at": max(m.said_at for m in session.messages),
            "messages": len(session.messages),
            "records": session.records,
            "unknown_records": [{"type": t, "count": n} for t, n in sorted(session.unknown_records.items())],
            "problems": [{"line": p.line, "reason": p.reason} for p in session.problems[:PROBLEMS_KEPT]],
            "days": [{"day": day, "digest": digest(session, windows)} for day, windows in sorted(days.items())],
            "reason": None,
        }
