"""Forgetting from beginning to end: look, keep in mind what is to be done, leave hashes, take out, look again.

What is to be done is kept in `forgetting.json` until it is: a process that is killed leaves either all as it was, or
that file, and the next call goes on from it. It holds the words and goes last.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from memory_pipeline.embeddings.removing import find_points, remove_points
from memory_pipeline.lake.opening import kept_objects, storage_of
from memory_pipeline.lake.rows import ForgottenRow
from memory_pipeline.lake.storage import SUFFIX
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.lake.versions import keep_version
from memory_pipeline.llm.batch_file import read_batch_file
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, write_atomically
from memory_pipeline.operations import earlier_events
from memory_pipeline.operations.forgetting.databases import clean_events, find_events
from memory_pipeline.operations.forgetting.markdown import clean_files, find_lines
from memory_pipeline.operations.forgetting.request import CannotForgetError, ForgetRequest, request_for
from memory_pipeline.operations.forgetting.rows import Found, clean_tables, cleaned, find_rows, repeats
from memory_pipeline.operations.forgetting.texts import clean_texts, find_texts
from memory_pipeline.proposals.events import OpenLog
from memory_pipeline.proposals.remembering import REMEMBERED_LOCK
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION, WORDS, id_digest, words_digest
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.workspace.workspace import Workspace

BY_HAND = "lines of yours"
INDEX = "index"


def unfinished(settings: Settings) -> ForgetRequest | None:
    """What a call before began and did not end. Raises `CannotForgetError` for a damaged file."""
    path = _journal(settings)
    try:
        return ForgetRequest.from_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise CannotForgetError(
            f"{path} cannot be read ({error}). It says what `memory forget` had begun: remove it and name that again."
        ) from None


def look(settings: Settings, named: str, *, by_hand: bool = False) -> tuple[ForgetRequest, list[Found]]:
    """What is meant, and all that goes, with the lines of a user that say it. Raises `CannotForgetError`."""
    request = request_for(settings, named, by_hand=by_hand)
    found = find_rows(Lake.from_settings(settings), request)
    if read_batch_file(settings).open and request.windows:
        raise CannotForgetError(
            "A batch is out at the provider, and its answers may say it again. Take them in first (`memory admin "
            "batch`), then forget."
        )
    return request, [*found, *_elsewhere(settings, request)]


def forget(settings: Settings, request: ForgetRequest, now: datetime) -> None:
    """Take it out of everything. Safe to repeat. Raises `TryAgainLaterError` where something is in use."""
    _keep(settings, request)
    workspace = Workspace.open(settings)
    _leave_hashes(workspace, request, now)
    remove_points(settings, request.points, lambda payload: _in_payload(request, payload))
    clean_files(settings, request)
    with OpenLog.open(workspace), FileLock(settings.backups / REMEMBERED_LOCK, timeout=LOCK_SECONDS):
        clean_tables(workspace.lake, request)  # nobody decides or remembers meanwhile: their rows would be lost
    reconcile(workspace, now)  # REVIEW.md and what connected agents are shown
    clean_texts(settings, request)
    clean_events(settings, request)
    _clean_versions(settings, request)
    clean_files(settings, request)  # once more: the backups of what was written now
    if hasattr(os, "sync"):  # before nobody knows of it any more: a power cut may bring back what was not written out
        os.sync()
    _journal(settings).unlink()


def left(settings: Settings, request: ForgetRequest) -> list[Found]:
    """What of it can still be found, but for what a user keeps."""
    return [found for found in _elsewhere(settings, request) if found.place != BY_HAND]


def _elsewhere(settings: Settings, request: ForgetRequest) -> Iterator[Found]:
    """Outside of the tables."""
    points = find_points(settings, request.points, lambda payload: _in_payload(request, payload))
    yield from (Found(INDEX, text) for text in points.values())
    for file, cut in find_lines(settings, request):
        yield from (Found(file.place, line) for line in cut.taken)
        if not file.is_copy:
            yield from (Found(BY_HAND, f"{file.path}: {line}") for line in cut.left)
    yield from find_texts(settings, request)
    yield from find_events(settings, request)


def _in_payload(request: ForgetRequest, payload: Any) -> bool:
    if payload.get("session_id") in request.sessions:
        return True
    return any(isinstance(value, str) and request.wanted.are_in(value) for value in payload.values())


def _leave_hashes(workspace: Workspace, request: ForgetRequest, now: datetime) -> None:
    """By which all that is read later is known."""
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


def _clean_versions(settings: Settings, request: ForgetRequest) -> None:
    """Of the versions of tables those go that have a row which goes; what is there now has one of its own."""
    storage = storage_of(settings)
    if storage.is_far:
        storage.remove(storage.put_aside())
        shutil.rmtree(kept_objects(settings), ignore_errors=True)
    earlier_events.remove_backups(storage)
    for table in TABLES:
        for version in storage.backups.files(table, suffix=f"{SUFFIX}."):
            try:
                frame = pl.read_parquet(BytesIO(storage.backups.read(version)))
            except (pl.exceptions.PolarsError, OSError):
                storage.backups.remove([version.key])
                continue
            columns = TABLES[table].columns.items()
            frame = frame.with_columns(pl.lit(None, dtype=k).alias(n) for n, k in columns if n not in frame.columns)
            if table != "forgotten" and (
                not cleaned(table, frame, request).equals(frame) or repeats(table, frame, request)
            ):
                storage.backups.remove([version.key])
                if now := storage.state(version.key.partition(f"{SUFFIX}.")[0] + SUFFIX):
                    keep_version(storage, now.key, storage.read(now))


def _keep(settings: Settings, request: ForgetRequest) -> None:
    path = _journal(settings)
    before = path.read_bytes() if path.exists() else None
    write_atomically(path, request.to_json(), expected=before, backups=None)
    path.chmod(0o600)


def _journal(settings: Settings) -> Path:
    return settings.workspace / "forgetting.json"


def now_utc() -> datetime:
    return datetime.now(UTC)
