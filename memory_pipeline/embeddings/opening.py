"""Which index a workspace uses, opened late and closed early: the embedded engine allows one user at a time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from memory_pipeline.embeddings.index import COLLECTION, IndexUnavailableError, VectorIndex
from memory_pipeline.settings import Settings

WAIT_SECONDS = 30.0
"""For an embedded index that another process has open."""
DOWN_SECONDS = 60.0
"""An index that was out of reach is not tried again for so long: each stage of each day would wait for it anew."""
_down: dict[str, tuple[float, IndexUnavailableError]] = {}
"""By server or folder: until when it counts as out of reach in this process, and why."""


class HasDimension(Protocol):
    """What makes vectors, as far as the index has to know it."""

    @property
    def dimension(self) -> int: ...


def index_folder(settings: Settings) -> Path:
    """One folder per model: vectors of two models are never mixed."""
    return settings.index_dir / re.sub(r"[^A-Za-z0-9.-]+", "_", settings.embedding_model)


@contextmanager
def open_index(settings: Settings, encoder: HasDimension, *, wait: float = WAIT_SECONDS) -> Iterator[VectorIndex]:
    """The server of `QDRANT_URL`, else the embedded index, for which others are waited for ``wait`` seconds. Raises
    `IndexUnavailableError`."""
    place = f"{settings.qdrant.url or index_folder(settings)} {settings.qdrant.collection} {settings.qdrant.api_key}"
    until, reason = _down.get(place, (0.0, None))
    if reason and time.monotonic() < until:
        raise reason
    try:
        index = _open(settings, encoder.dimension, wait)
    except IndexUnavailableError as error:
        if wait >= WAIT_SECONDS or settings.qdrant.url:
            _down[place] = (time.monotonic() + DOWN_SECONDS, error)
        raise
    _down.pop(place, None)
    try:
        yield index
    finally:
        index.close()


def _open(settings: Settings, dimension: int, wait: float) -> VectorIndex:
    if settings.qdrant.url:
        from memory_pipeline.embeddings.server import ServerIndex

        given = settings.qdrant
        return ServerIndex(settings.qdrant.url, dimension, api_key=given.api_key, collection=given.collection)
    from memory_pipeline.embeddings.edge import EdgeIndex

    index = EdgeIndex(index_folder(settings), dimension, lock_timeout=wait)
    if index.set_aside:
        new_generation(settings)
    return index


def generation(settings: Settings) -> str:
    """A name for this very index: another one when the folder was deleted or set aside, or lacks vectors, so that days
    whose vectors went with it are seen to be out of date."""
    folder, mark = index_folder(settings), _mark(settings)
    if settings.qdrant.url:
        collection = "" if settings.qdrant.collection == COLLECTION else f"#{settings.qdrant.collection}"
        return f"{settings.qdrant.url}{collection}" + (f" {mark.read_text('utf-8')}" if mark.exists() else "")
    if not mark.exists() or not folder.exists():
        return new_generation(settings)
    return mark.read_text("utf-8")


def new_generation(settings: Settings) -> str:
    name = uuid4().hex
    (settings.index_dir if settings.qdrant.url else index_folder(settings)).mkdir(parents=True, exist_ok=True)
    _mark(settings).write_text(name, "utf-8")
    return name


def _mark(settings: Settings) -> Path:
    folder = index_folder(settings)
    return folder.with_name(f"{folder.name}.{'server' if settings.qdrant.url else 'generation'}")
