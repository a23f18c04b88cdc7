"""Caches and logs: answers of models, briefings, packs, the log of uses, what a run printed, and damaged files.

All of it can be made again, or tells of the past. So it goes also where it only repeats a stretch of what is forgotten.
"""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_pipeline.embeddings.health import set_aside_files
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.operations.forgetting.rows import Found
from memory_pipeline.recall.usage import usage_dir
from memory_pipeline.redaction.forgotten import MARK
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def scrubbed(text: str, request: ForgetRequest) -> str:
    """The text with marks for what goes: its words, and lines that repeat a stretch of it."""
    if not may_say(text, request):
        return text
    return "\n".join(_scrubbed_line(line, request) for line in text.split("\n"))


def may_say(text: str, request: ForgetRequest) -> bool:
    """Whether it has a word to look closer for."""
    return says(text, request) or ("&" in text and says(html.unescape(text), request))


def says(text: str, request: ForgetRequest) -> bool:
    return request.wanted.are_in(text) or request.repeated.are_in(text)


def _scrubbed_line(line: str, request: ForgetRequest) -> str:
    line = request.wanted.without(line)
    return MARK if says(line, request) or ("&" in line and says(html.unescape(line), request)) else line


def scrubbed_json(value: Any, request: ForgetRequest) -> Any:
    """The same of all texts in what JSON holds; JSON in a text is looked into."""
    if isinstance(value, str):
        if value[:1] in "{[" and (inner := _loaded(value)) is not None:
            new = scrubbed_json(inner, request)
            return value if new == inner else json.dumps(new)
        return scrubbed(value, request)
    if isinstance(value, list):
        return [scrubbed_json(one, request) for one in value]
    if isinstance(value, dict):
        return {
            scrubbed(key, request) if isinstance(key, str) else key: scrubbed_json(v, request)
            for key, v in value.items()
        }
    return value


def _loaded(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def first_line(value: Any, request: ForgetRequest) -> str:
    """The first line that says it, of a text or of what JSON holds."""
    if isinstance(value, str) and value[:1] in "{[" and (inner := _loaded(value)) is not None:
        return first_line(inner, request)
    if isinstance(value, str):
        return next((line for line in value.split("\n") if may_say(line, request)), "")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (first_line(one, request) for one in inside)), "")


def find_texts(settings: Settings, request: ForgetRequest) -> Iterator[Found]:
    """What goes from them."""
    for place, path in _whole(settings, request):
        yield Found(place, path.name)
    for place, path in _lines(settings):
        for line in read_text(path).split("\n"):
            if line and may_say(line, request):
                yield Found(place, line)


def clean_texts(settings: Settings, request: ForgetRequest) -> None:
    """Take it out."""
    for _, path in _whole(settings, request):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for _, path in _lines(settings):
        text = read_text(path)
        kept = [line for line in text.split("\n") if not line or not may_say(line, request)]
        if "\n".join(kept) != text:
            new = "\n".join(kept).encode("utf-8", "surrogateescape")
            write_atomically(path, new, expected=path.read_bytes(), backups=None)


def _whole(settings: Settings, request: ForgetRequest) -> Iterator[tuple[str, Path]]:
    """Files that go as a whole."""
    cache = AnswerCache(answers_dir(settings))
    asked = {cache.path(key) for key in request.answers}
    for path in sorted(cache.directory.rglob("*")):
        if path.is_file() and (path in asked or _says_json(path, request)):
            yield "answers", path
    for name in ("briefings", "packs"):
        for path in sorted((settings.workspace / name).glob("*")):
            if path.is_file() and _says_json(path, request):
                yield name, path
    for path in sorted(settings.report_dir.glob("*")):
        if path.is_file() and _says_json(path, request):
            yield "quality report", path
    for damaged in set_aside_files(Workspace.open(settings)):  # nobody can tell what is in them
        if isinstance(damaged, Path):  # objects go with the versions of tables
            yield "quarantined damaged files", damaged


def _says_json(path: Path, request: ForgetRequest) -> bool:
    text = read_text(path)
    found = _loaded(text)
    return may_say(text, request) if found is None else scrubbed_json(found, request) != found


def _lines(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Files that lose lines."""
    for path in sorted(usage_dir(settings).glob("*")):
        yield "usage", path
    for path in sorted((settings.workspace / "connections").glob("*.log*")):
        yield "connections", path


def read_text(path: Path) -> str:
    """The text of a file, whatever bytes it has."""
    return path.read_bytes().decode("utf-8", "surrogateescape")
