"""Atomic changes to files of agents, with a backup."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memory_pipeline.agents.agents import CannotConnectError
from memory_pipeline.markdown.safe_write import update_file, write_atomically
from memory_pipeline.settings import Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Edit = Callable[[bytes | None], bytes | None]
"""A function from the old bytes of a file to the new ones; None means no file."""

T = TypeVar("T", bound="DataclassInstance")


def edit_file(settings: Settings, path: Path, edit: Edit) -> None:
    """Replace the file by the result of ``edit``. Raises OSError, and the errors of ``edit`` before the file is
    changed."""
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
    """The bytes of the file; None if it does not exist."""
    return path.read_bytes() if path.exists() else None


def read_entries(path: Path, entry: Callable[..., T], command: str) -> list[T]:
    """The entries of a list written by `write_entries`; empty if it does not exist. Raises `CannotConnectError` for a
    damaged list, with the ``command`` that restores it."""
    try:
        return [entry(**row) for row in json.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise CannotConnectError(
            f"{path} cannot be read: {error}. Remove it and run `{command}` again for each agent."
        ) from None


def write_entries(path: Path, entries: Iterable[T]) -> None:
    """Replace the list. Raises OSError."""
    new = json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False).encode() + b"\n"
    write_atomically(path, new, expected=bytes_of(path), backups=None)


def tilde_path(path: Path) -> str:
    """The path with `~` for the user's home, so that the file is valid on another machine."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
