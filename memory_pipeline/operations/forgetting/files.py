"""Caches and logs: answers of models, briefings, packs, reports, usage, and what runs printed.

All of them can be made again or tell of the past, so they also go where they only repeat what is forgotten.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memory_pipeline.embeddings.health import set_aside_files
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.forgetting.changes import Change, redact, says
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.recall.usage import usage_dir
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def file_changes(settings: Settings, request: ForgetRequest) -> Iterator[Change]:
    """Caches that are deleted as a whole, and logs that lose lines."""
    cache, workspace = AnswerCache(answers_dir(settings)), settings.workspace
    asked = {cache.path(key) for key in request.answers}
    folders = {"answers": cache.directory, "briefings": workspace / "briefings", "packs": workspace / "packs"}
    for place, folder in (folders | {"quality report": settings.report_dir}).items():
        for path in _files_below(folder):
            if path in asked or redact(text := read_text(path), request) != text:
                yield Change(place, [path.name], partial(path.unlink, missing_ok=True))
    for damaged in set_aside_files(Workspace.open(settings)):  # nobody can tell what is in them
        if isinstance(damaged, Path):  # objects go with the versions of tables
            remove = partial(shutil.rmtree, damaged) if damaged.is_dir() else damaged.unlink
            yield Change("quarantined damaged files", [damaged.name], remove)
    for path in _files_below(usage_dir(settings)):
        yield from log_change("usage", path, request)
    for path in sorted((workspace / "connections").glob("*.log*")):
        yield from log_change("connections", path, request)


def log_change(place: str, path: Path, request: ForgetRequest) -> Iterator[Change]:
    """The lines that go from a file of text, if there are any."""
    lines = read_text(path).split("\n")
    if gone := [line for line in lines if line and says(line, request)]:
        kept = "\n".join(line for line in lines if line not in gone)
        write = partial(write_atomically, path, kept.encode("utf-8", "surrogateescape"), backups=None)
        yield Change(place, gone, lambda: write(expected=path.read_bytes()))


def read_text(path: Path) -> str:
    """The text of a file, whatever bytes it has."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _files_below(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
