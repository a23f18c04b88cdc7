"""Prompts of Claude Code that were typed while it worked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each

MORE = Path(__file__).resolve().parents[3] / "shared" / "more-sessions" / "claude"
FIRST = "run the tests"
WORDS = "commit first, so that you get the sha"


def record(number: int, kind: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"u{number}",
        "sessionId": "s-1",
        "timestamp": f"2026-02-04T12:00:{number:02d}.000Z",
        "message": {"role": kind, "content": content},
    } | fields


def queue(number: int, operation: str, content: Any = None) -> dict[str, Any]:
    time = f"2026-02-04T12:00:{number:02d}.000Z"
    base = {"type": "queue-operation", "operation": operation, "timestamp": time, "sessionId": "s-1"}
    return base if content is None else base | {"content": content}


def attachment(number: int, prompt: str, kind: str = "queued_command") -> dict[str, Any]:
    return record(number, "attachment", attachment={"type": kind, "prompt": prompt})


def call(number: int) -> dict[str, Any]:
    return record(number, "assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}])


def result(number: int) -> dict[str, Any]:
    return record(number, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}])


def parse(tmp_path: Path, *records: dict[str, Any], name: str = "s-1") -> ParsedSession:
    path = tmp_path / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, (record(1, "user", FIRST), *records))) + "\n", encoding="utf-8")
    return parse_file(path)


def typed(session: ParsedSession) -> list[str]:
    """What the user said after the first prompt."""
    return [message.text for message in session.messages if message.role == "user"][1:]


def test_what_was_handed_over_in_a_turn_is_heard_where_it_was_typed(tmp_path: Path) -> None:
    session = parse(tmp_path, call(2), queue(3, "enqueue", WORDS), result(5), queue(6, "remove"), call(7))
    assert [(message.role, message.line) for message in session.messages] == [
        ("user", 1),
        ("tool", 2),
        ("user", 3),
        ("tool", 4),
        ("tool", 6),
    ]
    heard = session.messages[2]
    assert (heard.text, heard.said_at.second, heard.voided, heard.answer_to) == (WORDS, 3, False, None)
    assert session.unknown_records == {}


ENQUEUE = queue(2, "enqueue", WORDS)
SECOND = queue(3, "enqueue", "and push")
NOTE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


@each(
    ("records", "expected"),
    [
        pytest.param([ENQUEUE], [WORDS], id="waits at the end of the file"),
        pytest.param([ENQUEUE, queue(3, "dequeue"), record(4, "user", WORDS)], [WORDS], id="sent"),
        pytest.param([ENQUEUE, record(4, "user", WORDS)], [WORDS], id="sent, unrecorded"),
        pytest.param([ENQUEUE, queue(3, "remove"), record(4, "user", f"{WORDS}\n")], [WORDS], id="said in a record"),
        pytest.param([ENQUEUE, queue(3, "popAll", WORDS)], [], id="back in the input"),
        pytest.param([ENQUEUE, SECOND, queue(4, "popAll")], [], id="all back in the input"),
        pytest.param([ENQUEUE, SECOND, queue(4, "popAll", f"{WORDS}\nand push")], [], id="all back as one text"),
        pytest.param([ENQUEUE, queue(3, "dequeue"), record(4, "user", "[pasted]")], ["[pasted]"], id="other words"),
        pytest.param([ENQUEUE, record(3, "user", "so?"), call(4)], ["so?"], id="the user went on, it may have left"),
        pytest.param([ENQUEUE, SECOND, queue(4, "remove"), queue(5, "remove")], [WORDS, "and push"], id="two"),
        pytest.param(
            [ENQUEUE, SECOND, queue(4, "dequeue"), record(5, "user", WORDS), queue(6, "remove")],
            ["and push", WORDS],
            id="first in, first out",
        ),
        pytest.param(
            [ENQUEUE, SECOND, queue(4, "remove", "and push"), queue(5, "popAll", WORDS)],
            ["and push"],
            id="by its words",
        ),
        pytest.param(
            [queue(2, "enqueue", "go"), queue(3, "remove"), ENQUEUE, queue(4, "remove"), record(5, "user", "go")],
            [WORDS, "go"],
            id="one record takes one prompt",
        ),
        pytest.param([queue(2, "enqueue", NOTE), queue(3, "remove")], [], id="a task notification"),
        pytest.param(
            [queue(2, "enqueue", NOTE), ENQUEUE, queue(3, "remove"), queue(4, "popAll")], [], id="it has its turn"
        ),
        pytest.param([queue(2, "enqueue", "/model"), queue(3, "remove")], [], id="a command"),
        pytest.param([queue(2, "enqueue", "/pr to main"), queue(3, "remove")], ["to main"], id="a command's arguments"),
        pytest.param([queue(2, "enqueue", "/srv/log is full"), queue(3, "remove")], ["/srv/log is full"], id="a path"),
        pytest.param(
            [queue(2, "enqueue"), queue(3, "enqueue", 7), queue(4, "remove"), queue(5, "remove")], [], id="none"
        ),
        pytest.param([queue(2, "remove"), queue(3, "dequeue"), queue(4, "popAll"), queue(5, "turned")], [], id="empty"),
        pytest.param([ENQUEUE, queue(3, "remove"), attachment(4, WORDS)], [WORDS], id="kept as an attachment"),
        pytest.param(
            [attachment(2, "", "skill_listing"), ENQUEUE, queue(3, "remove")], [], id="lost by a version that keeps all"
        ),
    ],
)
def test_it_is_heard_once_if_it_is_kept_nowhere_else(
    tmp_path: Path, records: list[dict[str, Any]], expected: list[str]
) -> None:
    assert typed(parse(tmp_path, *records)) == expected


def test_a_model_queues_prompts_for_sub_agents(tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    start = record(1, "user", FIRST, isSidechain=True, agentId="a1")
    path.write_text("\n".join(map(json.dumps, (start, ENQUEUE, queue(3, "remove")))), encoding="utf-8")
    assert [message.role for message in parse_file(path).messages] == ["injected"]


def test_a_copy_has_the_same_ids_and_equal_words_have_not(tmp_path: Path) -> None:
    lines = [ENQUEUE, queue(3, "remove"), queue(4, "enqueue", WORDS), queue(5, "remove")]
    session = parse(tmp_path, *lines)
    ids = [message.message_id for message in session.messages]
    assert typed(session) == [WORDS, WORDS] and len(set(ids)) == 3
    copy = parse(tmp_path, *(line | {"sessionId": "s-2"} for line in lines), record(6, "user", "go on"), name="s-2")
    assert [message.message_id for message in copy.messages][:3] == ids


def test_it_is_taken_back_with_its_turn(tmp_path: Path) -> None:
    session = parse(
        tmp_path,
        record(2, "assistant", "done", parentUuid="u1"),
        record(3, "user", "wrong way", parentUuid="u2"),
        queue(4, "enqueue", "hurry"),
        queue(5, "remove"),
        record(6, "user", "right way", parentUuid="u2"),
        queue(7, "enqueue", "slowly"),
        queue(8, "remove"),
    )
    assert [message.text for message in session.messages if message.voided] == ["wrong way", "hurry"]


def test_it_is_summarised_away(tmp_path: Path) -> None:
    boundary = record(6, "system", subtype="compact_boundary", compactMetadata={"preTokens": 9})
    session = parse(tmp_path, ENQUEUE, queue(3, "remove"), boundary, queue(7, "enqueue", "go"), queue(8, "remove"))
    assert [compaction.message_ids for compaction in session.compactions] == [
        tuple(message.message_id for message in session.messages[:2])
    ]


def test_it_is_redacted_and_excludes_like_any_message(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    session = parse(tmp_path, queue(2, "enqueue", f"use {secret} <private>at home</private>"), queue(3, "remove"))
    assert secret not in typed(session)[0] and "home" not in typed(session)[0]
    assert typed(session)[0].startswith("use [redacted:")
    assert parse(tmp_path, queue(2, "enqueue", "DO NOT INDEX"), queue(3, "remove")).excluded


@each(
    ("file", "line", "text"),
    [
        ("entireio-cli__42845d94-59b3-4717.jsonl", 156, "commit first so you get the sha 🤦🏻"),
        (
            "entireio-cli__4b3ddf27-d7f7-4773.jsonl",
            348,
            "oh, please don't amend commits - it messes with the entire workflows",
        ),
    ],
)
def test_corrections_in_real_sessions(file: str, line: int, text: str) -> None:
    if not (MORE / file).exists():
        pytest.skip(f"the real sessions are not there: {MORE}")
    found = [message for message in parse_file(MORE / file).messages if message.text == text]
    assert [(message.role, message.line) for message in found] == [("user", line)]
