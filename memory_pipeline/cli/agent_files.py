"""Changes to an agent's file, as they are shown before the user confirms them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_pipeline.cli.console import fail, say
from memory_pipeline.markdown.safe_write import decode


def show_change(path: Path, old: bytes | None, new: bytes | None) -> None:
    """Print the path, the kind of change and a diff."""
    became = "new file" if old is None else "deleted, as it did not exist before" if new is None else "changed"
    say(f"{path} ({became})", "bold")
    before, after = (_lines(data) for data in (old, new))
    for line in list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]:
        say(f"  {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")


@contextmanager
def unless_unwritable(path: Path) -> Iterator[None]:
    """Report a file that cannot be read or written, which the user has to fix."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or "cannot be used").lower()
        named = Path(error.filename or path)
        where = path if named.parent == path.parent else named  # not the temporary file next to it
        raise fail(f"{where}: {why}. {path} was not changed; fix that and run it again.") from None


def _lines(data: bytes | None) -> list[str]:
    text = decode(data or b"").encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").split("\n") if text else []
