"""The last versions of tables that cannot be made again: what was offered, shown, decided, promoted and spent.

Each time such a file is written, a copy of it goes to `backups/lake/<table>/`. Where the file is damaged or gone, the
newest copy is put back: none of these files is ever removed by us, an empty day is an empty file.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import polars as pl

from memory_pipeline.markdown.safe_write import aside, write_atomically

VERSIONS_KEPT = 3
_STAMP = "%Y%m%dT%H%M%S.%fZ"


def versions_folder(root: Path, table: str) -> Path:
    """Where the versions of a table of the lake at ``root`` lie."""
    return root.parent / "backups" / root.name / table


def keep_version(root: Path, table: str, path: Path) -> None:
    """Copy what has just been written, and let go of all but the newest three versions."""
    folder = versions_folder(root, table)
    if any(newest.read_bytes() == path.read_bytes() for newest in _versions(folder, path.name)[:1]):
        return
    version = folder / f"{path.name}.{datetime.now(UTC):{_STAMP}}"
    write_atomically(version, path.read_bytes(), expected=None, backups=None)
    for old in _versions(folder, path.name)[VERSIONS_KEPT:]:
        old.unlink(missing_ok=True)


def lost(root: Path, table: str) -> list[Path]:
    """The table's files that are gone, empty or cut off, though there are versions of them."""
    folder = versions_folder(root, table)
    names = {version.name.partition(".parquet.")[0] for version in folder.glob("*.parquet.*")}
    return [path for name in sorted(names) if not _has_both_ends(path := root / table / f"{name}.parquet")]


def put_back(root: Path, table: str, path: Path) -> str | None:
    """The newest whole version in the place of a file, which is set aside where it is there; a sentence about it, or
    None where there is no such version."""
    whole = next(filter(_is_whole, _versions(versions_folder(root, table), path.name)), None)
    if whole is None:
        return None
    state = "was gone"
    if path.exists():
        broken = path.replace(aside(path))
        state = f"was damaged and is kept as {broken.name}"
    write_atomically(path, whole.read_bytes(), expected=None, backups=None)
    return f"{path} {state}; its last version was put back from {whole}."


def _versions(folder: Path, name: str) -> list[Path]:
    """The newest first."""
    return sorted(folder.glob(f"{name}.*"), reverse=True)


def _is_whole(path: Path) -> bool:
    """Whether all of it can be read; the files are small."""
    try:
        pl.read_parquet(BytesIO(path.read_bytes()))
    except (pl.exceptions.PolarsError, OSError):
        return False
    return True


def _has_both_ends(path: Path) -> bool:
    """Whether it begins and ends as Parquet does: a quick look that finds what was not written to its end."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            file.seek(-4, os.SEEK_END)
            return begin == file.read(4) == b"PAR1"
    except OSError:  # also where it has fewer than four bytes
        return False
