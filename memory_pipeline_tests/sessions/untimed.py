"""A session of each harness in which nothing bears a time but a header, where the harness has one.

::

    for path in untimed_sessions(folder): ...

Six rules of a person, each answered. The header's time is `BEGAN`, the files were changed at `CHANGED`.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

BEGAN, CHANGED = "2025-03-05T07:43:21.000Z", "2025-03-05T08:57:32+00:00"
CLOCKS = ("07:43", "08:57", "7:43", "8:57")
"""What nobody may be told."""
RULES = (
    "Never deploy the {0} on a Friday, because nobody is there to watch it.",
    "From now on we always use uv instead of pip in the {0}.",
    "In the {0} the prices are integers in cents, never floats.",
    "We decided to keep the {0} on Postgres, because SQLite locks under load.",
    "Never commit to main of the {0} without a review.",
    "The backups of the {0} must always run before a migration.",
)


def untimed_sessions(folder: Path) -> list[Path]:
    """Their files: of OpenCode the folder of its storage."""
    found = [make(folder, _said(about)) for make, about in _HARNESSES.items()]
    changed = datetime.fromisoformat(CHANGED).timestamp()
    for path in [*folder.rglob("*")]:
        os.utime(path, (changed, changed))
    return found


def _said(about: str) -> list[tuple[str, str]]:
    turns = [[("user", rule.format(about)), ("assistant", f"I wrote rule {i} down.")] for i, rule in enumerate(RULES)]
    return [turn for pair in turns for turn in pair]


def _lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    return path


def _pi(folder: Path, said: list[tuple[str, str]]) -> Path:
    header = {"type": "session", "version": 3, "id": "pi-untimed", "timestamp": BEGAN, "cwd": "/src/shop"}
    messages = [
        {
            "type": "message",
            "id": f"e{i}",
            "parentId": f"e{i - 1}" if i else None,
            "message": {"role": role, "content": [{"type": "text", "text": text}]},
        }
        for i, (role, text) in enumerate(said)
    ]
    return _lines(folder / "pi" / "pi-untimed.jsonl", [header, *messages])


def _claude_code(folder: Path, said: list[tuple[str, str]]) -> Path:
    session = "11aa0000-0000-4000-8000-000000000001"
    records = [
        {
            "type": role,
            "uuid": f"u{i}",
            "parentUuid": f"u{i - 1}" if i else None,
            "sessionId": session,
            "cwd": "/src/shop",
            "message": {"role": role, "content": text},
        }
        for i, (role, text) in enumerate(said)
    ]
    return _lines(folder / "claude" / f"{session}.jsonl", records)


def _codex(folder: Path, said: list[tuple[str, str]]) -> Path:
    session = "22aa0000-0000-4000-8000-000000000001"
    meta = {"type": "session_meta", "payload": {"id": session, "timestamp": BEGAN, "cwd": "/src/shop"}}
    kinds = {"user": "input_text", "assistant": "output_text"}
    items = [
        {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kinds[role], "text": text}]},
        }
        for role, text in said
    ]
    return _lines(folder / "codex" / f"rollout-2025-03-05T07-43-21-{session}.jsonl", [meta, *items])


def _gemini(folder: Path, said: list[tuple[str, str]]) -> Path:
    kinds = {"user": "user", "assistant": "gemini"}
    messages = [{"id": f"g{i}", "type": kinds[role], "content": text} for i, (role, text) in enumerate(said)]
    session = {"sessionId": "33aa0000-0000-4000-8000-000000000001", "projectHash": "c0ffee", "startTime": BEGAN}
    path = folder / "gemini" / "session-2025-03-05T07-43-33aa.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(session | {"lastUpdated": BEGAN, "messages": messages}), "utf-8")
    return path


def _opencode(folder: Path, said: list[tuple[str, str]]) -> Path:
    storage = folder / "opencode" / "storage"
    session = {"id": "ses_untimed", "projectID": "global", "directory": "/src/shop", "version": "1.1.0"}
    records = {"session/global/ses_untimed": session | {"time": {"created": _BEGAN_MS}}}
    for i, (role, text) in enumerate(said):
        name = f"msg_{i:02d}"
        records[f"message/ses_untimed/{name}"] = {"id": name, "sessionID": "ses_untimed", "role": role}
        part = {"id": f"prt_{i:02d}", "sessionID": "ses_untimed", "messageID": name, "type": "text", "text": text}
        records[f"part/{name}/prt_{i:02d}"] = part
    for name, record in records.items():
        path = storage / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), "utf-8")
    return storage


_BEGAN_MS = round(datetime.fromisoformat(BEGAN).timestamp() * 1000)
_HARNESSES = {_pi: "shop", _claude_code: "parcel service", _codex: "billing", _gemini: "bakery", _opencode: "orchard"}
