"""Databases of agents, made by the scripts among the golden sessions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse

GOLDEN = Path(__file__).parents[1] / "sessions" / "golden"


def made(database: Path, script: str) -> Path:
    """The database, made by a script of `golden/`."""
    database.parent.mkdir(parents=True, exist_ok=True)
    execute(database, (GOLDEN / script).read_text(encoding="utf-8"))
    return database


def execute(database: Path, script: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(script)


def sessions(folder: Path) -> dict[str, ParsedSession]:
    """The sessions found in a folder, by their ids."""
    return {session.session_id: session for session in map(parse, find_sources([folder]))}


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


def ids(session: ParsedSession) -> list[str]:
    return [message.message_id for message in session.messages]
