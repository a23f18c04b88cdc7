"""Secrets planted in every place of the sessions of every harness reach nothing that a run leaves behind.

One run reads them all; then everything that the home holds is searched: tables, index, logs, markdown files, Dagster's
runs, events and metadata, and what the commands printed. The same search finds them where redaction is switched off.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.sessions.redaction.canaries import CANARIES

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
PRIVATE = "the-words-between-the-private-marks"
_LINE = re.compile(r"\n|\\n")
LONGEST = 4000
"""Characters of a tool's text; more than the limit, so that excerpts are cut somewhere in the canaries."""


def stamp(number: int) -> str:
    return (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def said() -> Iterator[tuple[str, str]]:
    """(voice, text): every canary in every voice, in sentences that an observer would want to keep."""
    for text, _ in CANARIES.values():
        yield "user", f"Always remember for the parcel service, never forget it: {text}\nThat is a rule from now on."
        yield "assistant", f"The root cause was that the parcel service was started with {text}\nIt is fixed now."
        yield "tool", text
        yield "tool", f"{'listing of parcels ' * 60}{text}{' more parcels' * 200}"[:LONGEST]
        yield "injected", f"<system-reminder>The environment of the project has {text}</system-reminder>"
    yield "user", f"Keep this to yourself: <private>{PRIVATE}</private> and always use port 8080 for parcels."


def pi(folder: Path) -> None:
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "pi-1", "timestamp": stamp(0), "cwd": f"/src/{_all()}"},
        {"type": "session_info", "id": "i", "parentId": None, "timestamp": stamp(0), "name": f"Parcels {_all()}"},
    ]
    for number, (voice, text) in enumerate(said(), 1):
        block = [{"type": "text", "text": text}]
        message: dict[str, Any] = {"role": "user", "content": block}
        if voice == "assistant":
            calls = [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": text, "path": text}}]
            message = {"role": "assistant", "content": [*block, *calls]}
        elif voice == "tool":
            message = {"role": "toolResult", "toolName": "bash", "isError": True, "content": block}
        entry = {"type": "message", "id": f"{number:08x}", "timestamp": stamp(number), "message": message}
        records.append({**entry, "parentId": f"{number - 1:08x}" if number > 1 else "i"})
    records.append({"type": _all(), "id": "odd", "parentId": None, "timestamp": stamp(1)})
    lines = [json.dumps(record) for record in records]
    lines.append('{"type": "message", "broken": ' + json.dumps(_all()))
    write(folder / "pi/a.jsonl", "\n".join(lines))


def claude(folder: Path) -> None:
    records = []
    for number, (voice, text) in enumerate(said(), 1):
        content: Any = text
        if voice == "assistant":
            content = [
                {"type": "text", "text": text},
                {"type": "tool_use", "name": "Edit", "input": {"file_path": text}},
            ]
        elif voice == "tool":
            content = [{"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": True}]
        records.append(
            {
                "type": "assistant" if voice == "assistant" else "user",
                "uuid": f"u-{number}",
                "sessionId": "claude-1",
                "timestamp": stamp(number),
                "cwd": f"/src/{_all()}",
                "message": {"content": content},
            }
        )
    records.append({"type": "ai-title", "aiTitle": _all(), "sessionId": "claude-1"})
    write(folder / "claude/a.jsonl", "\n".join(map(json.dumps, records)))


def codex(folder: Path) -> None:
    payloads: list[tuple[str, dict[str, Any]]] = [("session_meta", {"id": "codex-1", "cwd": f"/src/{_all()}"})]
    for voice, text in said():
        kind = {"user": "input_text", "injected": "input_text", "assistant": "output_text"}.get(voice, "")
        role = "assistant" if voice == "assistant" else "user"
        if voice == "tool":
            payloads += [
                ("response_item", {"type": "function_call", "name": "shell", "arguments": text, "call_id": "c"}),
                ("response_item", {"type": "function_call_output", "call_id": "c", "output": text}),
            ]
        else:
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            payloads.append(("response_item", item))
        if voice == "user":
            payloads.append(("event_msg", {"type": "user_message", "message": text}))
    lines = [{"timestamp": stamp(n), "type": kind, "payload": payload} for n, (kind, payload) in enumerate(payloads)]
    write(folder / "codex/rollout.jsonl", "\n".join(map(json.dumps, lines)))


def gemini(folder: Path) -> None:
    messages = [
        {
            "id": f"g-{number}",
            "timestamp": stamp(number),
            "type": "gemini" if voice == "assistant" else "info" if voice == "injected" else "user",
            "content": text,
            "toolCalls": [
                {"id": f"t-{number}", "name": "shell", "args": {"c": text}, "result": text, "status": "error"}
            ]
            if voice == "assistant"
            else [],
        }
        for number, (voice, text) in enumerate(said(), 1)
    ]
    session = {"sessionId": "gemini-1", "projectHash": "p", "summary": _all(), "messages": messages}
    write(folder / "gemini/session-1.json", json.dumps(session, indent=1))


def opencode(folder: Path) -> None:
    storage = folder / "opencode/storage"
    write(
        storage / "session/p/ses_1.json",
        json.dumps({"id": "ses_1", "projectID": "p", "title": _all(), "directory": f"/src/{_all()}"}),
    )
    for number, (voice, text) in enumerate(said(), 1):
        at = int((START + timedelta(seconds=number)).timestamp() * 1000)
        role = "assistant" if voice in ("assistant", "tool") else "user"
        message = {"id": f"msg_{number:05}", "sessionID": "ses_1", "role": role, "time": {"created": at}}
        part: dict[str, Any] = {"id": f"prt_{number:05}", "type": "text", "text": text}
        if voice == "tool":
            state = {"status": "error", "input": {"command": text}, "error": text, "time": {"start": at, "end": at}}
            part = {"id": f"prt_{number:05}", "type": "tool", "tool": "bash", "callID": f"c{number}", "state": state}
        write(storage / f"message/ses_1/{message['id']}.json", json.dumps(message))
        write(storage / f"part/{message['id']}/{part['id']}.json", json.dumps(part))


def _all() -> str:
    """All canaries in one line, for what is only a name."""
    return " ".join(text for text, _ in CANARIES.values() if "\n" not in text)


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def left_behind(home: Path) -> Iterator[tuple[str, str]]:
    """Everything below the home: each file as it is and, where that hides text, as what it holds."""
    for path in sorted(home.rglob("*")):
        if not path.is_file() or "sessions" in path.relative_to(home).parts[:1]:
            continue
        yield str(path), path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield str(path), repr(pl.read_parquet(path, glob=False).to_dicts())
        elif path.suffix == ".db" or path.read_bytes()[:15] == b"SQLite format 3":
            with closing(sqlite3.connect(path)) as connection:
                yield str(path), "\n".join(connection.iterdump())


def found_in(texts: list[tuple[str, str]]) -> set[str]:
    """Kinds of canaries that are there, as they are or as JSON writes them; of a long one any line will do."""
    found = set()
    secrets = {kind: secret for kind, (_, secret) in CANARIES.items()} | {"private": PRIVATE}
    pieces = {
        kind: {piece for line in _LINE.split(secret) if len(line) >= 6 for piece in (line, json.dumps(line)[1:-1])}
        for kind, secret in secrets.items()
    }
    everything = "\n".join(text for _, text in texts)
    for kind, parts in pieces.items():
        if any(part in everything and not part.startswith("-----") for part in parts):
            found.add(kind)
    return found


def run(home: Path, *harnesses: Callable[[Path], None], redact: str = "true") -> list[tuple[str, str]]:
    """Read, observe and propose; everything that this leaves behind or prints."""
    sessions = home / "sessions"
    for write_sessions in harnesses:
        write_sessions(sessions)
    printed = []
    for command in (["run", "--all", "--sessions", str(sessions)], ["status", "--json"], ["review"]):
        result = memory(home, *command, env={"MEMORY_DEFAULT_SESSION_DIRS": "false", "MEMORY_REDACT": redact})
        assert result.returncode == 0, result.stderr
        printed.append((f"output of {command[0]}", result.stdout + result.stderr))
    return [*printed, *left_behind(home)]


@pytest.mark.slow
def test_no_canary_reaches_anything(tmp_path: Path) -> None:
    texts = run(tmp_path, pi, claude, codex, gemini, opencode)
    workspace = tmp_path / ".memory-pipeline"
    harnesses = pl.read_parquet(workspace / "lake/files/all.parquet").filter(pl.col("reason").is_null())["harness"]
    assert sorted(harnesses) == ["claude_code", "codex", "gemini", "opencode", "pi"]
    observations = pl.read_parquet(workspace / "lake/observations/2025-03-05.parquet")
    assert observations["text"].str.contains("[redacted:", literal=True).any()  # they were worth observing
    for made in ("REVIEW.md", "memory/2025-03-05.md", "index", "dagster", "lake/embeddings"):
        assert (workspace / made).exists()
    assert len(CANARIES) >= 40
    assert found_in(texts) == set()


@pytest.mark.slow
def test_the_search_finds_them_where_redaction_is_off(tmp_path: Path) -> None:
    texts = run(tmp_path, pi, redact="false")
    assert found_in(texts) == set(CANARIES)  # what is marked private stays out in any case
