"""A pool of indexes that stay open between the days of a run, until another process needs one.

Opening, closing and locking an embedded index takes .3 s; over many days that was half of a run. A thread releases an
idle index as soon as another process waits for it, so that a search is not delayed by a run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_pipeline.embeddings.edge import EdgeIndex

_LOOK_SECONDS = 0.03


class IndexPool:
    """The open idle indexes, by folder."""

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
        """Mark the index as idle."""
        with self._access:
            self._idle[index.folder] = index

    def close(self) -> None:
        self._end.set()
        self._watch.join()
        with self._access:
            while self._idle:
                self._idle.popitem()[1].close()

    def _release_wanted(self) -> None:
        while not self._end.wait(_LOOK_SECONDS):
            with self._access:
                for folder in [folder for folder, index in self._idle.items() if index.is_wanted()]:
                    self._idle.pop(folder).close()


_kept: ContextVar[IndexPool | None] = ContextVar("_kept", default=None)


def current_pool() -> IndexPool | None:
    """The pool of open indexes; None outside `indexes_kept_open`."""
    return _kept.get()


@contextmanager
def indexes_kept_open() -> Iterator[None]:
    """Keep indexes opened by `open_index` in this context open until its end, or that of an outer context, unless
    another process waits for one."""
    if _kept.get():
        yield
        return
    found = IndexPool()
    token = _kept.set(found)
    try:
        yield
    finally:
        _kept.reset(token)
        found.close()
