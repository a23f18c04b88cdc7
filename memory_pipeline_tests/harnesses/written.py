"""Sessions written line by line for the tests of readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.reading import parse_file


def write(path: Path, *records: Any) -> Path:
    """The records as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def read(path: Path, *records: Any) -> ParsedSession:
    """What is read of a session of these records."""
    return parse_file(write(path, *records))


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    """Who says what."""
    return [(message.role, message.text) for message in session.messages]


def typed(session: ParsedSession) -> list[str]:
    """What the user typed and did not take back."""
    return [message.text for message in session.messages if message.role == "user" and not message.voided]
