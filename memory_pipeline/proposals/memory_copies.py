"""Copies of MEMORY.md in `backups/`, from which the file is restored if it is gone.

Each reconciliation keeps a copy of the current file. A file with any content is left to the user, whatever lines are
missing.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import copies_of, is_blank
from memory_pipeline.proposals.events import PROMOTED, ProposalLog
from memory_pipeline.proposals.memory_file import lines_of


def newest_copy(memory_file: Path) -> Path | None:
    """The newest copy with content."""
    copies = copies_of(memory_file, memory_file.parent / "backups")
    return next((path for path in reversed(copies) if not is_blank(path.read_bytes())), None)


def is_gone(data: bytes | None) -> bool:
    """Whether MEMORY.md is missing, or only the zeros of a power cut are left. A blank file may have been emptied by
    the user."""
    return data is None or (bool(data) and not data.strip(b"\0"))


def is_reviewed_elsewhere(lake: Lake, memory_file: Path) -> bool:
    """Whether the workspace never had a MEMORY.md, but another workspace with the same lake in a bucket may have it."""
    return lake.storage.is_far and not memory_file.exists() and newest_copy(memory_file) is None


def memory_loss(lake: Lake, memory_file: Path) -> str | None:
    """A message if MEMORY.md is missing or blank although lines were promoted, with a way to restore them."""
    data = memory_file.read_bytes() if memory_file.exists() else None
    if (data is not None and not is_blank(data)) or is_reviewed_elsewhere(lake, memory_file):
        return None
    copy = newest_copy(memory_file)
    has_lines = copy is None or bool(lines_of(copy.read_bytes()))
    if not has_lines or ProposalLog(lake).events(PROMOTED).is_empty():
        return None
    state = "is missing" if data is None else "is empty"
    back = "" if is_gone(data) else "remove it, then "
    back += "the next line that you approve restores it"
    if copy:
        back = f"`cp {shlex.quote(str(copy))} {shlex.quote(str(memory_file))}` restores it"
    return f"{memory_file} {state}, although lines were approved: {back}. To start over, write `# Memory` into it."
