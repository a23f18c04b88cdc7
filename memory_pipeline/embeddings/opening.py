"""The index of a workspace, opened late and closed early, as the embedded engine allows one user at a time."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import Timeout

from memory_pipeline.embeddings.fair_lock import FairLock
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, IndexBusyError, IndexUnavailableError, VectorIndex
from memory_pipeline.embeddings.index_pool import current_pool
from memory_pipeline.markdown.safe_write import ChangedMeanwhileError, write_atomically
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import DiskFullError, require_space

WAIT_SECONDS = 30.0
"""Seconds to wait for an embedded index that another process has open."""
SERVER_SECONDS = 8.0
"""Maximum seconds for one request to a server, including the connection."""
DOWN_SECONDS = 60.0
"""Seconds for which an unreachable index is not retried: otherwise each stage of each day would wait for it."""
MAKE_ANEW = "`memory run --all` rebuilds it"
_down: dict[str, tuple[float, IndexUnavailableError]] = {}
"""The time until which a server or folder counts as unreachable in this process, and the reason."""


SCHEMA = 3
"""The version of the vectors and payloads; a new version is built next to the existing collection."""


def collection_name(settings: Settings, base: str, model: str, dimension: int | str) -> str:
    """The name of a collection, so that vectors of two models or schemas are never mixed."""
    if base == MESSAGES and settings.qdrant.collection != COLLECTION:
        base = f"{settings.qdrant.collection}_messages"
    elif base == COLLECTION:
        base = settings.qdrant.collection
    return f"{base}-{re.sub(r'[^A-Za-z0-9.-]+', '_', model)}-{dimension}-v{SCHEMA}"


def index_folder(settings: Settings, dimension: int, base: str = COLLECTION) -> Path:
    """The folder of a collection of the embedded engine."""
    return settings.index_dir / collection_name(settings, base, settings.embedding_model, dimension)


@contextmanager
def open_index(
    settings: Settings, dimension: int, base: str = COLLECTION, *, wait: float = WAIT_SECONDS
) -> Iterator[VectorIndex]:
    """The collection of the configured model: on the server of `QDRANT_URL`, else embedded, waiting up to ``wait``
    seconds for other users. Raises `IndexUnavailableError`."""
    name = collection_name(settings, base, settings.embedding_model, dimension)

    def opened() -> VectorIndex:
        place = f"{settings.qdrant.url or settings.index_dir} {name} {settings.qdrant.api_key}"
        until, reason = _down.get(place, (0.0, None))
        if reason and time.monotonic() < until:
            raise reason
        try:
            if not settings.qdrant.url:
                with suppress(OSError):  # opening the folder reports a disk that is not writable
                    generation(settings, base)  # a new one if the folder is gone, which opening would hide
            index = open_collection(settings, name, dimension, wait)
            if index.set_aside:
                new_generation(settings, base)
            if not settings.qdrant.url:
                _record_dimension(settings, base, dimension)
        except IndexUnavailableError as error:
            if wait >= WAIT_SECONDS or settings.qdrant.url:
                _down[place] = (time.monotonic() + DOWN_SECONDS, error)
            raise
        _down.pop(place, None)
        return index

    with _from_pool(settings, name, opened) as index:
        yield index


@contextmanager
def collection_in_use(settings: Settings, name: str, dimension: int, base: str) -> Iterator[VectorIndex]:
    """An existing collection, from the pool if it is open there. Raises `IndexUnavailableError`."""

    def opened() -> VectorIndex:
        index = open_to_search(settings, name, dimension, WAIT_SECONDS)
        if index.set_aside:  # damaged since the stages used it: it is rebuilt completely
            new_generation(settings, base)
        return index

    with _from_pool(settings, name, opened) as index:
        yield index


@contextmanager
def _from_pool(settings: Settings, name: str, opened: Callable[[], VectorIndex]) -> Iterator[VectorIndex]:
    pool = None if settings.qdrant.url else current_pool()
    index: Any = (pool and pool.take(settings.index_dir / name)) or opened()
    try:
        yield index
    except BaseException:
        index.close()  # its state is unknown
        raise
    if pool:
        pool.keep(index)
    else:
        index.close()


def open_collection(settings: Settings, name: str, dimension: int, wait: float, *, create: bool = True) -> VectorIndex:
    """A collection by name, created if needed; close it when done. Raises `IndexUnavailableError`, also if the disk is
    too full for the embedded engine, which would be killed by SIGBUS."""
    if url := settings.qdrant.url:
        from memory_pipeline.embeddings.server import ServerIndex

        key, seconds = settings.qdrant.api_key, min(wait, SERVER_SECONDS)
        return ServerIndex(url, dimension, api_key=key, collection=name, create=create, seconds=seconds)
    from memory_pipeline.embeddings.edge import EdgeIndex

    if not create and not (settings.index_dir / name).is_dir():
        raise IndexUnavailableError(f"{name} is gone from index/; {MAKE_ANEW}.")
    try:
        require_space(settings.index_dir)
    except DiskFullError as error:
        raise IndexUnavailableError(f"{error}") from None
    return EdgeIndex(settings.index_dir / name, dimension, lock_timeout=wait)


def open_to_search(settings: Settings, name: str, dimension: int, wait: float) -> VectorIndex:
    """An existing collection; ``wait`` limits both the response of a server and the wait for another user of a folder.
    Raises `IndexUnavailableError` also if it does not exist: an empty one would silently find nothing."""
    return open_collection(settings, name, dimension, wait, create=False)


def generation(settings: Settings, base: str = COLLECTION) -> str:
    """A name for this instance of the collection: it changes when the folder is deleted, quarantined or incomplete, so
    that days that lost their vectors become out of date. The dimension is not needed, as the model may have to be
    loaded for it."""
    name, dimension = _read_mark(settings, base)
    if settings.qdrant.url:
        collection = collection_name(settings, base, settings.embedding_model, "*")
        return f"{settings.qdrant.url}#{collection}" + (f" {name}" if name else "")
    is_gone = dimension and not index_folder(settings, int(dimension), base).exists()
    return new_generation(settings, base) if not name or is_gone else name


def new_generation(settings: Settings, base: str = COLLECTION) -> str:
    """Make the next run rebuild the vectors of every day; until then the collection counts as incomplete."""
    name = uuid4().hex
    found = searched_collection(settings, base)
    if found and found.is_complete and found.model == settings.embedding_model:
        _complete(settings, base).unlink(missing_ok=True)
    _write(_mark(settings, base), name)
    return _read_mark(settings, base)[0]


@dataclass(frozen=True)
class Collection:
    """A collection to search: its name, and the model and dimension of its vectors."""

    name: str
    model: str
    dimension: int
    is_complete: bool = True
    """Whether it contains all days that were run."""


def mark_complete(settings: Settings, dimension: int, base: str) -> None:
    """Search the configured model's collection from now on."""
    name = collection_name(settings, base, settings.embedding_model, dimension)
    content = json.dumps({"name": name, "model": settings.embedding_model, "dimension": dimension})
    _write(_complete(settings, base), content)


