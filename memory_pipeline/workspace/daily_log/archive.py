"""Moving of old daily logs into `archive/`, where they are still updated: see `Settings.daily_log`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from memory_pipeline.days import days_named
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, make_folder, sync_folder
from memory_pipeline.settings import Settings


@dataclass(frozen=True)
class Archived:
    """The result of archiving the logs that are old enough."""

    moved: list[date] = field(default_factory=list)
    """The days of moved logs or, in a dry run, of those that would be moved."""
    waiting: dict[date, str] = field(default_factory=dict)
    """Logs with pending work, each with the reason and what to do."""
    stuck: dict[date, str] = field(default_factory=dict)
    """Logs that could not be moved, each with the reason and what to do."""


def archive_logs(
    settings: Settings, today: date, why_not: Callable[[date], str | None], *, dry_run: bool = False
) -> Archived:
    """Move every log that is at least `archive_after_days` old and for which `why_not` returns no reason."""
    found = Archived()
    for day in old_logs(settings, today):
        reason = why_not(day)
        if reason:
            found.waiting[day] = reason
            continue
        try:
            reason = why_stuck(settings, day) if dry_run else move_log(settings, day)
        except OSError as error:
            reason = f"{error.filename or settings.daily_log(day)}: {(error.strerror or 'cannot be used').lower()}"
        if reason:
            found.stuck[day] = reason
        else:
            found.moved.append(day)
    return found


def old_logs(settings: Settings, today: date) -> list[date]:
    """The days whose logs are old enough and not archived, oldest first; none when archiving is off."""
    if not settings.archive_after_days:
        return []
    days = days_named(settings.log_dir.glob("????-??-??.md"))
    return [day for day in days if (today - day).days >= settings.archive_after_days]


def why_stuck(settings: Settings, day: date) -> str | None:
    """Why the day's log cannot be moved although it is finished."""
    path, archived = _places(settings, day)
    if path.is_symlink():
        return f"{path} is a link; move the file that it leads to yourself"
    if not path.is_file():
        return f"{path} is not a file"
    if os.path.lexists(archived) and (not archived.is_file() or archived.read_bytes() != path.read_bytes()):
        return f"{archived} already exists with other text; merge the two into one of them"
    return None


def move_log(settings: Settings, day: date) -> str | None:
    """Move the day's log; returns the reason if it stays. Safe to repeat, also after a crash between any two calls.

    The log is renamed, so changes that a user saves up to the last moment are kept. Our own writers hold the same lock.
    A writer that determined the log's path before the move and writes after it starts a second log, which the next run
    reports; this needs a finished day that has just changed.
    """
    path, archived = _places(settings, day)
    make_folder(settings.backups)
    with FileLock(settings.backups / f"{path.name}.lock", timeout=LOCK_SECONDS):
        if not os.path.lexists(path):
            return None  # another run has moved it
        if reason := why_stuck(settings, day):
            return reason
        if not archived.parent.is_dir():
            archived.parent.mkdir()
            sync_folder(path.parent)
        if archived.exists() and archived.samefile(path):
            path.unlink()  # renaming would leave both names
        else:
            path.replace(archived)  # replaces nothing, or the same bytes
        sync_folder(archived.parent)
        sync_folder(path.parent)
    return None


def _places(settings: Settings, day: date) -> tuple[Path, Path]:
    archived = settings.archived_log(day)
    return settings.log_dir / archived.name, archived
