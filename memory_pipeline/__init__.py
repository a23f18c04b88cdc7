"""Session transcripts of coding agents, turned day by day into memory that a user reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_pipeline.lake.store import Lake
    from memory_pipeline.recall.search import search
    from memory_pipeline.settings import Settings
    from memory_pipeline.workspace.workspace import Workspace

__all__ = ["Lake", "Settings", "Workspace", "__version__", "search"]
__version__ = "0.3.0"

_HOME = {
    "Lake": "memory_pipeline.lake.store",
    "MemoryPipeline": "memory_pipeline.defs.graph",  # by this name `dg` finds it
    "Settings": "memory_pipeline.settings",
    "Workspace": "memory_pipeline.workspace.workspace",
    "search": "memory_pipeline.recall.search",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: `memory --help` must not wait for polars and pydantic."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *__all__})
