"""Cache files in JSON, and the changes that make them invalid. Deleting them only costs time."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memory_pipeline.lake.storage import storage_of
from memory_pipeline.settings import Settings


def read_json(path: Path) -> Any:
    """The content of the file; None if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_bytes())
    return None


def write_json(path: Path, content: Any) -> None:
    """Replace the file atomically, readable by its owner only. Without space or permission nothing is written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def last_changes(settings: Settings, files: Iterable[Path], tables: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The time of the last change of each file and table; those that do not exist are left out."""
    for path in files:
        with contextlib.suppress(OSError):
            yield path.name, path.stat().st_mtime_ns
    storage = storage_of(settings)
    for table in tables:
        if changed := storage.changed_at(table):
            yield table, changed
