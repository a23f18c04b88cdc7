"""The storage of OpenCode: folders of JSON files until version 1.1, an SQLite database since 1.2.

Upgrading copied the folders into the database and kept them, so a session in both is read from the database. `opencode
export` writes a file with one session: for 1.x messages with their parts, for 2.x those of the new table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from memory_pipeline.harnesses.model import Problem, Source
from memory_pipeline.harnesses.opencode.current import record_of
from memory_pipeline.harnesses.opencode.database import OpenCodeDatabase, in_order
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, read_document, text_of
from memory_pipeline.harnesses.sqlite import decoded

_DATABASE = re.compile(r"(\w+)(?:-[\w.-]+)?\.db")
"""The name of a database: the agent, and the release channel if it is not the default."""
_SESSION_FILES = "session/*/ses_*.json"
_SQLITE = OpenCodeDatabase()
_MESSAGE_START = re.compile(r'\{\s*"(?:info|id|type|time)"\s*:')


def claims(folder: Path, names: Collection[str], agent: str) -> tuple[list[Source], list[str]] | None:
    """The sessions of a folder with a database or JSON folders of the agent, and the names that do not belong to it;
    None for any other folder.
    """
    elsewhere = Path(os.environ.get(f"{agent.upper()}_DB", "")).name
    databases = [
        folder / name
        for name in sorted(names)
        if name == elsewhere or ((stem := _DATABASE.fullmatch(name)) and stem[1] == agent)
        if (folder / name).is_file()
    ]
    storage = folder if folder.name == "storage" and "session" in names else folder / "storage"
    in_folders = (storage == folder or "storage" in names) and any(storage.glob(_SESSION_FILES))
    if not databases and not in_folders:
        return None
    sources: list[Source] = []
    waiting = False
    for database in databases:
        listed, locked = _SQLITE.sources(database)
        sources += listed
        waiting = waiting or locked
    taken = {source.session for source in sources}
    # while a new database is locked, it is unknown which of these sessions it has
    found = _folder_sources(storage, taken) if in_folders and not waiting else []
    if storage == folder or folder.name == agent:
        return sources + found, []
    own = tuple(database.name for database in databases)
    left = [name for name in names if not (own and name.startswith(own)) and not (in_folders and name == "storage")]
    return sources + found, left


def records(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    """The session as `{"session": …}`, then each message in order as `{"message": …, "parts": […]}`, all numbered."""
    yield from (_SQLITE.records if source.session else _from_file)(source, problems)


def _folder_sources(storage: Path, taken: Collection[str]) -> list[Source]:
    files = sorted(storage.glob(_SESSION_FILES))
    return [_folder_source(storage, file) for file in files if file.stem not in taken]


def _folder_source(storage: Path, file: Path) -> Source:
    """The source of a session's file. A part is only rewritten while its message is answered, and the message is
    rewritten afterwards."""
    size, modified = 0, 0
    messages = storage / "message" / file.stem
    try:
        for place in (file, messages, *messages.glob("msg_*.json")):
            stat = place.stat()
            size, modified = size + stat.st_size, max(modified, stat.st_mtime_ns)
            if place.parent == messages and (parts := storage / "part" / place.stem).is_dir():
                modified = max(modified, parts.stat().st_mtime_ns)
    except OSError:
        pass
    return Source(str(file), "", size, modified)


def _from_file(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    file = Path(source.path)
    raw = file.read_bytes()
    value = read_document(raw, _MESSAGE_START, _is_message, [] if b'"info"' not in raw else problems)
    if isinstance(value, dict) and "info" in value:
        yield from _exported(value)
    else:
        session = decoded(raw, 1, "The session's file", problems) or {}
        yield from _from_folder(file, session, problems)


def _is_message(value: JsonObject) -> bool:
    """Whether an object of an export is a message of 1.x or 2.x, rather than a part of one."""
    return "info" in value or ("type" in value and text_of(value.get("id")).startswith("msg_"))


def _exported(export: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    yield 1, {"session": object_of(export.get("info"))}
    for number, message in enumerate(objects_of(export.get("messages")), start=2):
        if isinstance(message.get("info"), dict):
            yield number, {"message": message["info"], "parts": objects_of(message.get("parts"))}
        else:
            record = record_of(text_of(message.get("type")), message)
            if message.get("type") == "user":
                record["message"]["origin"] = text_of(message.get("id"))
            yield number, record


def _from_folder(file: Path, session: JsonObject, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    storage = file.parents[2]
    yield 1, {"session": {"id": file.stem, **session}}
    messages = []
    for path in sorted((storage / "message" / file.stem).glob("msg_*.json")):
        message = _file(path, 1, problems)
        if message is not None:
            messages.append({"id": path.stem, **message})
    for number, message in enumerate(in_order(messages), start=2):
        found = [
            {"id": path.stem, **part}
            for path in sorted((storage / "part" / text_of(message["id"])).glob("prt_*.json"))
            if (part := _file(path, number, problems)) is not None
        ]
        yield number, {"message": message, "parts": found}


def _file(path: Path, number: int, problems: list[Problem]) -> JsonObject | None:
    try:
        raw = path.read_bytes()
    except OSError:
        problems.append(Problem(number, f"The file {path.name} cannot be read; left out."))
        return None
    return decoded(raw, number, f"The file {path.name}", problems)
