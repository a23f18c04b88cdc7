"""The collections of a workspace's index: which is searched, and its opening and removal.

The embedded engine allows one user at a time. So an index is opened late and closed early, except in a run
(`indexes_kept_open`): opening, closing and locking takes .3 s, which over many days was half of the run.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from filelock import Timeout

from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, IndexBusyError, IndexUnavailableError, VectorIndex
from memory_pipeline.markdown.safe_write import ChangedMeanwhileError, write_atomically
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.free_space import DiskFullError, require_space

if TYPE_CHECKING:
    from memory_pipeline.embeddings.edge import EdgeIndex

WAIT_SECONDS = 30.0
"""Seconds to wait for an embedded index that another process has open."""
SERVER_SECONDS = 8.0
"""Maximum seconds for one request to a server, including the connection."""
DOWN_SECONDS = 60.0
"""Seconds for which an unreachable index is not retried: otherwise each stage of each day would wait for it."""
MAKE_ANEW = "`memory run --all` rebuilds it"
SCHEMA = 3
"""The version of the vectors and payloads; a new version is built next to the existing collection."""
_LOOK_SECONDS = 0.03
"""Seconds between two looks whether another process waits for an idle index."""
_DIMENSION = re.compile(r"-(\d+)-v\d+$")
Matches = Callable[[Mapping[str, Any]], bool]
"""A function that decides by the payload whether a point is to be removed."""
_down: dict[str, tuple[float, IndexUnavailableError]] = {}
"""The time until which a server or folder counts as unreachable in this process, and the reason."""


@dataclass(frozen=True)
class SearchedCollection:
    """A collection to search: its name, and the model and dimension of its vectors."""

    name: str
    model: str
    dimension: int
    is_complete: bool = True
    """Whether it contains all days that were run."""


class _IndexPool:
    """The idle indexes that stay open, by folder. A thread closes one as soon as another process waits for it, so that
    a search is not delayed by a run."""

    def __init__(self) -> None:
        self._idle: dict[Path, EdgeIndex] = {}
        self._access = threading.Lock()
        self._end = threading.Event()
        self._watch = threading.Thread(target=self._release_wanted, name="indexes kept open", daemon=True)
        self._watch.start()

    def take(self, folder: Path) -> EdgeIndex | None:
        """The idle index of this folder; None if it was not kept or was released, or its folder is gone."""
        with self._access:
            index = self._idle.pop(folder, None)
        if index and not folder.is_dir():
            index.close()
            return None
        return index

    def keep(self, index: EdgeIndex) -> None:
        with self._access:
            self._idle[index.folder] = index

    def close(self) -> None:
        self._end.set()
        self._watch.join()
        for index in self._idle.values():
            index.close()

    def _release_wanted(self) -> None:
        while not self._end.wait(_LOOK_SECONDS):
            with self._access:
                for folder in [folder for folder, index in self._idle.items() if index.is_wanted()]:
                    self._idle.pop(folder).close()


_pool: ContextVar[_IndexPool | None] = ContextVar("_pool", default=None)


@contextmanager
def indexes_kept_open() -> Iterator[None]:
    """Keep indexes opened by `open_index` in this context open until its end, or that of an outer context, unless
    another process waits for one."""
    if _pool.get():
        yield
        return
    with closing(_IndexPool()) as pool:
        token = _pool.set(pool)
        try:
            yield
        finally:
            _pool.reset(token)


@contextmanager
def open_index(
    settings: Settings, dimension: int, base: str = COLLECTION, *, wait: float = WAIT_SECONDS, create: bool = True
) -> Iterator[VectorIndex]:
    """The collection of the configured model: on the server of `QDRANT_URL`, else embedded, waiting up to ``wait``
    seconds for other users. Raises `IndexUnavailableError`."""
    pool = None if settings.qdrant.url else _pool.get()
    index: Any = pool and pool.take(index_folder(settings, dimension, base))
    index = index or _opened(settings, dimension, base, wait, create)
    try:
        yield index
    except BaseException:
        index.close()  # its state is unknown
        raise
    if pool:
        pool.keep(index)
    else:
        index.close()


def _opened(settings: Settings, dimension: int, base: str, wait: float, create: bool) -> VectorIndex:
    """The collection of the configured model, unless it was unreachable a moment ago."""
    name = collection_name(settings, base, settings.embedding_model, dimension)
    place = f"{settings.qdrant.url or settings.index_dir} {name} {settings.qdrant.api_key}"
    until, reason = _down.get(place, (0.0, None))
    if reason and time.monotonic() < until:
        raise reason
    try:
        if settings.qdrant.url:
            index = open_collection(settings, name, dimension, wait, create=create)
        else:
            index = _opened_folder(settings, dimension, base, wait, create)
    except IndexUnavailableError as error:
        if create and (wait >= WAIT_SECONDS or settings.qdrant.url):
            _down[place] = (time.monotonic() + DOWN_SECONDS, error)
        raise
    _down.pop(place, None)
    return index


def _opened_folder(settings: Settings, dimension: int, base: str, wait: float, create: bool) -> VectorIndex:
    """The embedded collection. The loss of its folder is noticed before it is created again."""
    with suppress(OSError):  # opening the folder reports a disk that is not writable
        generation(settings, base)
    index = open_collection(settings, index_folder(settings, dimension, base).name, dimension, wait, create=create)
    if index.set_aside:
        new_generation(settings, base)
    if not _read_mark(settings, base)[1]:
        _write(_mark(settings, base), f"{generation(settings, base)}\n{dimension}")
    return index


def open_collection(settings: Settings, name: str, dimension: int, wait: float, *, create: bool = True) -> VectorIndex:
    """A collection by name; close it when done. ``wait`` limits both the response of a server and the wait for another
    user of a folder.

    Raises `IndexUnavailableError`, also if the disk is too full for the embedded engine, which would be killed by
    SIGBUS, and without ``create`` if the collection does not exist: an empty one would silently find nothing.
    """
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
    found = searched_collection(settings, base)
    if found and found.is_complete and found.model == settings.embedding_model:
        _complete(settings, base).unlink(missing_ok=True)
    _write(_mark(settings, base), uuid4().hex)
    return _read_mark(settings, base)[0]


def mark_complete(settings: Settings, dimension: int, base: str) -> None:
    """Search the configured model's collection from now on."""
    name = collection_name(settings, base, settings.embedding_model, dimension)
    content = json.dumps({"name": name, "model": settings.embedding_model, "dimension": dimension})
    _write(_complete(settings, base), content)


