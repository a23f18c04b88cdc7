"""Queries on the rows of the catalogue, without access to files."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import cast

from memory_pipeline.days import day_of, today
from memory_pipeline.lake.rows import FileDayRow, FileRow
from memory_pipeline.sessions.forks import left_out, typed_in_all
from memory_pipeline.sessions.projects import Place, Projects
from memory_pipeline.settings import Settings


class KnownSessions:
    """Queries on the rows of the catalogue by file, session and day."""

    settings: Settings
    rows: dict[str, FileRow]

    def forget_answers(self) -> None:
        """Clear all derived data, as the rows have changed."""
        for name in ("_by_day", "_by_session", "_left_out", "_typed", "_with_plan", "projects"):
            self.__dict__.pop(name, None)

    def is_unreadable(self, key: str) -> bool:
        """Whether the last attempt to read the source failed."""
        return key in self.rows and self.rows[key]["reason"] is not None

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

    def has_voided(self, key: str, day: date) -> bool:
        """Whether messages of the day were withdrawn in this session."""
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
        """Days with messages that are not a partition: before the start date, or from a clock that was ahead."""
        inside = set(self.days())
        return [day for day in self._all_days() if day not in inside]

    def _all_days(self) -> list[date]:
        return sorted(self._by_day)

    @cached_property
    def _by_day(self) -> dict[date, dict[str, FileDayRow]]:
        """Digest and number of messages by day and source, computed once per refresh, as a plan asks for every day
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
        """The projects of all sessions, including those whose files are gone."""
        return Projects(map(place_in, self.rows.values()))

    def files_of(self, day: date) -> dict[str, str]:
        """The files with messages of the day, each with a digest of them."""
        return {key: entry["digest"] for key, entry in self._by_day.get(day, {}).items()}

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
        return place_in(self.rows[key])


def place_in(row: FileRow) -> Place:
    """The place of work of a row's session."""
    return Place(
        row["cwd"] or "", row["branch"] or "", row["repository"] or "", row["began_at"], row["repository_dir"] or ""
    )
