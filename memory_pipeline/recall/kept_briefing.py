"""Briefings as they were last rendered, one file per folder in `briefings/` of the workspace, so that a hook reads one
file and no table.

A kept briefing holds as long as all that it came from is as it was: MEMORY.md by its size and time, each table by the
time of its folder (a table's files are never changed in place, only replaced), the settings and the folder's
repository. Deleting the files costs one rendering.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipeline import __version__
from memory_pipeline.recall.folders import place_of_folder
from memory_pipeline.settings import Settings

VERSION = "1"
"""Raise it when the same rows would be told in other words."""
TABLES = (
    *("files", "sessions", "windows", "segments", "observations", "reflections"),
    *("day_distillations", "week_distillations", "month_distillations"),
    *("proposals", "supports", "decisions", "showings", "displacements", "shown_days", "reoffers"),
)
"""What a briefing is made from."""
SETTINGS = ("timezone", "user_name", "token_estimate", "proposal_expiry_days", "brief")
MAX_KEPT = 100
"""Folders; the one that was asked for longest ago goes first."""
SETTLED_SECONDS = 1.0
"""What was written just now may be written again within the same tick of the file system's clock."""


@dataclass(frozen=True)
class KeptBriefing:
    """What `memory brief` prints, and what it logs. `problems` are sentences for whoever looks."""

    text: str
    project: str | None
    tokens: int
    shown: list[str]
    sections: list[dict[str, Any]]
    left_out: int
    problems: list[str]


def briefing_for(settings: Settings, folder: Path) -> KeptBriefing:
    """The briefing for a session that begins in the folder: the kept one where it holds, else a new one, kept."""
    place = place_of_folder(folder)
    path = (
        settings.workspace / "briefings" / f"{hashlib.sha256(place.cwd.encode(errors='replace')).hexdigest()[:16]}.json"
    )
    sources = list(_sources(settings))  # before anything is read: what changes meanwhile is found the next time
    state = repr((__version__, VERSION, [repr(getattr(settings, name)) for name in SETTINGS], place, sources))
    if kept := _kept(path, state):
        return kept
    from memory_pipeline.recall.briefing import brief_at

    made = brief_at(settings, place)
    briefing = KeptBriefing(**{name: getattr(made, name) for name in KeptBriefing.__annotations__})
    if not made.problems and all(changed < time.time_ns() - SETTLED_SECONDS * 1e9 for _, _, changed in sources):
        with contextlib.suppress(OSError):  # a full disk costs the next call its time
            _keep(path, state, briefing)
    return briefing


def _sources(settings: Settings) -> Iterator[tuple[str, int, int]]:
    """What a briefing comes from, each with its size and the nanosecond of its last change; what is not there has
    none."""
    for path in (settings.memory_file, *(settings.lake_dir / table for table in TABLES)):
        with contextlib.suppress(OSError):
            found = path.stat()
            yield path.name, found.st_size, found.st_mtime_ns


def _kept(path: Path, state: str) -> KeptBriefing | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(path.read_bytes())
        if found["state"] == state:
            return KeptBriefing(**found["briefing"])
    return None


def _keep(path: Path, state: str, briefing: KeptBriefing) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    content = json.dumps({"state": state, "briefing": vars(briefing)}, ensure_ascii=False)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content.encode("utf-8", "replace"))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    others = sorted(path.parent.glob("*.json"), key=lambda other: other.stat().st_mtime_ns, reverse=True)
    for old in others[MAX_KEPT:]:
        old.unlink(missing_ok=True)
