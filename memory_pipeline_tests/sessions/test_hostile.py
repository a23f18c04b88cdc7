"""Files made to be slow, or to nest just less deeply than what refuses them: each costs no more than its size."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.sessions.model import ParsedSession, Source
from memory_pipeline.sessions.reading import parse, parse_file
from memory_pipeline.sessions.windows import cut_windows
from memory_pipeline_tests.sessions.fuzzing import ZONE, check_session, session_or_reason

DEEP = {
    "an argument of Codex": '{"type":"response_item","payload":{"type":"local_shell_call","action":@}}',
    "a result of Codex": '{"type":"response_item","payload":{"type":"function_call_output","output":{"a":@}}}',
    "an argument of Claude Code": '{"type":"assistant","message":{"content":[{"type":"tool_use","input":@}]}}',
    "a summary of pi": '{"type":"branch_summary","content":[{"content":@}]}',
}
FIRST = {
    "Codex": '{"type":"event_msg","payload":{"type":"user_message","message":"hi"}}',
    "Code": '{"type":"user","sessionId":"s","message":{"content":"hi"}}',
    "pi": '{"type":"message","message":{"role":"user","content":"hi"}}',
}


@pytest.mark.parametrize("what", DEEP)
def test_a_record_that_is_nested_too_deeply_costs_no_more_than_itself(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.jsonl"
    for depth in range(400, 1000):
        nested = DEEP[what].replace("@", "[" * depth + "]" * depth)
        path.write_text(f"{FIRST[what.split()[-1]]}\n{nested}\n")
        session = session_or_reason(lambda: parse_file(path))
        assert isinstance(session, ParsedSession) and "hi" in {message.text for message in session.messages}


def test_a_time_that_no_clock_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(FIRST["pi"])
    for nanoseconds in (0, -1, 2**63 * 10**6, 4 * 10**18 * 10**6):
        check_session(parse(Source(str(path), "", 1, nanoseconds)))


STAMP = "2026-05-01T12:00:00Z"
PI = {"type": "session", "id": "s", "timestamp": STAMP}
CODEX = {"type": "session_meta", "timestamp": STAMP, "payload": {"id": "s"}}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def pi(kind: str, number: object, parent: object, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": str(number), "parentId": str(parent), "timestamp": STAMP} | fields


def pi_said(text: object, number: object = 1, parent: object = 0) -> dict[str, Any]:
    return pi("message", number, parent, message={"role": "user", "content": text})


def claude(number: object, parent: object, content: object = "hi") -> dict[str, Any]:
    said = {"type": "user", "uuid": str(number), "parentUuid": str(parent), "sessionId": "s", "timestamp": STAMP}
    return said | {"message": {"content": content}}


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "timestamp": STAMP, "payload": {"type": kind} | payload}


def boundary(number: int) -> dict[str, Any]:
    kept = {"preservedSegment": {"headUuid": "0"}}
    fields = {"type": "system", "subtype": "compact_boundary", "uuid": f"c{number}", "sessionId": "s"}
    return fields | {"timestamp": STAMP, "compactMetadata": kept}


SNAPSHOT = '{"sessionId":"s","projectHash":"p",\n"messages":['
# Each of these once took more than three seconds, most of them minutes, or all of the memory.
HOSTILE: dict[str, Any] = {
    "blanks after a brace": lambda: "{" + " " * 1_000_000,
    "beginnings of records before a long list": lambda: (
        lines(PI, pi_said("x")) + ('{"type":[1,' * 6 + '{"type":1,"timestamp":1},') * 40 + "1," * 500_000
    ),
    "beginnings of messages in a snapshot": lambda: SNAPSHOT + '{"id":' * 300_000,
    "elements before a prompt": lambda: lines(PI, pi_said("<skill></skill>" * 150_000)),
    "beginnings of marks of images": lambda: lines(PI, pi_said("[image: " * 200_000)),
    "empty lines before DO NOT INDEX": lambda: lines(
        PI, pi_said("x"), pi("custom_message", 2, 1, content="\n" * 400_000 + "DO NOT INDEX x")
    ),
    "images in one record": lambda: lines(
        claude(1, 0, [{"type": "image"}, {"type": "text", "text": "<skill>"}] * 30_000)
    ),
    "results in one record": lambda: lines(
        claude(1, 0), claude(2, 1, [{"type": "tool_result", "content": f"{i}"} for i in range(25_000)])
    ),
    "rewinds to one prompt": lambda: lines(*(claude(number, 0) for number in range(1, 15_000))),
    "rewinds within each other": lambda: lines(
        *(claude(f"{kind}{number}", f"a{number - 1}") for number in range(7_000) for kind in "ab")
    ),
    "compactions of Claude Code": lambda: lines(*(y for i in range(6_000) for y in (claude(i, i - 1), boundary(i)))),
    "compactions of pi": lambda: lines(
        PI,
        *(pi_said("x", number, number - 1) for number in range(8_000)),
        *(pi("compaction", f"c{number}", 7_999, summary="s", firstKeptEntryId="0") for number in range(8_000)),
    ),
    "compactions of Codex": lambda: lines(
        CODEX,
        *(y for i in range(8_000) for y in (codex("user_message", message=f"{i}"), {**CODEX, "type": "compacted"})),
    ),
    "branch summaries": lambda: lines(
        PI,
        *(pi_said("x", number, number - 1) for number in range(8_000)),
        *(pi("branch_summary", f"b{i}", f"b{i - 1}", summary="s", fromId="7999") for i in range(8_000)),
    ),
    "rollbacks": lambda: lines(
        CODEX,
        *(codex("user_message", message=f"q{number}") for number in range(12_000)),
        *(codex("thread_rolled_back", num_turns=1) for _ in range(12_000)),
    ),
    "rewinds of Gemini CLI": lambda: lines(
        {"sessionId": "s", "projectHash": "p", "timestamp": STAMP},
        *(y for i in range(20_000) for y in ({"id": f"{i}", "type": "user", "content": "x"}, {"$rewindTo": f"{i}"})),
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_grows_with_the_file_does_not_grow_faster(tmp_path: Path, what: str) -> None:
    path = tmp_path / ("a.json" if "snapshot" in what else "a.jsonl")
    path.write_text(HOSTILE[what]())
    started = time.process_time()
    session = session_or_reason(lambda: parse_file(path))
    if isinstance(session, ParsedSession):
        cut_windows(session, session.messages, ZONE)
    assert time.process_time() - started < 3
