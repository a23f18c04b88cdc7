"""Cached briefings, one file per folder in `briefings/` of the workspace, so that a hook reads one file and no table.

A cached briefing is valid while all its sources are unchanged: MEMORY.md by size and time, each table by the time of
its folder (files of a table are only replaced, never changed in place), the settings and the repository of the folder.
Deleting the files costs one rendering.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from memory_pipeline import __version__
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.recall.assembly import Briefing
from memory_pipeline.recall.folders import place_of_folder
from memory_pipeline.recall.json_cache import read_json, write_json
from memory_pipeline.sessions.projects import Place
from memory_pipeline.settings import Settings

VERSION = "2"
"""The version of the format. Increase it when the same rows would be rendered in other words."""
TABLES = (
    *("files", "sessions", "windows", "segments", "observations", "reflections"),
    *("day_distillations", "week_distillations", "month_distillations"),
    *("proposals", "remembered", "supports", "events"),
)
"""The tables that a briefing reads."""
SETTINGS = ("timezone", "user_name", "token_estimate", "proposal_expiry_days", "brief_tokens")
MAX_KEPT = 100
"""Maximum number of folders; the least recently used one is removed first."""
MAX_REFRESHED = 10
PATIENCE = 0.4
"""Seconds to wait for a new briefing. A hook has one second in total, a third of which is over by then."""
MAX_SECONDS = 60
SETTLED_SECONDS = 0.05
"""Files younger than this may be written again within the same tick of the file system's clock."""


def briefing_for(settings: Settings, where: Path | Place) -> Briefing:
    """The briefing for a session that begins in the folder or at the place: the cached one if valid, else a new one.

    If a new one takes longer than `PATIENCE`, the previous one is returned, and the next session gets the new one.
    """
    place = place_of_folder(where) if isinstance(where, Path) else where
    path = _path(settings, place)
    if kept := _read_cached(path, _state(settings, place)):
        return kept
    if "polars" in sys.modules or not hasattr(os, "fork"):  # polars has threads, with which a fork is unsafe
        return _render(settings, place)
    return _render_in_child(settings, place, _read_cached(path, None))


def refresh_kept(settings: Settings) -> None:
    """Render outdated briefings of the most recently used folders, after a run or a review, so that the next session
    need not wait. Never raises."""
    with contextlib.suppress(Exception):
        for path in _newest(settings.workspace / "briefings")[:MAX_REFRESHED]:
            place = Place(*json.loads(path.read_bytes())["place"])
            if _read_cached(path, _state(settings, place)) is None:
                time.sleep(SETTLED_SECONDS)
                _render(settings, place)


def _render(settings: Settings, place: Place) -> Briefing:
    """A new briefing, which is cached if it is complete."""
    from memory_pipeline.recall.briefing import brief_at

    sources = list(_sources(settings))  # before reading: concurrent changes are detected next time
    state = _state(settings, place)
    briefing = brief_at(settings, place)
    if not briefing.problems and all(changed < time.time_ns() - SETTLED_SECONDS * 1e9 for _, changed in sources):
        _write_cached(_path(settings, place), state, place, briefing)
    return briefing


def _render_in_child(settings: Settings, place: Place, before: Briefing | None) -> Briefing:
    """A new briefing from a process in its own session, which survives a hook that is killed for taking too long and
    still stores the briefing. Waits without a limit if there is no earlier briefing."""
    reading, writing = os.pipe()
    if not os.fork():
        try:
            os.setsid()
            signal.alarm(MAX_SECONDS)  # ends the process if it hangs
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):  # a hook reads until all writers have closed them
                os.dup2(nothing, stream)
            os.write(writing, json.dumps(vars(_render(settings, place))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        is_there = before is None or bool(select.select([answer], [], [], PATIENCE)[0])
        stored = answer.read() if is_there else b""
    if stored:
        with contextlib.suppress(ValueError, TypeError):
            return Briefing(**json.loads(stored))
    return before or _render(settings, place)  # the other process died


def _path(settings: Settings, place: Place) -> Path:
    name = hashlib.sha256(place.cwd.encode(errors="replace")).hexdigest()[:16]
    return settings.workspace / "briefings" / f"{name}.json"


def _state(settings: Settings, place: Place) -> str:
    """The fingerprint of all sources of a briefing."""
    given = [repr(getattr(settings, name)) for name in SETTINGS]
    return repr((__version__, VERSION, given, place, list(_sources(settings))))


def _sources(settings: Settings) -> Iterator[tuple[str, int]]:
    """The sources of a briefing with their last change; sources that do not exist are left out."""
    for path in (settings.memory_file, settings.outcomes_file):
        with contextlib.suppress(OSError):
            yield path.name, path.stat().st_mtime_ns
    storage = storage_of(settings)
    for table in TABLES:
        if changed := storage.changed_at(table):
            yield table, changed


def _read_cached(path: Path, state: str | None) -> Briefing | None:
    """The briefing in the file, if it has this state; with None, in any state."""
    with contextlib.suppress(TypeError, KeyError):
        found = read_json(path)
        if state in (None, found["state"]):
            return Briefing(**found["briefing"])
    return None


def _write_cached(path: Path, state: str, place: Place, briefing: Briefing) -> None:
    write_json(path, {"state": state, "place": place[:3], "briefing": vars(briefing)})
    with contextlib.suppress(OSError):
        for old in _newest(path.parent)[MAX_KEPT:]:
            old.unlink()


def _newest(folder: Path) -> list[Path]:
    """The cached briefings, most recently rendered first."""
    return sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
