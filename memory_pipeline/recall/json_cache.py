"""Cache files in JSON. Deleting them only costs time."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any


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