def searched_collection(settings: Settings, base: str) -> Collection | None:
    """The last complete collection, which may be that of another model while a new one is being filled; before the
    first, the one being filled, or None."""
    try:
        found = json.loads(_complete(settings, base).read_text("utf-8"))
        name, model, dimension = f"{found['name']}", f"{found['model']}", int(found["dimension"])
    except (OSError, ValueError, TypeError, KeyError):
        return _filling_collection(settings, base)
    # with a wrong dimension an intact folder would be quarantined
    is_its_own = re.search(rf"-{dimension}-v\d+$", name)
    return Collection(name, model, dimension) if is_its_own else _filling_collection(settings, base)


def remove_collections(settings: Settings, base: str) -> None:
    """Remove the embedded collections of the configured model; the next run rebuilds the vectors of every day. On a
    server they are kept and refilled. Raises `IndexBusyError` while another process uses one."""
    for folder in settings.index_dir.glob(collection_name(settings, base, settings.embedding_model, "*")):
        if folder.is_dir():
            try:
                with FairLock(folder, WAIT_SECONDS):
                    shutil.rmtree(folder)
            except Timeout:
                raise IndexBusyError(f"{folder} is in use by another process; wait for it to end.") from None
    new_generation(settings, base)
    _complete(settings, base).unlink(missing_ok=True)  # also if it names another model


def left_over(settings: Settings) -> list[Path]:
    """Folders in index/ that are neither searched nor filled: of other models or earlier versions, or quarantined."""
    bases = (COLLECTION, MESSAGES)
    searched = {found.name for base in bases if (found := searched_collection(settings, base))}
    own = [collection_name(settings, base, settings.embedding_model, "*") for base in bases]
    folders = (path for path in settings.index_dir.iterdir() if path.is_dir()) if settings.index_dir.is_dir() else ()
    return sorted(f for f in folders if f.name not in searched and not any(f.match(name) for name in own))


def _filling_collection(settings: Settings, base: str) -> Collection | None:
    _, dimension = _read_mark(settings, base)
    if not dimension.isdigit():
        return None
    name = collection_name(settings, base, settings.embedding_model, dimension)
    is_there = (settings.index_dir / name).is_dir()
    return Collection(name, settings.embedding_model, int(dimension), is_complete=False) if is_there else None


def _record_dimension(settings: Settings, base: str, dimension: int) -> None:
    """Record that the folder exists, so that its loss is noticed."""
    name = generation(settings, base)
    if not _read_mark(settings, base)[1]:
        _write(_mark(settings, base), f"{name}\n{dimension}")


def _read_mark(settings: Settings, base: str) -> tuple[str, str]:
    """The generation and the dimension of its folder, each empty if unknown."""
    mark = _mark(settings, base)
    name, _, dimension = (mark.read_text("utf-8") if mark.exists() else "").partition("\n")
    return name, dimension


def _write(path: Path, text: str) -> None:
    """Write the file, unless another process is writing it with equivalent content."""
    before = path.read_bytes() if path.exists() else None
    with suppress(ChangedMeanwhileError):
        write_atomically(path, text.encode(), expected=before, backups=None)


def _mark(settings: Settings, base: str) -> Path:
    name = collection_name(settings, base, settings.embedding_model, "any")
    return settings.index_dir / f"{name}.{'server' if settings.qdrant.url else 'generation'}"


def _complete(settings: Settings, base: str) -> Path:
    return settings.index_dir / f"{base}{'.server' if settings.qdrant.url else ''}.searched.json"
