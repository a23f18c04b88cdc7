"""Copies of MEMORY.md in `backups/`, and the message and content when the file is gone.

Each reconciliation leaves a copy of the current file. A file with any content is the user's business, whatever lines
are missing in it.
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
    """The newest copy that says anything, and which promoted lines stand in it, or in no copy at all."""

    newest: Path | None
    data: bytes | None
    there: frozenset[str]
    in_none: frozenset[str]
    """Written by a version that kept a copy only before the next change, or their copies were removed."""

    @classmethod
    def from_backups(cls, memory_file: Path, promoted: Collection[str]) -> Self:
        """``promoted`` are the ids that were put into the file by us."""
        paths = copies_of(memory_file, memory_file.parent / "backups")
        found = [(path, path.read_bytes()) for path in paths]
        found = [(path, data) for path, data in found if not is_blank(data)]
        ids = [frozenset(line.proposal_id for line in lines_of(data) if line.proposal_id) for _, data in found]
        # where older copies were let go of, a line that is in none may be one that a user took out long ago
        is_all = len(paths) < BACKUPS_KEPT
        in_none = frozenset(promoted).difference(*ids) if is_all else frozenset[str]()
        if not found:
            return cls(None, None, frozenset(), in_none)
        return cls(*found[-1], ids[-1] & frozenset(promoted), in_none)


def is_gone(data: bytes | None) -> bool:
    """Whether MEMORY.md is missing, or only the zeros of a power cut are left; a user may have emptied an empty one."""
    return data is None or (bool(data) and not data.strip(b"\0"))


def is_reviewed_elsewhere(lake: Lake, memory_file: Path) -> bool:
    """Whether the workspace never had a MEMORY.md, and another one over the same lake in a bucket may have it."""
    return (
        lake.storage.is_far and not memory_file.exists() and not copies_of(memory_file, memory_file.parent / "backups")
    )


def memory_loss(lake: Lake, memory_file: Path) -> str | None:
    """A note that MEMORY.md is missing or blank though lines were promoted, with their number and a way to restore
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
        back = f"`cp {shlex.quote(str(copies.newest))} {shlex.quote(str(memory_file))}` brings it back"
        back += f", and so does {next_one}" if is_gone(data) else ""
    else:
        back = f"{next_one} brings it back" if is_gone(data) else f"remove it, then {next_one} brings it back"
    state = "is gone" if data is None else "is empty"
    return f"{memory_file} {state}, with {lines}: {back}. To start over, write `# Memory` into it."
