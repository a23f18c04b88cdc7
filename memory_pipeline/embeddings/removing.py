"""Permanent removal of points from every collection in use, including the files of the engine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any

from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, VectorIndex
from memory_pipeline.embeddings.opening import WAIT_SECONDS, left_over, open_collection, searched_collection
from memory_pipeline.settings import Settings

_DIMENSION = re.compile(r"-(\d+)-v\d+$")
Matches = Callable[[Mapping[str, Any]], bool]
"""A function that decides by the payload whether a point is to be removed."""


def find_points(settings: Settings, ids: Collection[str], matches: Matches) -> dict[str, str]:
    """The text of each point that has one of these ids or matches. Raises `IndexUnavailableError`."""
    found: dict[str, str] = {}
    for name, dimension in _collections(settings):
        with closing(open_collection(settings, name, dimension, WAIT_SECONDS)) as index:
            found |= dict(_found(index, ids, matches))
    return found


def remove_points(settings: Settings, ids: Collection[str], matches: Matches) -> None:
    """Remove the points, and collections that are no longer searched. Raises `IndexUnavailableError`.

    A server reclaims the space of deleted points later.
    """
    for folder in left_over(settings):
        shutil.rmtree(folder)
    for name, dimension in _collections(settings):
        with closing(open_collection(settings, name, dimension, WAIT_SECONDS)) as index:
            index.delete([point for point, _ in _found(index, ids, matches)])
            index.rewrite()


def _found(index: VectorIndex, ids: Collection[str], matches: Matches) -> Iterator[tuple[str, str]]:
    wanted = set(ids)
    for point, payload, _ in index.retrieve(index.ids(), payload=True):
        if point in wanted or matches(payload or {}):
            yield point, f"{(payload or {}).get('text') or ''}"


def _collections(settings: Settings) -> list[tuple[str, int]]:
    """The names and dimensions of the collections; on a server only those of this workspace."""
    named = [found for base in (COLLECTION, MESSAGES) if (found := searched_collection(settings, base))]
    known = {found.name: found.dimension for found in named}
    if not settings.qdrant.url and settings.index_dir.is_dir():
        old = set(left_over(settings))
        for folder in sorted(path for path in settings.index_dir.iterdir() if path.is_dir() and path not in old):
            if dimension := _DIMENSION.search(folder.name):
                known.setdefault(folder.name, int(dimension[1]))
        known = {name: size for name, size in known.items() if (settings.index_dir / name).is_dir()}
    return sorted(known.items())
