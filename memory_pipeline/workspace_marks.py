"""What a workspace was made with and keeps: the time zone that cuts its days, its first day, and its salt.

They are small files in `lake/`. A workspace from before there was a mark of the first day has the days of its
tables, and of what its catalogue knows, instead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from memory_pipeline.memory_json import WrongFileError

ZONE, FIRST_DAY, SALT = "timezone", "start_date", "salt"
_SALT_BYTES = 16


def kept_zone(workspace: Path) -> str | None:
    """The name of the zone that the workspace was made with; None while it is not made."""
    return _read(workspace / "lake" / ZONE)


def keep_zone(workspace: Path, zone: str) -> None:
    """Make the zone the workspace's own, if it has none yet."""
    _keep(workspace / "lake" / ZONE, zone)


def kept_first_day(workspace: Path) -> date | None:
    """The first day that the workspace was made with; None while it has no mark. Raises `WrongFileError`."""
    path = workspace / "lake" / FIRST_DAY
    text = _read(path)
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
    if not (workspace / "lake" / FIRST_DAY).exists():
        _keep(workspace / "lake" / FIRST_DAY, f"{min((*session_days, *_stored(workspace), today))}")


def salt(workspace: Path) -> bytes:
    """The workspace's own random bytes, made once."""
    path = workspace / "lake" / SALT
    with contextlib.suppress(FileNotFoundError):
        if len(salt := path.read_bytes()) >= _SALT_BYTES:
            return salt
        path.unlink()  # a disk was full when it was made
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".salt.{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(os.urandom(_SALT_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename, it leaves what another process has made meanwhile
        temporary.unlink()
    return path.read_bytes()


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


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _keep(path: Path, text: str) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", "utf-8")
