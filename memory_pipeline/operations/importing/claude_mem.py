"""Import from claude-mem's database: its decisions and the user's directives.

In its schema of 2026 (migration 35), `observations` have a type, of which only decisions are normative; the others
report changes, fixes or discoveries, and `session_summaries` report work. `directives`, if any, are rules that a user
gave it. `sdk_sessions` is not needed, as an observation names its project.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from memory_pipeline.harnesses.model import NotASessionError, NotReadableNowError
from memory_pipeline.harnesses.sqlite import opened, text
from memory_pipeline.operations.importing.lines import Importer, MemoryFile, TextLine, import_line, is_importable
from memory_pipeline.proposals.remembering import ImportLine
from memory_pipeline.reflections.types import ARCHITECTURE, RULES

ORIGIN = "claude-mem"
MAX_ROWS = 200
"""Maximum number of decisions that are read, newest first, as old ones are least likely to be valid."""
_NOT_NOW = "it is in use or was changed while it was read; run it again when claude-mem is idle."


def read_database(importer: Importer, source: str, path: Path) -> MemoryFile:
    """The decisions and directives of the database."""
    try:
        with opened(path) as connection:
            tables = {text(row["name"]) for row in connection.execute("SELECT name FROM sqlite_master")}
            if "observations" not in tables:
                return MemoryFile(source, path, problem=f"{path} is an SQLite database, but not one of claude-mem.")
            found = [*_directives(connection, tables), *_decisions(connection)]
    except NotReadableNowError:
        return MemoryFile(source, path, problem=f"{path}: {_NOT_NOW}")
    except NotASessionError as error:
        return MemoryFile(source, path, problem=f"{path}: {error}")
    except OSError as error:
        return MemoryFile(source, path, problem=f"{path}: {(error.strerror or 'cannot be read').lower()}.")
    lines: list[ImportLine] = []
    for number, words, project, position in found:
        shown = importer.masked(words.replace("\n", " "))
        if is_importable(shown):
            # claude-mem identifies a project by the name or path of its folder
            of = importer.project_of(project) if project.startswith("/") else project or None
            lines.append(import_line(ORIGIN, path, TextLine(number, shown, "", of, position=position)))
    return MemoryFile(source, path, tuple(lines))


_Row = tuple[int, str, str, int]
"""The number of a row, its text, its project, and the index of its section."""


def _directives(connection: sqlite3.Connection, tables: set[str]) -> Iterator[_Row]:
    if "directives" in tables:
        query = "SELECT id, content, project FROM directives WHERE status = 'active' ORDER BY id"
        for row in connection.execute(query):
            yield row["id"], text(row["content"]), text(row["project"]), RULES


def _decisions(connection: sqlite3.Connection) -> Iterator[_Row]:
    query = "SELECT id, title, subtitle, project FROM observations WHERE type = 'decision' ORDER BY id DESC LIMIT ?"
    for row in connection.execute(query, (MAX_ROWS,)):
        title, subtitle = text(row["title"]).strip().rstrip(".:"), text(row["subtitle"]).strip()
        words = f"{title}: {subtitle}" if title and subtitle else title or subtitle
        yield row["id"], words, text(row["project"]), ARCHITECTURE
