"""Small sessions of each harness and era in `golden/`, and beside each what is read of it, for people to review.

`UPDATE_GOLDEN=1 pytest memory_pipeline_tests/sessions/test_golden.py` writes the `.txt` files anew, which is to be
followed by a look at what changed in them. Sessions that were written by hand are `NAME.jsonl` or `NAME.json`, a folder
as its agent keeps it, or `NAME.sql`, which makes the agent's database.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from memory_pipeline.harnesses.model import Message, ParsedSession, Source, source_of
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.cases import each

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1" and "CI" not in os.environ
DATABASES = {"opencode": "opencode.db", "crush": "crush.db", "goose": "sessions.db"}
TEXT_LIMIT = 100


def sessions() -> list[Path]:
    """The files and folders that hold a session each."""
    return sorted(p for p in GOLDEN.glob("*/*") if p.is_dir() or p.suffix in (".jsonl", ".json", ".sql"))


def sources(path: Path, folder: Path) -> list[Source]:
    if path.suffix == ".sql":
        with closing(sqlite3.connect(folder / DATABASES[path.parent.name])) as connection:
            connection.executescript(path.read_text(encoding="utf-8"))
        return list(find_sources([folder]))
    return list(find_sources([path])) if path.is_dir() else [source_of(path)]


def rendered(session: ParsedSession) -> str:
    """What is known of a session, a line for each message."""
    numbers = {message.message_id: number for number, message in enumerate(session.messages, start=1)}
    lines = [_message_line(number, message, session) for number, message in enumerate(session.messages, start=1)]
    lines.append("")
    for compaction in session.compactions:
        gone = ", ".join(f"#{number}" for number in sorted(map(numbers.__getitem__, compaction.message_ids)))
        tokens = f" of {compaction.tokens_before} tokens" if compaction.tokens_before is not None else ""
        lines.append(f"compaction{tokens} at {_time(compaction.at)}: {gone or 'nothing'} summarised away")
    facts = {
        "harness": session.harness,
        "session": session.session_id,
        "parent": session.parent_id,
        "title": session.name,
        "cwd": session.cwd,
        "read": ", ".join(session.files_read),
        "modified": ", ".join(session.files_modified),
        "records": session.records,
        "unknown": ", ".join(f"{count} {kind}" for kind, count in sorted(session.unknown_records.items())),
        "problems": "; ".join(f"line {problem.line}: {problem.reason}" for problem in session.problems),
        "excluded": session.excluded or "",
    }
    lines += [f"{name}: {value}" for name, value in facts.items() if value != ""]
    return "\n".join(lines) + "\n"


def _message_line(number: int, message: Message, session: ParsedSession) -> str:
    marks = {
        "ERROR": message.is_error,
        "UNTIMED": not message.is_timed,
        "VOIDED": message.voided,
        "INHERITED": message.message_id in session.inherited,
        "REFUSED": message.role == "tool" and message.answer_to is not None,
        f"to the {message.answer_to} {_short(message.answered or '')}": message.role == "user" and message.answer_to,
        f"written {_time(message.written_at)}": message.written_at != message.said_at,
    }
    shown = " ".join([message.role, message.tool_name or "", *(mark for mark, there in marks.items() if there)])
    images = "".join(f" <{image.media_type} at {image.line}/{image.block}>" for image in message.images)
    text = _short(message.text) + images
    return f"#{number} line {message.line} {_time(message.said_at)} {' '.join(shown.split())}: {text}"


def _short(text: str) -> str:
    text = text.replace("\n", "⏎").replace("\r", "␍")
    return text if len(text) <= TEXT_LIMIT else f"{text[:TEXT_LIMIT]}…"


def _time(moment: datetime | None) -> str:
    return moment.strftime("%m-%d %H:%M:%S.%f")[:-3] if moment else "?"


@each("path", sessions(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_golden(path: Path, tmp_path: Path) -> None:
    found = "\n".join(rendered(parse(source)) for source in sources(path, tmp_path))
    expected = path.with_name(f"{path.name.removesuffix(path.suffix) if path.is_file() else path.name}.txt")
    if UPDATE:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_golden_output_has_its_session() -> None:
    outputs = {path.with_suffix("") for path in GOLDEN.glob("*/*.txt")}
    assert outputs == {path if path.is_dir() else path.with_suffix("") for path in sessions()}
