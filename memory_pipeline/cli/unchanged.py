"""Cached results of a run that left nothing to do: without changes, the next one prints them without loading Dagster.

Dagster takes seconds to load, and frequent runs mostly find nothing. A change is one of a file of the tables, the
index, Dagster's results, user files or connected agents; of a setting; of the code; of the day. If Dagster's results
are not in files nothing is cached, as changes cannot be detected. A result with waiting work is never cached, so every
run checks it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from memory_pipeline.agents.agents import CannotConnectError
from memory_pipeline.agents.connecting import connections
from memory_pipeline.days import today
from memory_pipeline.distillation.stage import due_periods, stages_of
from memory_pipeline.embeddings.health import lexical_only
from memory_pipeline.lake.opening import storage_of
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import is_in_files
from memory_pipeline.workspace.workspace import Workspace

_CODE = Path(__file__).parents[1]
_NOT_STATE = (".lock", ".db-shm", "-journal")


def kept_outcome(settings: Settings, days: Sequence[date]) -> dict[str, Any] | None:
    """The summary of the run that left nothing to do over these days; None where there was none, or something changed
    since."""
    try:
        kept = json.loads(_kept_in(settings).read_bytes())
        return dict(kept["summary"]) if kept["state"] == _state(settings, days) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_outcome(
    settings: Settings,
    catalogue: Catalogue,
    days: Sequence[date],
    due: Sequence[date] | None,
    summary: Mapping[str, Any],
) -> None:
    """Keep what a run came to, if it left nothing to do: no day that is out of date, none of `due` (None: all) to be
    distilled, nothing that waits or is not well."""
    waits = summary["problems"] or summary["set_aside"] or summary["days_unfinished"] or summary["days_by_words"]
    if waits or lexical_only(settings) or not is_in_files(settings):
        return
    if Stages.from_settings(settings, catalogue).runs_for(days):
        return
    if any(due_periods(stage, due) for stage in stages_of(Workspace.open(settings, for_planning=True))):
        return
    content = json.dumps({"state": _state(settings, days), "summary": summary}, default=str).encode()
    path = _kept_in(settings)
    with suppress(OSError):  # a full disk: the next run looks for itself
        write_atomically(path, content, expected=path.read_bytes() if path.exists() else None, backups=None)


def _kept_in(settings: Settings) -> Path:
    """Among Dagster's files, as the summary has results of checks."""
    return settings.dagster_home / "nothing_to_do.json"


def _state(settings: Settings, days: Sequence[date]) -> str:
    told = [settings.model_dump_json(), f"{today(settings.zone)}", *map(str, days)]
    told += [f"{path} {size} {at}" for path, size, at in sorted(_files(settings))]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _files(settings: Settings) -> Iterator[tuple[str, int, int | str]]:
    yaml, events = settings.dagster_home / "dagster.yaml", settings.dagster_home / "history/runs/index.db"
    yield from _sized(f"{path}" for path in (settings.memory_file, settings.review_file, yaml, events, f"{events}-wal"))
    with suppress(CannotConnectError):  # a run tells of a list that cannot be read
        yield from _sized(connection.path for connection in connections(settings))
    for file in storage_of(settings).all_files():
        if not file.key.endswith(_NOT_STATE):
            yield file.key, file.size, file.version
    folders_of_ours = ("memory", "connections")
    for folder in (settings.index_dir, *map(settings.workspace.joinpath, folders_of_ours), _CODE):
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield from _sized(f"{place}/{name}" for name in names if not name.endswith(_NOT_STATE))


def _sized(paths: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    for path in paths:
        with suppress(OSError):
            found = os.stat(path)  # noqa: PTH116 - of thousands of files
            yield path, found.st_size, found.st_mtime_ns
