"""Files made to be slow, or to nest just less deeply than what refuses them: each costs no more than its size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import ParsedSession, Source
from memory_pipeline.sessions.reading import parse, parse_file
from memory_pipeline.sessions.windows import cut_windows
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import takes_evenly
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


@each("what", DEEP)
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
# Each is made in two sizes, 1 and 4.
HOSTILE: dict[str, Callable[[int], str]] = {
    "blanks after a brace": lambda n: "{" + " " * 250_000 * n,
    "beginnings of records before a long list": lambda n: (
        lines(PI, pi_said("x")) + ('{"type":[1,' * 6 + '{"type":1,"timestamp":1},') * 40 + "1," * 125_000 * n
    ),
    "beginnings of messages in a snapshot": lambda n: SNAPSHOT + '{"id":' * 75_000 * n,
    "elements before a prompt": lambda n: lines(PI, pi_said("<skill></skill>" * 37_500 * n)),
    "beginnings of marks of images": lambda n: lines(PI, pi_said("[image: " * 50_000 * n)),
    "empty lines before DO NOT INDEX": lambda n: lines(
        PI, pi_said("x"), pi("custom_message", 2, 1, content="\n" * 100_000 * n + "DO NOT INDEX x")
    ),
    "images in one record": lambda n: lines(
        claude(1, 0, [{"type": "image"}, {"type": "text", "text": "<skill>"}] * 7_500 * n)
    ),
    "results in one record": lambda n: lines(
        claude(1, 0), claude(2, 1, [{"type": "tool_result", "content": f"{i}"} for i in range(6_250 * n)])
    ),
    "rewinds to one prompt": lambda n: lines(*(claude(number, 0) for number in range(1, 3_750 * n))),
    "rewinds within each other": lambda n: lines(
        *(claude(f"{kind}{number}", f"a{number - 1}") for number in range(1_750 * n) for kind in "ab")
    ),
    "compactions of Claude Code": lambda n: lines(
        *(y for i in range(1_500 * n) for y in (claude(i, i - 1), boundary(i)))
    ),
    "compactions of pi": lambda n: lines(
        PI,
        *(pi_said("x", number, number - 1) for number in range(2_000 * n)),
        *(
            pi("compaction", f"c{number}", 2_000 * n - 1, summary="s", firstKeptEntryId="0")
            for number in range(2_000 * n)
        ),
    ),
    "compactions of Codex": lambda n: lines(
        CODEX,
        *(y for i in range(2_000 * n) for y in (codex("user_message", message=f"{i}"), {**CODEX, "type": "compacted"})),
    ),
    "branch summaries": lambda n: lines(
        PI,
        *(pi_said("x", number, number - 1) for number in range(2_000 * n)),
        *(pi("branch_summary", f"b{i}", f"b{i - 1}", summary="s", fromId=f"{2_000 * n - 1}") for i in range(2_000 * n)),
    ),
    "rollbacks": lambda n: lines(
        CODEX,
        *(codex("user_message", message=f"q{number}") for number in range(3_000 * n)),
        *(codex("thread_rolled_back", num_turns=1) for _ in range(3_000 * n)),
    ),
    "rewinds of Gemini CLI": lambda n: lines(
        {"sessionId": "s", "projectHash": "p", "timestamp": STAMP},
        *(y for i in range(5_000 * n) for y in ({"id": f"{i}", "type": "user", "content": "x"}, {"$rewindTo": f"{i}"})),
    ),
}


@pytest.mark.slow
@each("what", HOSTILE)
def test_what_grows_with_the_file_does_not_grow_faster(tmp_path: Path, what: str) -> None:
    def read(folder: Path, size: int) -> Callable[[], None]:
        path = folder / f"{size}" / ("a.json" if "snapshot" in what else "a.jsonl")
        path.parent.mkdir()
        path.write_text(HOSTILE[what](size))

        def reads() -> None:
            session = session_or_reason(lambda: parse_file(path))
            if isinstance(session, ParsedSession):
                cut_windows(session, session.messages, ZONE)

        return reads

    takes_evenly(read(tmp_path, 1), read(tmp_path, 4))
