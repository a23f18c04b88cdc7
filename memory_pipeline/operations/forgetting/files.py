"""Caches and logs: model answers, briefings, packs, hints, reports, usage, and the output of runs.

All of them can be rebuilt or are history, so they are also removed if they only repeat forgotten text.
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
    """Caches to be deleted as a whole, and logs that lose lines."""
    cache, workspace = AnswerCache(answers_dir(settings)), settings.workspace
    asked = {cache.path(key) for key in request.answers}
    folders = {
        "answers": cache.directory,
        "briefings": workspace / "briefings",
        "packs": workspace / "packs",
        "hints": settings.actions_dir,
        "quality report": settings.report_dir,
    }
    for place, folder in folders.items():
        for path in _files_below(folder):
            if path in asked or redact(text := read_text(path), request) != text:
                yield Change(place, [path.name], partial(path.unlink, missing_ok=True))
    for damaged in set_aside_files(Workspace.open(settings)):  # their content is unknown
        if isinstance(damaged, Path):  # objects are removed with the versions of tables
            remove = partial(shutil.rmtree, damaged) if damaged.is_dir() else damaged.unlink
            yield Change("quarantined damaged files", [damaged.name], remove)
    for path in _files_below(usage_dir(settings)):
        yield from log_change("usage", path, request)
    for path in sorted((workspace / "connections").glob("*.log*")):
        yield from log_change("connections", path, request)


def log_change(place: str, path: Path, request: ForgetRequest) -> Iterator[Change]:
    """The change of a text file, if it has matching lines."""
    lines = read_text(path).split("\n")
    if gone := [line for line in lines if line and says(line, request)]:
        kept = "\n".join(line for line in lines if line not in gone)
        write = partial(write_atomically, path, kept.encode("utf-8", "surrogateescape"), backups=None)
        yield Change(place, gone, lambda: write(expected=path.read_bytes()))


def read_text(path: Path) -> str:
    """The text of a file, with invalid bytes replaced."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _files_below(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
