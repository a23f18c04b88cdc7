"""The reader of Cursor's transcripts, whose records have neither ids nor times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.cursor import Cursor
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse, parse_file
from memory_pipeline_tests.conftest import utc
from memory_pipeline_tests.harnesses.databases import ids, shape

SENT = "<timestamp>Friday, May 1, 2026, 2:03 PM (UTC+2)</timestamp>\n"


def said(role: str, *content: object) -> dict[str, Any]:
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return {"role": role, "message": {"content": blocks}}


def written(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def read(folder: Path, *records: object) -> ParsedSession:
    return parse_file(written(folder / "a.jsonl", *records))


def test_transcripts_are_found_in_every_workspace_and_where_the_folder_was_moved(tmp_path: Path) -> None:
    project = tmp_path / ".cursor/projects/home-ada-shop"
    written(project / "agent-transcripts/s1/s1.jsonl", said("user", "Hello"))
    written(
        project / "agent-transcripts/s1/subagents/s2.jsonl", said("user", f"{SENT}Find it."), said("assistant", "No.")
    )
    (project / "mcps").mkdir()
    (project / "mcps/tools.json").write_text("{}")
    (project / ".workspace-trusted").write_text('{"workspacePath": "/home/ada/shop", "trustedAt": "2026-05-01"}')
    roots = Cursor().default_roots(tmp_path, {})
    assert roots == [project / "agent-transcripts"]
    moved = Cursor().default_roots(Path("/nowhere"), {"CURSOR_CONFIG_DIR": str(tmp_path / ".cursor")})
    assert moved == roots
    first, child = map(parse, find_sources(roots))
    assert (first.session_id, first.cwd, first.parent_id) == ("s1", "/home/ada/shop", "")
    assert (child.session_id, child.cwd, child.parent_id) == ("s2", "/home/ada/shop", "s1")
    assert shape(first) == [("user", "Hello")]
    assert shape(child) == [("injected", "Find it."), ("assistant", "No.")]


def test_a_prompt_has_the_time_at_which_it_was_sent(tmp_path: Path) -> None:
    cases = {
        "Friday, May 1, 2026, 2:03 PM (UTC+2)": "2026-05-01T12:03",
        "Friday, May 1, 2026, 12:00 AM (UTC-5:30)": "2026-05-01T05:30",
        "Friday, May 1, 2026 at 12:30\u202fPM (UTC)": "2026-05-01T12:30",
        "2026-05-01T12:03:04.000Z": "2026-05-01T12:03:04",
        "Friday, May 41, 2026, 2:03 PM (UTC+2)": None,
        "Friday, May 1, 2026, 2:03 PM (UTC+99)": None,
        "gestern": None,
    }
    for written_time, expected in cases.items():
        session = read(
            tmp_path, said("user", f"<timestamp>{written_time}</timestamp>\n<user_query>\nHi\n</user_query>")
        )
        (message,) = session.messages
        assert message.text == "Hi", written_time
        assert message.is_timed is (expected is not None), written_time
        assert expected is None or message.said_at == utc(f"{expected}+00:00"), written_time


def test_what_was_typed_is_told_from_what_cursor_adds(tmp_path: Path) -> None:
    cases: dict[str, list[tuple[str, str]]] = {
        "Plain words.": [("user", "Plain words.")],
        "<rules>\nBe kind.\n</rules>\n<user_query>\nGo.\n</user_query>\n<git_status>clean</git_status>": [
            ("injected", "<rules>\nBe kind.\n</rules>"),
            ("user", "Go."),
            ("injected", "<git_status>clean</git_status>"),
        ],
        "<user_query>cut off": [("user", "cut off")],
        "<system-reminder>Do.</system-reminder>": [("injected", "<system-reminder>Do.</system-reminder>")],
        "Compare <b> and <i>": [("user", "Compare <b> and <i>")],
    }
    for text, expected in cases.items():
        assert shape(read(tmp_path, said("user", text), said("assistant", "ok")))[:-1] == expected, text
    private = read(tmp_path, said("user", "<private>a <user_query>b</user_query></private> and c"))
    assert shape(private) == [("user", "<private>[private]</private> and c")]


def test_a_message_stays_the_same_when_the_history_before_it_is_pruned(tmp_path: Path) -> None:
    calls = [{"type": "tool_use", "name": "Read", "input": {"path": "a.py"}}]
    records = [said("user", f"{SENT}Begin."), said("assistant", "Yes.", *calls)]
    later = [
        said("user", f"{SENT.replace('2:03', '2:09')}Go on."),
        said("assistant", "Done."),
        said("assistant", "Done."),
    ]
    whole = read(tmp_path, *records, {"type": "turn_ended", "status": "success"}, *later)
    pruned = read(tmp_path, *later)
    assert len(set(ids(whole))) == 6
    assert ids(whole)[3:] == ids(pruned)


def test_any_shape_of_content_is_read(tmp_path: Path) -> None:
    odd = [None, 3, "text", {"a": 1}, [None, 3, {"type": ["x"]}, {"type": "tool_use", "name": 3, "input": [1]}]]
    session = read(
        tmp_path,
        said("user", "Hello", {"type": "image", "data": "aGVsbG8="}),
        *({"role": role, "message": {"content": content}} for content in odd for role in ("user", "assistant")),
        {"role": "assistant", "message": "text"},
        {"role": "system", "message": {"content": "x"}},
        said("user", {"type": "tool_result", "content": [{"type": "text", "text": "2 passed"}], "is_error": True}),
    )
    assert shape(session)[:3] == [("user", "Hello"), ("user", "text"), ("assistant", "text")]
    assert session.messages[-1].is_error and session.messages[-1].text == "2 passed"
    assert session.unknown_records["system"] == 1
