"""Marks of a workspace: its time zone, first day, salt and format number; and the permissions of its files.

Each mark is a small file in `lake/` with a copy in `backups/marks/`, which replaces a missing, empty or zeroed one:
with another salt or zone every day would be rebuilt with other ids. If the mark of the first day is missing, the days
of the tables and of the catalogue count instead.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from memory_pipeline.markdown.safe_write import make_folder, sync_folder, write_atomically
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
    """The content of the mark of this name, as it is shared with other workspaces; None if there is none."""
    if name == SALT:
        return next(filter(None, map(_salt_in, _places(workspace, SALT))), None)
    text = _read_valid(workspace, name)
    return f"{text}\n".encode() if text and _is_valid(name, text) else None


def make(workspace: Path, name: str, data: bytes) -> None:
    """Create the mark of this name with the `content` of another workspace, unless it exists."""
    for path in _places(workspace, name):
        _make(path, data)


def stored_zone(workspace: Path) -> str | None:
    """The time zone of the workspace; None before it is created."""
    return _read_valid(workspace, ZONE)


def keep_zone(workspace: Path, zone: str) -> None:
    """Fix the time zone of the workspace, if it has none yet."""
    _write(workspace, ZONE, zone)


def stored_first_day(workspace: Path) -> date | None:
    """The first day of the workspace; None while it has no mark. Raises `WrongFileError`."""
    path = workspace / "lake" / FIRST_DAY
    text = _read_valid(workspace, FIRST_DAY)
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
    _write(workspace, FIRST_DAY, f"{kept or min((*session_days, *_stored_days(workspace), today))}")


def stored_format(workspace: Path) -> int:
    """The number of the workspace's format; 0 for a new one, and for one without a mark."""
    text = _read_valid(workspace, FORMAT_MARK)
    return int(text) if text and _is_valid(FORMAT_MARK, text) else 0


def keep_format(workspace: Path, number: int) -> None:
    """Set the format to this number."""
    for path in _places(workspace, FORMAT_MARK):
        before = path.read_bytes() if path.exists() else None
        write_atomically(path, f"{number}\n".encode(), expected=before, backups=None)


def salt(workspace: Path) -> bytes:
    """The random bytes of the workspace, created once."""
    places = _places(workspace, SALT)
    found = next(filter(None, map(_salt_in, places)), None) or os.urandom(SALT_BYTES)
    for path in places:
        if _salt_in(path) is None:  # missing, or incomplete after a full or damaged disk
            path.unlink(missing_ok=True)
            _make(path, found)
    return places[0].read_bytes()


def _salt_in(path: Path) -> bytes | None:
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return None
    return found if len(found) >= SALT_BYTES and any(found) else None


def _stored_days(workspace: Path) -> Iterator[date]:
    """The days of the tables and of the daily logs, by the names of their files."""
    for path in (*workspace.glob("lake/*/????-??-??.parquet"), *workspace.glob("memory/????-??-??.md")):
        try:
            yield date.fromisoformat(path.stem)
        except ValueError:  # the name is not a valid day
            continue


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


def _read_valid(workspace: Path, name: str) -> str | None:
    """The text of the mark, or of its copy if only that is valid; the invalid text if both are."""
    found = [text for text in map(_read, _places(workspace, name)) if text]
    return next((text for text in found if _is_valid(name, text)), found[0] if found else None)


def _is_valid(name: str, text: str) -> bool:
    if name == FORMAT_MARK:
        return text.isascii() and text.isdigit()
    try:
        ZoneInfo(text) if name == ZONE else date.fromisoformat(text)
    except (ValueError, KeyError, OSError):
        return False
    return True


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip("\0 \t\r\n") or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(workspace: Path, name: str, text: str) -> None:
    text = _read_valid(workspace, name) or text
    for path in _places(workspace, name):
        there = _read(path)
        if there is None or (_is_valid(name, text) and not _is_valid(name, there)):  # after a full or damaged disk
            path.unlink(missing_ok=True)
            _make(path, f"{text}\n".encode())


def _make(path: Path, content: bytes) -> None:
    """Create the file atomically, unless another process created it meanwhile."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename, keeps an existing file
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
