"""Marks of a workspace: its time zone, first day, salt and format number; and the permissions of its files.

Each mark is a small file in `lake/` with a copy in `backups/marks/`, which replaces a missing, empty or zeroed one:
with another salt or zone every day would be rebuilt with other ids. If the mark of the first day is missing, the days
of the tables and of the catalogue count instead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from memory_pipeline.days import days_named
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, make_folder, replace_file
from memory_pipeline.settings.memory_json import WrongFileError

ZONE, FIRST_DAY, SALT, FORMAT_MARK = "timezone", "start_date", "salt", "format"
FORMAT = 7
"""The format that this version writes: the number of migrations in `operations/migrations.py` that a workspace has
completed."""
SALT_BYTES = 16


def keep_private(workspace: Path) -> None:
    """Remove the permissions of others from the workspace, and from all files of a workspace that others can read.

    Files whose permissions cannot be changed stay as they are.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError):
        if workspace.stat().st_mode & 0o077:
            make_private(open_to_others(workspace))
            workspace.chmod(0o700)


def open_to_others(workspace: Path) -> Iterator[Path]:
    """Files and folders of the workspace that other users may read, write or enter."""
    for folder, _, names in os.walk(workspace):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with contextlib.suppress(OSError):
                if not path.is_symlink() and path.stat().st_mode & 0o077:
                    yield path


def make_private(paths: Iterable[Path]) -> None:
    """Remove the permissions of others from these files and folders."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.chmod(path.stat().st_mode & 0o700)


def content(workspace: Path, name: str) -> bytes | None:
    """The valid content of the mark of this name, as it is shared with other workspaces; None if there is none."""
    found = (_read(name, path) for path in _places(workspace, name))
    return next((data for data in found if data and _is_valid(name, data)), None)


def make(workspace: Path, name: str, data: bytes) -> None:
    """Write the mark and its copy where they are missing or, after a full or damaged disk, invalid; a valid one of the
    two is kept."""
    lacking = [path for path in _places(workspace, name) if not _is_valid(name, _read(name, path))]
    if lacking:
        make_folder(workspace / "backups")
        with FileLock(workspace / "backups" / "marks.lock", timeout=LOCK_SECONDS):  # all processes need the same salt
            for path in lacking:
                replace_file(path, content(workspace, name) or data, mode=0o600)


def stored_zone(workspace: Path) -> str | None:
    """The time zone of the workspace; None before it is created."""
    return _text(workspace, ZONE)


def keep_zone(workspace: Path, zone: str) -> None:
    """Fix the time zone of the workspace, if it has none yet."""
    make(workspace, ZONE, f"{zone}\n".encode())


def stored_first_day(workspace: Path) -> date | None:
    """The first day of the workspace; None while it has no mark. Raises `WrongFileError`."""
    path = workspace / "lake" / FIRST_DAY
    text = _text(workspace, FIRST_DAY)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise WrongFileError(
            f"{path} should hold one day like 2025-01-31, not {text!r}. Fix it or remove it."
        ) from None


def first_day(workspace: Path, today: date) -> date:
    """The first day of the mark, else the oldest stored day, else today. It reads little and writes nothing."""
    return stored_first_day(workspace) or min((*_stored_days(workspace), *_catalogue_days(workspace), today))


def keep_first_day(workspace: Path, session_days: Iterable[date], today: date) -> None:
    """Fix the first day of the workspace, if it has none yet: the oldest of these days and of the stored ones, but
    never after today, as a clock may run ahead."""
    kept = stored_first_day(workspace)
    first = kept or min((*session_days, *_stored_days(workspace), today))
    make(workspace, FIRST_DAY, f"{first}\n".encode())


def stored_format(workspace: Path) -> int:
    """The number of the workspace's format; 0 for a new one, and for one without a mark."""
    return int(content(workspace, FORMAT_MARK) or 0)


def keep_format(workspace: Path, number: int) -> None:
    """Set the format to this number."""
    for path in _places(workspace, FORMAT_MARK):
        replace_file(path, f"{number}\n".encode())


def salt(workspace: Path) -> bytes:
    """The random bytes of the workspace, created once."""
    make(workspace, SALT, os.urandom(SALT_BYTES))
    return _places(workspace, SALT)[0].read_bytes()


def _stored_days(workspace: Path) -> list[date]:
    """The days of the tables and of the daily logs, by the names of their files."""
    return days_named([*workspace.glob("lake/*/????-??-??.parquet"), *workspace.glob("memory/????-??-??.md")])


def _catalogue_days(workspace: Path) -> list[date]:
    """The oldest day of the sessions in the catalogue, including unread ones."""
    path = workspace / "lake" / "files" / "all.parquet"
    if not path.exists():
        return []
    import polars as pl

    try:
        days = pl.read_parquet(path, glob=False, columns=["days"]).explode("days", empty_as_null=True).unnest("days")
        return days["day"].drop_nulls().sort().head(1).to_list()
    except pl.exceptions.PolarsError:  # reported by readers of the table
        return []


def _places(workspace: Path, name: str) -> tuple[Path, Path]:
    """The paths of the mark and of its copy."""
    return workspace / "lake" / name, workspace / "backups" / "marks" / name


def _text(workspace: Path, name: str) -> str | None:
    """The text of the mark, or of its copy if only that is valid; the invalid text if both are."""
    found = content(workspace, name) or next(filter(None, (_read(name, p) for p in _places(workspace, name))), b"")
    return found.decode("utf-8", "replace").strip() or None


def _read(name: str, path: Path) -> bytes:
    """The content of the file, empty if there is none; that of a text without the zeros of a power cut."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    return data if name == SALT else b"%b\n" % text if (text := data.strip(b"\0 \t\r\n")) else b""


def _is_valid(name: str, data: bytes) -> bool:
    if name == SALT:
        return len(data) >= SALT_BYTES and any(data)
    text = data.decode("utf-8", "replace").strip()
    if name == FORMAT_MARK:
        return text.isascii() and text.isdigit()
    try:
        ZoneInfo(text) if name == ZONE else date.fromisoformat(text)
    except (ValueError, KeyError, OSError):
        return False
    return True
