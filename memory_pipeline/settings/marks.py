"""What a workspace was made with and keeps: the time zone that cuts its days, its first day, its salt and the number of
its format; and that nobody else may look into it.

They are small files in `lake/`, each with a copy in `backups/marks/` that is put back where it is gone, empty or
zeroed: with another salt or zone every day would be made anew, with other ids. A workspace from before there was a mark
of the first day has the days of its tables, and of what its catalogue knows, instead.
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
FORMAT = 4
"""The format that this version writes: how many of `operations/migrations.py` a workspace has behind it."""
SALT_BYTES = 16


def keep_private(workspace: Path) -> None:
    """Let nobody but its owner into the workspace; in one from before this was looked after, into no file of it.

    Where the file system or another owner does not allow that, it stays as it is.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError):
        if not workspace.stat().st_mode & 0o077:
            return
        for folder, _, names in os.walk(workspace):
            for path in (Path(folder), *(Path(folder, name) for name in names)):
                if not path.is_symlink():
                    with contextlib.suppress(FileNotFoundError):
                        path.chmod(path.stat().st_mode & 0o700)
        workspace.chmod(0o700)


def open_to_others(workspace: Path) -> Iterator[Path]:
    """The folder and what lies in it that others than its owner may read, write or enter."""
    for folder, _, names in os.walk(workspace):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with contextlib.suppress(OSError):
                if not path.is_symlink() and path.stat().st_mode & 0o077:
                    yield path


def content(workspace: Path, name: str) -> bytes | None:
    """What the mark of this name says, as it is shared with other workspaces; None where it is not made."""
    if name == SALT:
        return next(filter(None, map(_salt_in, _places(workspace, SALT))), None)
    text = _kept(workspace, name)
    return f"{text}\n".encode() if text and _is_sound(name, text) else None


def make(workspace: Path, name: str, data: bytes) -> None:
    """Make the mark of this name, as `content` gives it of another workspace, unless there is one."""
    for path in _places(workspace, name):
        _make(path, data)


def kept_zone(workspace: Path) -> str | None:
    """The name of the zone that the workspace was made with; None while it is not made."""
    return _kept(workspace, ZONE)


def keep_zone(workspace: Path, zone: str) -> None:
    """Make the zone the workspace's own, if it has none yet."""
    _keep(workspace, ZONE, zone)


def kept_first_day(workspace: Path) -> date | None:
    """The first day that the workspace was made with; None while it has no mark. Raises `WrongFileError`."""
    path = workspace / "lake" / FIRST_DAY
    text = _kept(workspace, FIRST_DAY)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise WrongFileError(
            f"{path} should hold one day like 2025-01-31, not {text!r}. Fix it or remove it."
        ) from None


def first_day(workspace: Path, today: date) -> date:
    """The kept one, else the oldest day that anything stored is of, else today. Reads little, and writes nothing."""
    return kept_first_day(workspace) or min((*_stored(workspace), *_catalogued(workspace), today))


def keep_first_day(workspace: Path, session_days: Iterable[date], today: date) -> None:
    """Make the oldest of these days, or of what is stored, the workspace's first, if it has none yet; never a later one
    than today, for a clock that ran ahead makes no workspace of the future."""
    kept = kept_first_day(workspace)
    _keep(workspace, FIRST_DAY, f"{kept or min((*session_days, *_stored(workspace), today))}")


def kept_format(workspace: Path) -> int:
    """The number of the workspace's format; 0 of one from before there was a mark, and of a new one."""
    text = _kept(workspace, FORMAT_MARK)
    return int(text) if text and _is_sound(FORMAT_MARK, text) else 0


def keep_format(workspace: Path, number: int) -> None:
    """Raise it to this number."""
    for path in _places(workspace, FORMAT_MARK):
        before = path.read_bytes() if path.exists() else None
        write_atomically(path, f"{number}\n".encode(), expected=before, backups=None)


def salt(workspace: Path) -> bytes:
    """The workspace's own random bytes, made once."""
    places = _places(workspace, SALT)
    found = next(filter(None, map(_salt_in, places)), None) or os.urandom(SALT_BYTES)
    for path in places:
        if _salt_in(path) is None:  # gone, or of a disk that was full or is damaged
            path.unlink(missing_ok=True)
            _make(path, found)
    return places[0].read_bytes()


def _salt_in(path: Path) -> bytes | None:
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return None
    return found if len(found) >= SALT_BYTES and any(found) else None


def _stored(workspace: Path) -> Iterator[date]:
    """The days of the tables and of the daily logs, by the names of their files."""
    for path in (*workspace.glob("lake/*/????-??-??.parquet"), *workspace.glob("memory/????-??-??.md")):
        try:
            yield date.fromisoformat(path.stem)
        except ValueError:  # a name that only looks like a day
            continue


def _catalogued(workspace: Path) -> list[date]:
    """The oldest day of the sessions that are known, also of those that no run has read yet."""
    path = workspace / "lake" / "files" / "all.parquet"
    if not path.exists():
        return []
    import polars as pl

    try:
        days = pl.read_parquet(path, glob=False, columns=["days"]).explode("days", empty_as_null=True).unnest("days")
        return days["day"].drop_nulls().sort().head(1).to_list()
    except pl.exceptions.PolarsError:  # who reads the table says what to do about it
        return []


def _places(workspace: Path, name: str) -> tuple[Path, Path]:
    """Of the mark, and of its copy."""
    return workspace / "lake" / name, workspace / "backups" / "marks" / name


def _kept(workspace: Path, name: str) -> str | None:
    """What the mark says, or its copy where that alone is sound; unsound words where there are no others."""
    found = [text for text in map(_read, _places(workspace, name)) if text]
    return next((text for text in found if _is_sound(name, text)), found[0] if found else None)


def _is_sound(name: str, text: str) -> bool:
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


def _keep(workspace: Path, name: str, text: str) -> None:
    text = _kept(workspace, name) or text
    for path in _places(workspace, name):
        there = _read(path)
        if there is None or (_is_sound(name, text) and not _is_sound(name, there)):  # a disk was full, or is damaged
            path.unlink(missing_ok=True)
            _make(path, f"{text}\n".encode())


def _make(path: Path, content: bytes) -> None:
    """The file, whole or not at all; one that another process has made meanwhile stays."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename, it leaves what is there
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
