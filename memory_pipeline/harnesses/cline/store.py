"""The storage of Cline and its derived extensions: tasks and their files.

A task of the extension is a folder `tasks/<id>` with `api_conversation_history.json`, a list of messages. Since version
4 a session is a folder `sessions/<id>` with `<id>.messages.json`, an object with that list, and the manifest
`<id>.json`; messages of sub-agents are in the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import orjson

from memory_pipeline.harnesses.cline.texts import outcome, result_in, spoken_and_called, typed
from memory_pipeline.harnesses.content import blocks_of
from memory_pipeline.harnesses.model import NotASessionError, Problem, Source, source_of
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, read_document, text_of

HISTORY = "api_conversation_history.json"
MESSAGES = ".messages.json"
EXTENSIONS = {
    "saoudrizwan.claude-dev": "cline",
    "rooveterinaryinc.roo-cline": "roo",
    "kilocode.kilo-code": "kilo_code",
}
"""The names of the extensions' folders in an editor's storage, in lower case."""
_MESSAGE_START = re.compile(r'\{\s*"(?:id|role|ts)"\s*:')
_ISO_TIME = re.compile(r"Current time in ISO 8601 UTC format: (\S+)")
_SAID = ("task", "text", "user_feedback", "completion_result")
_FIRST = 2
"""Number of the first message's record; the one before it is the task."""


def owner(folder: Path) -> str:
    """The harness that owns a folder, by its path: Cline, unless it belongs to another extension."""
    return next((EXTENSIONS[part.lower()] for part in folder.parts if part.lower() in EXTENSIONS), "cline")


def claims(folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
    """The tasks in a folder, and the names that do not belong to the extension; None for any other folder."""
    if folder.name.lower() in EXTENSIONS:
        return [], [name for name in names if name == "tasks"]
    if HISTORY in names:
        return [source_of(folder / HISTORY, folder.name)], []
    if f"{folder.name}{MESSAGES}" in names:
        found = sorted(name for name in names if name.endswith(MESSAGES))
        return [source_of(folder / name, name.removesuffix(MESSAGES)) for name in found], []
    if folder.name == "tasks" and "_index.json" in names:
        return [], [name for name in names if not name.endswith(".json")]
    return None


def records(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    """The task as `{"task": …}`, then each message as `{"message": …}`. Raises `NotASessionError`."""
    path = Path(source.path)
    messages, agent = _messages(path.read_bytes(), problems)
    task = _manifest(path) if path.name.endswith(MESSAGES) else _history_item(path.parent)
    yield 1, {"task": {"id": source.session, **task, "agent": agent}}
    untimed = [message for message in messages if message.get("ts") is None]
    shown = _shown_times(path.parent) if untimed and path.name == HISTORY else {}
    for number, message in enumerate(messages, start=_FIRST):
        if message.get("ts") is None and path.name == HISTORY:
            message["ts"] = _time_of(message, shown) or (task.get("created") if number == _FIRST else None)
        yield number, {"message": message}


def _messages(raw: bytes, problems: list[Problem]) -> tuple[list[JsonObject], str]:
    """The messages of a file, and the agent of their session."""
    value, agent = read_document(raw, _MESSAGE_START, lambda message: "role" in message, problems), ""
    if isinstance(value, dict):
        agent, value = text_of(value.get("agent")), value.get("messages")
    if not isinstance(value, list):
        raise NotASessionError("It holds no list of messages.")
    return objects_of(value), agent


def _file(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):  # files next to a session are optional
        return None


def _manifest(path: Path) -> JsonObject:
    folder = path.parent
    found = object_of(_file(folder / f"{folder.name}.json"))
    is_child = path.name != f"{folder.name}{MESSAGES}"
    return {
        "title": "" if is_child else text_of(object_of(found.get("metadata")).get("title")),
        "cwd": text_of(found.get("cwd")),
        "created": found.get("started_at") or found.get("created_at"),
        "parent": folder.name if is_child else "",
        "interactive": found.get("interactive"),
    }


def _history_item(folder: Path) -> JsonObject:
    """The entry of the task, which Roo stores in the task's folder, and Cline in one file for all tasks."""
    item = _file(folder / "history_item.json")
    if not isinstance(item, dict):
        listed = objects_of(_file(folder.parent.parent / "state" / "taskHistory.json"))
        item = next((found for found in listed if found.get("id") == folder.name), {})
    # Cline uses the time as the name of a task
    began = int(folder.name) if re.fullmatch(r"1\d{12}", folder.name) else None
    return {
        "cwd": text_of(item.get("workspace")) or text_of(item.get("cwdOnTaskInitialization")),
        "created": began,
        "parent": text_of(item.get("parentTaskId")),
    }


def _shown_times(folder: Path) -> dict[str, list[Any]]:
    """The times at which each text was shown, in order; the extension's data for display always has times."""
    times: dict[str, list[Any]] = {}
    for message in objects_of(_file(folder / "ui_messages.json")):
        if message.get("say") in _SAID:
            times.setdefault(text_of(message.get("text")).strip(), []).append(message.get("ts"))
    return times


def _time_of(message: JsonObject, shown: dict[str, list[Any]]) -> object:
    texts = [text_of(block.get("text")) for block in blocks_of(message.get("content"))]
    for text in texts:
        if message.get("role") == "user":
            result = result_in(text)
            found = outcome(*result) if result else typed(text)
            said = [found.said.strip()] if found else []
        else:
            said = [spoken or text_of(given.get("result")) for _, spoken, given in spoken_and_called(text)]
        for words in filter(None, said):
            if times := shown.get(words):
                return times.pop(0)
    return next((iso[1] for text in texts if (iso := _ISO_TIME.search(text))), None)
