"""Forgetting from beginning to end: look, keep in mind what is to be done, leave hashes, take out, look again.

What is to be done is kept in `forgetting.json` until it is: a process that is killed leaves either all as it was, or
that file, and the next call goes on from it. It holds the words and goes last.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
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
from memory_pipeline.operations.forgetting.aim import Aim, CannotForgetError, aim_at
from memory_pipeline.operations.forgetting.databases import clean_events, find_events
from memory_pipeline.operations.forgetting.markdown import clean_files, find_lines
from memory_pipeline.operations.forgetting.rows import Found, clean_tables, cleaned, find_rows, repeats
from memory_pipeline.operations.forgetting.texts import clean_texts, find_texts
from memory_pipeline.proposals.events import OpenLog
from memory_pipeline.proposals.remembering import REMEMBERED_LOCK
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION, WORDS, id_digest, words_digest
from memory_pipeline.settings import Settings, salt_of
from memory_pipeline.workspace.workspace import Workspace

BY_HAND = "lines of yours"
INDEX = "index"


def unfinished(settings: Settings) -> Aim | None:
    """What a call before began and did not end. Raises `CannotForgetError` for a damaged file."""
    path = _journal(settings)
    try:
        return Aim(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise CannotForgetError(
            f"{path} cannot be read ({error}). It says what `memory forget` had begun: remove it and name that again."
        ) from None


def look(settings: Settings, named: str, *, by_hand: bool = False) -> tuple[Aim, list[Found]]:
    """What is meant, and all that goes, with the lines of a user that say it. Raises `CannotForgetError`."""
    aim = aim_at(settings, named, by_hand=by_hand)
    found = list(find_rows(Lake.from_settings(settings), aim))
    if read_batch_file(settings).open and aim.windows:
        raise CannotForgetError(
            "A batch is out at the provider, and its answers may say it again. Take them in first (`memory batch`), "
            "then forget."
        )
    return aim, [*found, *_elsewhere(settings, aim)]


def forget(settings: Settings, aim: Aim, now: datetime) -> None:
    """Take it out of everything. Safe to repeat. Raises `TryAgainLaterError` where something is in use."""
    _keep(settings, aim)
    workspace = Workspace.open(settings)
    _leave_hashes(workspace, aim, now)
    remove_points(settings, aim.points, lambda payload: _in_payload(aim, payload))
    clean_files(settings, aim)
    with OpenLog.open(workspace), FileLock(settings.backups / REMEMBERED_LOCK, timeout=LOCK_SECONDS):
        clean_tables(workspace.lake, aim)  # nobody decides or remembers meanwhile: their rows would be lost
    reconcile(workspace, now)  # REVIEW.md and what connected agents are shown
    clean_texts(settings, aim)
    clean_events(settings, aim)
    _clean_versions(settings, aim)
    clean_files(settings, aim)  # once more: the backups of what was written now
    if hasattr(os, "sync"):  # before nobody knows of it any more: a power cut may bring back what was not written out
        os.sync()
    _journal(settings).unlink()


def left(settings: Settings, aim: Aim) -> list[Found]:
    """What of it can still be found, but for what a user keeps."""
    return [found for found in _elsewhere(settings, aim) if found.place != BY_HAND]


def _elsewhere(settings: Settings, aim: Aim) -> Iterator[Found]:
    """Outside of the tables."""
    points = find_points(settings, aim.points, lambda payload: _in_payload(aim, payload))
    yield from (Found(INDEX, text) for text in points.values())
    for file, cut in find_lines(settings, aim):
        yield from (Found(file.place, line) for line in cut.taken)
        if not file.is_copy:
            yield from (Found(BY_HAND, f"{file.path}: {line}") for line in cut.left)
    yield from find_texts(settings, aim)
    yield from find_events(settings, aim)


def _in_payload(aim: Aim, payload: Any) -> bool:
    if payload.get("session_id") in aim.sessions:
        return True
    return any(isinstance(value, str) and aim.wanted.are_in(value) for value in payload.values())


def _leave_hashes(workspace: Workspace, aim: Aim, now: datetime) -> None:
    """By which all that is read later is known."""
    salt, lake = salt_of(workspace.settings), workspace.lake
    rows: list[ForgottenRow] = []
    for kind, names in ((SESSION, aim.sessions), (MESSAGE, [] if aim.sessions else aim.messages)):
        rows += [{"kind": kind, "digest": id_digest(salt, kind, n), "words": None, "forgotten_at": now} for n in names]
    rows += [
        {"kind": WORDS, "digest": words_digest(salt, sequence), "words": len(sequence), "forgotten_at": now}
        for sequence in aim.wanted.sequences
    ]
    made = pl.DataFrame(rows, schema=TABLES["forgotten"].columns)
    key = ["kind", "digest"]
    lake.update("forgotten", lambda before: pl.concat([before, made]).unique(key, keep="first", maintain_order=True))


def _clean_versions(settings: Settings, aim: Aim) -> None:
    """Of the versions of tables those go that have a row which goes; what is there now has one of its own."""
    storage = storage_of(settings)
    if storage.is_far:
        storage.remove(storage.put_aside())
        shutil.rmtree(kept_objects(settings), ignore_errors=True)
    for table in TABLES:
        for version in storage.backups.files(table, suffix=f"{SUFFIX}."):
            try:
                frame = pl.read_parquet(BytesIO(storage.backups.read(version)))
            except (pl.exceptions.PolarsError, OSError):
                storage.backups.remove([version.key])
                continue
            missing = [
                pl.lit(None, dtype=k).alias(n) for n, k in TABLES[table].columns.items() if n not in frame.columns
            ]
            frame = frame.with_columns(missing)
            if table != "forgotten" and (not cleaned(table, frame, aim).equals(frame) or repeats(table, frame, aim)):
                storage.backups.remove([version.key])
                if now := storage.state(version.key.partition(f"{SUFFIX}.")[0] + SUFFIX):
                    keep_version(storage, now.key, storage.read(now))


def _keep(settings: Settings, aim: Aim) -> None:
    path = _journal(settings)
    before = path.read_bytes() if path.exists() else None
    write_atomically(path, json.dumps(asdict(aim)).encode(), expected=before, backups=None)
    path.chmod(0o600)


def _journal(settings: Settings) -> Path:
    return settings.workspace / "forgetting.json"


def now_utc() -> datetime:
    return datetime.now(UTC)
