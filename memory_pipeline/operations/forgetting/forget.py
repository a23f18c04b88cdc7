"""The process of forgetting: search, store the request, store hashes, remove, and search again.

The request is in `forgetting.json` until everything is done: a killed process leaves either everything unchanged, or
that file, with which the next call continues. It contains the words and is deleted last.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from memory_pipeline.embeddings.opening import find_points, remove_points
from memory_pipeline.lake.rows import ForgottenRow
from memory_pipeline.lake.storage import SUFFIX, keep_version, object_cache, storage_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, replace_file
from memory_pipeline.operations import earlier_events
from memory_pipeline.operations.forgetting.changes import BY_HAND, Change, Found, file_changes
from memory_pipeline.operations.forgetting.databases import database_changes
from memory_pipeline.operations.forgetting.markdown import markdown_changes
from memory_pipeline.operations.forgetting.request import CannotForgetError, ForgetRequest, request_for
from memory_pipeline.operations.forgetting.rows import clean_tables, find_rows
from memory_pipeline.proposals.events import OpenLog
from memory_pipeline.proposals.remembering import REMEMBERED_LOCK
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION, WORDS, id_digest, words_digest
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.workspace.workspace import Workspace


def unfinished(settings: Settings) -> ForgetRequest | None:
    """The request of an interrupted call. Raises `CannotForgetError` for a damaged file."""
    path = _journal(settings)
    try:
        return ForgetRequest.from_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise CannotForgetError(
            f"{path} cannot be read ({error}). It records an interrupted `memory forget`: remove it and run the "
            f"command again for the same text."
        ) from None


def look(settings: Settings, named: str, *, by_hand: bool = False) -> tuple[ForgetRequest, list[Found]]:
    """The request, and everything to be removed, including matching lines of a user. Raises `CannotForgetError`."""
    request = request_for(settings, named, by_hand=by_hand)
    found = find_rows(Lake.from_settings(settings), request)
    return request, [*found, *_outside_tables(settings, request)]


def forget(settings: Settings, request: ForgetRequest, now: datetime) -> None:
    """Remove it from everything. Safe to repeat. Raises `TryAgainLaterError` if something is in use."""
    journal = _journal(settings)
    replace_file(journal, request.to_json(), mode=0o600)
    workspace = Workspace.open(settings)
    _leave_hashes(workspace, request, now)
    remove_points(settings, request.points, lambda payload: _in_payload(request, payload))
    _apply(markdown_changes(settings, request))
    with OpenLog.open(workspace), FileLock(settings.backups / REMEMBERED_LOCK, timeout=LOCK_SECONDS):
        clean_tables(workspace.lake, request)  # no decisions meanwhile, as their rows would be lost
    reconcile(workspace, now)  # updates REVIEW.md and the files of connected agents
    _apply(file_changes(settings, request))
    _apply(database_changes(settings, request))
    _clean_versions(settings)
    _apply(markdown_changes(settings, request))  # again, for the backups of these writes
    if hasattr(os, "sync"):  # a power cut must not restore unsynced data once the request is deleted
        os.sync()
    journal.unlink()


def left(settings: Settings, request: ForgetRequest) -> list[Found]:
    """The lines that are still found, except those that a user keeps."""
    return [found for found in _outside_tables(settings, request) if found.place != BY_HAND]


def now_utc() -> datetime:
    """The current time."""
    return datetime.now(UTC)


def _apply(changes: Iterator[Change]) -> None:
    for change in changes:
        change.apply()


def _outside_tables(settings: Settings, request: ForgetRequest) -> Iterator[Found]:
    points = find_points(settings, request.points, lambda payload: _in_payload(request, payload))
    yield from (Found("index", text) for text in points.values())
    for changes in (markdown_changes, file_changes, database_changes):
        for change in changes(settings, request):
            yield from change.found


def _in_payload(request: ForgetRequest, payload: Any) -> bool:
    if payload.get("session_id") in request.sessions:
        return True
    return any(isinstance(value, str) and request.wanted.are_in(value) for value in payload.values())


def _leave_hashes(workspace: Workspace, request: ForgetRequest, now: datetime) -> None:
    """Store the hashes that identify forgotten text when it is read again."""
    salt, lake = workspace_salt(workspace.settings), workspace.lake
    rows: list[ForgottenRow] = []
    for kind, names in ((SESSION, request.sessions), (MESSAGE, [] if request.sessions else request.messages)):
        rows += [{"kind": kind, "digest": id_digest(salt, kind, n), "words": None, "forgotten_at": now} for n in names]
    rows += [
        {"kind": WORDS, "digest": words_digest(salt, sequence), "words": len(sequence), "forgotten_at": now}
        for sequence in request.wanted.sequences
    ]
    made = pl.DataFrame(rows, schema=TABLES["forgotten"].columns)
    key = ["kind", "digest"]
    lake.update("forgotten", lambda before: pl.concat([before, made]).unique(key, keep="first", maintain_order=True))


def _clean_versions(settings: Settings) -> None:
    """Replace the versions of tables by one of the current file."""
    storage = storage_of(settings)
    if storage.is_far:
        storage.remove(storage.put_aside())
        shutil.rmtree(object_cache(settings), ignore_errors=True)
    earlier_events.remove_backups(storage)
    versions = [old.key for table in TABLES for old in storage.backups.files(table, suffix=f"{SUFFIX}.")]
    storage.backups.remove(versions)
    for key in sorted({key.partition(f"{SUFFIX}.")[0] + SUFFIX for key in versions}):
        if now := storage.state(key):
            keep_version(storage, key, storage.read(now))


def _journal(settings: Settings) -> Path:
    return settings.workspace / "forgetting.json"
