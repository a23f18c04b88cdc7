"""Copies of MEMORY.md in `backups/`, and the message and content to restore if the file is gone.

Each reconciliation keeps a copy of the current file. A file with any content is left to the user, whatever lines are
missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import BACKUPS_KEPT, copies_of, is_blank
from memory_pipeline.proposals.events import PROMOTED, ProposalLog
from memory_pipeline.proposals.memory_file import lines_of


@dataclass(frozen=True)
class MemoryCopies:
    """The newest copy with content, and the promoted lines that are in it, and those that are in no copy."""

    newest: Path | None
    data: bytes | None
    there: frozenset[str]
    in_none: frozenset[str]
    """Ids in no copy: written by a version that kept a copy only before the next change, or the copies were removed."""

    @classmethod
    def from_backups(cls, memory_file: Path, promoted: Collection[str]) -> Self:
        """``promoted`` are the ids of lines that this program added to the file."""
        paths = copies_of(memory_file, memory_file.parent / "backups")
        found = [(path, path.read_bytes()) for path in paths]
        found = [(path, data) for path, data in found if not is_blank(data)]
        ids = [frozenset(line.proposal_id for line in lines_of(data) if line.proposal_id) for _, data in found]
        # if older copies were deleted, a line that is in none may have been removed by the user long ago
        is_all = len(paths) < BACKUPS_KEPT
        in_none = frozenset(promoted).difference(*ids) if is_all else frozenset[str]()
        if not found:
            return cls(None, None, frozenset(), in_none)
        return cls(*found[-1], ids[-1] & frozenset(promoted), in_none)


def is_gone(data: bytes | None) -> bool:
    """Whether MEMORY.md is missing, or only the zeros of a power cut are left. A blank file may have been emptied by
    the user."""
    return data is None or (bool(data) and not data.strip(b"\0"))


def is_reviewed_elsewhere(lake: Lake, memory_file: Path) -> bool:
    """Whether the workspace never had a MEMORY.md, but another workspace with the same lake in a bucket may have it."""
    return (
        lake.storage.is_far and not memory_file.exists() and not copies_of(memory_file, memory_file.parent / "backups")
    )


def memory_loss(lake: Lake, memory_file: Path) -> str | None:
    """A message if MEMORY.md is missing or blank although lines were promoted, with their number and a way to restore
    them."""
    data = memory_file.read_bytes() if memory_file.exists() else None
    if (data is not None and not is_blank(data)) or is_reviewed_elsewhere(lake, memory_file):
        return None
    promotions = ProposalLog(lake).events(PROMOTED)
    own = set(promotions.filter("already_there")["proposal_id"])
    copies = MemoryCopies.from_backups(memory_file, set(promotions["proposal_id"]) - own)
    count = len(copies.there | copies.in_none | own)
    if not count:
        return None
    lines = "1 approved line" if count == 1 else f"{count} approved lines"
    next_one = "the next line that you approve"
    if copies.newest and not copies.in_none:
        back = f"`cp {shlex.quote(str(copies.newest))} {shlex.quote(str(memory_file))}` restores it"
        back += f", and so does {next_one}" if is_gone(data) else ""
    else:
        back = f"{next_one} restores it" if is_gone(data) else f"remove it, then {next_one} restores it"
    state = "is missing" if data is None else "is empty"
    return f"{memory_file} {state}, with {lines}: {back}. To start over, write `# Memory` into it."
