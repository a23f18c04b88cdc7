"""Files of agents, changed whole or not at all, with a backup."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from memory_pipeline.markdown.safe_write import update_file
from memory_pipeline.settings import Settings

Edit = Callable[[bytes | None], bytes | None]
"""The new bytes of a file from its old bytes; None stands for no file."""


def edit_file(settings: Settings, path: Path, edit: Edit) -> None:
    """Replace the file by what ``edit`` makes of it. Raises OSError, and what ``edit`` raises before it is touched."""
    named = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    removed = False

    def edited(old: bytes | None) -> bytes:
        nonlocal removed
        new = edit(old)
        removed = new is None
        return new or b""

    update_file(path, edited, backups=settings.backups / "connections" / named)
    if removed and path.read_bytes() == b"":
        path.resolve().unlink()


def bytes_of(path: Path) -> bytes | None:
    """The bytes of the file; None where there is none."""
    return path.read_bytes() if path.exists() else None


def told_path(path: Path) -> str:
    """The path with `~` for the user's home, so that a file that is carried to another machine still fits."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