def searched_collection(settings: Settings, base: str) -> SearchedCollection | None:
    """The last complete collection, which may be that of another model while a new one is being filled; before the
    first, the one being filled, or None."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(_complete(settings, base).read_text("utf-8"))
        name, model, dimension = f"{found['name']}", f"{found['model']}", int(found["dimension"])
        if re.search(rf"-{dimension}-v\d+$", name):  # with a wrong dimension an intact folder would be quarantined
            return SearchedCollection(name, model, dimension)
    size = _read_mark(settings, base)[1]
    folder = index_folder(settings, int(size), base) if size.isdigit() else None
    if not folder or not folder.is_dir():
        return None
    return SearchedCollection(folder.name, settings.embedding_model, int(size), is_complete=False)


def left_over(settings: Settings) -> list[Path]:
    """Folders in index/ that are neither searched nor filled: of other models or earlier versions, or quarantined."""
    bases = (COLLECTION, MESSAGES)
    searched = {found.name for base in bases if (found := searched_collection(settings, base))}
    own = [collection_name(settings, base, settings.embedding_model, "*") for base in bases]
    folders = _folders(settings)
    return [f for f in folders if f.name not in searched and not any(f.match(name) for name in own)]


def remove_collections(settings: Settings, base: str) -> None:
    """Remove the embedded collections of the configured model; the next run rebuilds the vectors of every day. On a
    server they are kept and refilled. Raises `IndexBusyError` while another process uses one."""
    from memory_pipeline.embeddings.edge import FairLock

    for folder in settings.index_dir.glob(collection_name(settings, base, settings.embedding_model, "*")):
        if folder.is_dir():
            try:
                with FairLock(folder, WAIT_SECONDS):
                    shutil.rmtree(folder)
            except Timeout:
                raise IndexBusyError(f"{folder} is in use by another process; wait for it to end.") from None
    new_generation(settings, base)
    _complete(settings, base).unlink(missing_ok=True)  # also if it names another model


def find_points(settings: Settings, ids: Collection[str], matches: Matches) -> dict[str, str]:
    """The text of each point of any collection in use that has one of these ids or matches. Raises
    `IndexUnavailableError`."""
    found: dict[str, str] = {}
    for name, dimension in _collections(settings):
        with closing(open_collection(settings, name, dimension, WAIT_SECONDS)) as index:
            found |= dict(_matching(index, ids, matches))
    return found


def remove_points(settings: Settings, ids: Collection[str], matches: Matches) -> None:
    """Remove such points permanently, also from the files of the engine, and collections that are no longer searched. A
    server reclaims the space of deleted points later. Raises `IndexUnavailableError`."""
    for folder in left_over(settings):
        shutil.rmtree(folder)
    for name, dimension in _collections(settings):
        with closing(open_collection(settings, name, dimension, WAIT_SECONDS)) as index:
            index.delete([point for point, _ in _matching(index, ids, matches)])
            index.rewrite()


def _matching(index: VectorIndex, ids: Collection[str], matches: Matches) -> Iterator[tuple[str, str]]:
    wanted = set(ids)
    for point, payload, _ in index.retrieve(index.ids(), payload=True):
        if point in wanted or matches(payload or {}):
            yield point, f"{(payload or {}).get('text') or ''}"


def _collections(settings: Settings) -> list[tuple[str, int]]:
    """The names and dimensions of the collections in use; on a server only those of this workspace."""
    if settings.qdrant.url:
        named = (searched_collection(settings, base) for base in (COLLECTION, MESSAGES))
        return sorted((found.name, found.dimension) for found in named if found)
    old = left_over(settings)
    sizes = {path.name: _DIMENSION.search(path.name) for path in _folders(settings) if path not in old}
    return [(name, int(size[1])) for name, size in sizes.items() if size]


def _folders(settings: Settings) -> list[Path]:
    return sorted(path for path in settings.index_dir.glob("*") if path.is_dir())


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
