"""Where OpenCode keeps sessions: in folders of JSON files until version 1.1, in an SQLite database since 1.2.

Upgrading copied the folders into the database and left them, so a session that is in both is read from the database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from memory_pipeline.sessions.harnesses.opencode.database import database_sources, from_database, in_order
from memory_pipeline.sessions.harnesses.records import JsonObject, text_of
from memory_pipeline.sessions.harnesses.sqlite import decoded
from memory_pipeline.sessions.model import Problem, Source

_DATABASE = re.compile(r"opencode(?:-[\w.-]+)?\.db")


def claims(folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
    """The sessions of a folder with a database or JSON folders of OpenCode, and which of the names are not OpenCode's;
    None of any other folder.
    """
    databases = [folder / name for name in sorted(names) if _DATABASE.fullmatch(name) and (folder / name).is_file()]
    storage = folder if folder.name == "storage" and "session" in names else folder / "storage"
    in_folders = (storage == folder or "storage" in names) and _is_storage(storage)
    if not databases and not in_folders:
        return None
    sources: list[Source] = []
    waiting = False
    for database in databases:
        listed, locked = database_sources(database)
        sources += listed
        waiting = waiting or locked
    taken = {source.session for source in sources}
    # while a database is locked for the first time it is not known which sessions it has as well
    found = _folder_sources(storage, taken) if in_folders and not waiting else []
    if storage == folder or folder.name == "opencode":
        return sources + found, []
    own = tuple(database.name for database in databases)
    left = [name for name in names if not (own and name.startswith(own)) and not (in_folders and name == "storage")]
    return sources + found, left


def records(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    """The session as `{"session": …}`, then each message in order as `{"message": …, "parts": […]}`, all numbered."""
    yield from (from_database if source.session else _from_folder)(source, problems)


def _is_storage(place: Path) -> bool:
    return next(place.glob("session/*/ses_*.json"), None) is not None


def _folder_sources(storage: Path, taken: Collection[str]) -> list[Source]:
    files = sorted(storage.glob("session/*/ses_*.json"))
    return [_folder_source(storage, file) for file in files if file.stem not in taken]


def _folder_source(storage: Path, file: Path) -> Source:
    """A session by its file. A part is only rewritten while its message, which is rewritten after it, is answered."""
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


def _from_folder(source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
    file = Path(source.path)
    storage = file.parents[2]
    session = decoded(file.read_bytes(), 1, "The session's file", problems) or {}
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
