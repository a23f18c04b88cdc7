"""Which index a workspace uses, opened late and closed early: the embedded engine allows one user at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from memory_pipeline.embeddings.index import VectorIndex
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import Encoder


def index_folder(settings: Settings) -> Path:
    """One folder per model: vectors of two models are never mixed."""
    return settings.index_dir / re.sub(r"[^A-Za-z0-9.-]+", "_", settings.embedding_model)


@contextmanager
def open_index(settings: Settings, encoder: Encoder) -> Iterator[VectorIndex]:
    """The server of `QDRANT_URL`, else the embedded index. Raises `IndexUnavailableError`."""
    index: VectorIndex
    if settings.qdrant.url:
        from memory_pipeline.embeddings.server import ServerIndex

        index = ServerIndex(settings.qdrant.url, encoder.dimension, api_key=settings.qdrant.api_key)
    else:
        from memory_pipeline.embeddings.edge import EdgeIndex

        edge = EdgeIndex(index_folder(settings), encoder.dimension)
        if edge.set_aside:
            new_generation(settings)
        index = edge
    try:
        yield index
    finally:
        index.close()


def generation(settings: Settings) -> str:
    """A name for this very index: another one when the folder was deleted or set aside, so that days whose
    vectors went with it are seen to be out of date."""
    if settings.qdrant.url:
        return settings.qdrant.url
    folder, mark = index_folder(settings), _mark(settings)
    if not mark.exists() or not folder.exists():
        return new_generation(settings)
    return mark.read_text("utf-8")


def new_generation(settings: Settings) -> str:
    name = uuid4().hex
    index_folder(settings).mkdir(parents=True, exist_ok=True)
    _mark(settings).write_text(name, "utf-8")
    return name


def _mark(settings: Settings) -> Path:
    folder = index_folder(settings)
    return folder.with_name(f"{folder.name}.generation")
