"""Paths as a user writes them in a setting."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def expand_user(path: Path) -> Path:
    """The path with `~` expanded. Raises `ValueError` if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("expected a directory; there is no such user") from None


def normalize(path: Path) -> Path:
    """The absolute path without `..`, so that a directory has one spelling; links are not followed."""
    return Path(os.path.abspath(expand_user(path)))  # noqa: PTH100 - resolve() would follow links


def is_list_of_paths(parts: Any) -> bool:
    """Whether the value is a list or tuple of strings and paths."""
    return isinstance(parts, list | tuple) and all(isinstance(part, str | Path) for part in parts)
