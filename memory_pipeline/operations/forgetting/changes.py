"""Removal from a file, database or index, and the cleaning of texts; caches and logs.

Model answers, briefings, packs, hints, reports, usage and the output of runs can be rebuilt or are history, so they are
also removed if they only repeat forgotten text.
"""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memory_pipeline.embeddings.health import set_aside_files
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.markdown.safe_write import decode, encode, replace_file
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.recall.usage import usage_dir
from memory_pipeline.redaction.forgotten import MARK
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

BY_HAND = "lines of yours"


class Found(NamedTuple):
    """A stored line to be removed, and its place."""

    place: str
    line: str


@dataclass(frozen=True)
class Change:
    """Lines to be removed from one place, and the function that removes them, which is safe to repeat."""

    place: str
    lines: Sequence[str]
    apply: Callable[[], object]
    by_hand: Sequence[str] = ()
    """Lines that a user wrote, which are kept."""

    @property
    def found(self) -> list[Found]:
        """The lines to show to the user."""
        kept = [Found(BY_HAND, line) for line in self.by_hand]
        return [Found(self.place, line) for line in self.lines] + kept


def says(text: str, request: ForgetRequest) -> bool:
    """Whether the text has the words, or repeats a passage of the forgotten text, including HTML-escaped forms."""
    forms = (text, html.unescape(text)) if "&" in text else (text,)
    return any(request.wanted.are_in(form) or request.repeated.are_in(form) for form in forms)


def redact(value: Any, request: ForgetRequest) -> Any:
    """A text or JSON value with marks in place of the words and of lines that repeat forgotten text. JSON inside a text
    is redacted as JSON."""
    if isinstance(value, str):
        if value[:1] in ("{", "[") and isinstance(inner := _loaded(value), dict | list):
            new = redact(inner, request)
            return value if new == inner else json.dumps(new)
        return "\n".join(_redact_line(line, request) for line in value.split("\n")) if says(value, request) else value
    if isinstance(value, list):
        return [redact(one, request) for one in value]
    if isinstance(value, dict):
        return {redact(key, request): redact(one, request) for key, one in value.items()}
    return value


def first_line(value: Any, request: ForgetRequest) -> str:
    """The first matching line of a text or JSON value; empty if there is none."""
    if isinstance(value, str):
        if value[:1] in ("{", "[") and isinstance(inner := _loaded(value), dict | list):
            return first_line(inner, request)
        return next((line for line in value.split("\n") if says(line, request)), "")
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (first_line(one, request) for one in inside)), "")


def _redact_line(line: str, request: ForgetRequest) -> str:
    line = request.wanted.without(line)
    return MARK if says(line, request) else line


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


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
            if path in asked or redact(text := decode(path.read_bytes()), request) != text:
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
    lines = decode(path.read_bytes()).split("\n")
    if gone := [line for line in lines if line and says(line, request)]:
        kept = "\n".join(line for line in lines if line not in gone)
        yield Change(place, gone, partial(replace_file, path, encode(kept), like=path))


def _files_below(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]
