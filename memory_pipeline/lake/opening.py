"""The storage of a workspace's lake, according to its settings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from memory_pipeline.lake.storage import FolderStorage, Storage

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings


def storage_of(settings: Settings) -> Storage:
    """The storage of the lake: the location in MEMORY_LAKE, else the workspace."""
    return FolderStorage(settings.lake_dir) if settings.lake is None else storage_at(settings.lake, settings)


def storage_at(place: str, settings: Settings) -> Storage:
    """The storage in a folder or at a URL like those of MEMORY_LAKE; it need not be that of the settings."""
    if place.startswith("file://"):
        return FolderStorage(Path(unquote(urlsplit(place).path)))
    return _objects(place, object_cache(settings)) if "://" in place else FolderStorage(Path(place))


def object_cache(settings: Settings) -> Path:
    """The folder of the object cache, which may be deleted at any time."""
    return settings.workspace / "cache" / "lake"


@cache
def _objects(url: str, kept: Path) -> Storage:
    """The client, one per process, as it keeps connections open."""
    from memory_pipeline.lake.object_storage import ObjectStorage

    return ObjectStorage(url, kept)
