"""Nothing that is read from a session gets past the redactor."""

from __future__ import annotations

import json
from pathlib import Path

from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.redaction.canaries import A36

TOKEN = "ghp_" + A36
STAMP = "2026-05-01T12:00:00Z"
REDACTOR = Redactor(b"salt")
MARK = REDACTOR.redact(TOKEN)


def test_a_title_has_no_half_of_a_token(tmp_path: Path) -> None:
    message = {"type": "message", "id": "1", "timestamp": STAMP}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(message | {"message": {"role": "user", "content": "x" * 40 + f" {TOKEN}"}}))
    assert parse_file(path, redactor=REDACTOR).name == "x" * 40 + f" {MARK}"


def test_nothing_leaves_parse_file_unredacted(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "t", "name": "write", "arguments": {"path": f"/x/{TOKEN}", "content": TOKEN}}
    unknown_call = {"type": "toolCall", "id": "u", "name": TOKEN, "arguments": {"note": "x " * 800 + TOKEN}}
    said = {"type": "message", "timestamp": STAMP}
    records = [
        {"type": "session", "version": 3, "id": "s", "timestamp": STAMP, "cwd": f"/home/{TOKEN}"},
        {"type": "session_info", "id": "1", "timestamp": STAMP, "name": f"with {TOKEN}"},
        said | {"id": "2", "message": {"role": "user", "content": f"use {TOKEN}"}},
        said | {"id": "3", "message": {"role": "assistant", "content": [call, unknown_call]}},
        {"type": TOKEN},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n" + f'{{"broken {TOKEN}')
    session = parse_file(path, redactor=REDACTOR)
    assert TOKEN not in repr(session)
    assert session.messages[0].text == f"use {MARK}"
    assert session.files_modified == (f"/x/{MARK}",)
