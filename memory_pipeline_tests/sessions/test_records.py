"""Damaged files, recognition by content, and the helpers that all readers share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.content import content_text, images_in
from memory_pipeline.harnesses.model import NotASessionError, Problem
from memory_pipeline.harnesses.pi import Pi
from memory_pipeline.harnesses.records import JsonLines, to_time
from memory_pipeline.harnesses.speakers import split_by_speaker
from memory_pipeline.harnesses.transcript import clean, message_id, one_line
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each

GOOD = '{"type":"message","timestamp":"2026-01-01T00:00:00Z","n":1}'
NEXT = '{"type":"message","timestamp":"2026-01-01T00:00:01Z","n":2}'


def read(tmp_path: Path, content: bytes) -> tuple[list[tuple[int, object]], list[Problem]]:
    path = tmp_path / "session.jsonl"
    path.write_bytes(content)
    problems: list[Problem] = []
    return [(line, record["n"]) for line, record in JsonLines(str(path), problems).records()], problems


@each(
    ("content", "expected", "problems"),
    [
        pytest.param(f"{GOOD}\n\n  \n{NEXT}", [(1, 1), (4, 2)], 0, id="blank lines and no last newline are normal"),
        pytest.param(f"{GOOD}{NEXT}\n", [(1, 1), (1, 2)], 0, id="a newline was lost, nothing else"),
        pytest.param(f"{GOOD}\n{NEXT[:30]}", [(1, 1)], 1, id="the last line is still being written"),
        pytest.param(f"{GOOD[:40]}{NEXT}\n", [(1, 2)], 1, id="killed while writing, next record on the same line"),
        pytest.param(f"{GOOD}}} tail\n{NEXT}\n", [(1, 1), (2, 2)], 1, id="rubbish behind a record"),
        pytest.param(f'{GOOD}\n"text"\n42\n[1]\nnull\n', [(1, 1)], 4, id="JSON, but not objects"),
        pytest.param(f"\ufeff{GOOD}\n", [(1, 1)], 0, id="byte order mark"),
        pytest.param(f"\x00\x00{GOOD}\n", [(1, 1)], 1, id="NULs of a crashed file system"),
        pytest.param('{"n":"\\ud800"}\n', [(1, "")], 0, id="a lone surrogate is no reason to lose the record"),
        pytest.param("", [], 0, id="empty"),
    ],
)
def test_what_can_be_read_is_read(
    tmp_path: Path, content: str, expected: list[tuple[int, object]], problems: int
) -> None:
    found, noted = read(tmp_path, content.encode("utf-8", "surrogatepass"))
    assert found == expected
    assert len(noted) == problems


def test_a_block_of_a_broken_record_is_not_taken_for_a_record(tmp_path: Path) -> None:
    broken = '{"type":"message","timestamp":"2026-01-01T00:00:00Z","content":[{"type":"text","text":"x"}'
    found, problems = read(tmp_path, f"{broken}\n{NEXT}\n".encode())
    assert found == [(2, 2)]
    assert [problem.line for problem in problems] == [1]


def test_bytes_that_are_not_utf8_are_replaced_and_reported(tmp_path: Path) -> None:
    found, problems = read(tmp_path, b'{"n":"caf\xe9"}\n')
    assert found == [(1, "caf\ufffd")]
    assert "UTF-8" in problems[0].reason


def test_a_problem_never_quotes_the_line(tmp_path: Path) -> None:
    _, problems = read(tmp_path, b'{"key": "hunter2hunter2"\n"hunter2hunter2"\n{"a": hunter2hunter2}')
    assert len(problems) == 3
    assert not any("hunter2" in problem.reason for problem in problems)


@each(
    ("value", "expected"),
    [
        pytest.param("2026-03-01T12:00:00.500Z", datetime(2026, 3, 1, 12, 0, 0, 500000, UTC), id="as all write it"),
        pytest.param("2026-03-01T14:00:00+02:00", datetime(2026, 3, 1, 12, tzinfo=UTC), id="another zone"),
        pytest.param(1772366400000, datetime(2026, 3, 1, 12, tzinfo=UTC), id="Unix milliseconds"),
        pytest.param("1970-01-01T00:00:00Z", None, id="a clock that was never set"),
        pytest.param(1772366400, None, id="seconds taken for milliseconds fall into 1970"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param(10**30, None, id="overflow"),
        pytest.param("[trimmed]", None, id="text"),
        pytest.param(True, None, id="a truth value is not a time"),
        pytest.param(None, None, id="missing"),
        pytest.param({"a": 1}, None, id="an object"),
    ],
)
def test_times(value: object, expected: datetime | None) -> None:
    assert to_time(value) == expected


def test_shared_helpers() -> None:
    assert message_id("pi", "a1") == message_id("pi", "a1") != message_id("pi", "a2")
    assert message_id("pi", "a").startswith("pi-") and len(message_id("pi", "a")) == 3 + 16
    assert clean("a\x00b\ud800c") == "abc"
    assert one_line("  two\n words ") == "two words"
    assert len(one_line("word " * 100)) == 80
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 100}}
    shown = content_text([{"type": "text", "text": "see"}, image, image], 7)
    marks = "[image: image/png, line 7, number 1]\n[image: image/png, line 7, number 2]"
    assert clean(shown) == f"see\n{marks}"
    assert [image.block for image in images_in(shown)] == [0, 1] and not images_in(clean(shown))
    assert content_text([None, 3, "x", {"type": "text"}], 1) == ""


@each(
    ("text", "roles"),
    [
        pytest.param("plain", ["user"], id="words"),
        pytest.param("fix it\n<system-reminder>x</system-reminder>", ["user", "injected"], id="reminder behind"),
        pytest.param("<skill name='a'>b</skill>\n\nuse it", ["injected", "user"], id="skill, then words"),
        pytest.param("<anything>b</anything> tail", ["injected"], id="unknown element"),
        pytest.param("<Button> is not drawn", ["user"], id="a user may begin with an unclosed tag"),
        pytest.param("a < b and <c>", ["user"], id="a tag further in"),
        pytest.param("<private>my plan</private> go", ["user"], id="the user's own tag"),
        pytest.param("Implement the following plan:\n\n# Plan", ["injected"], id="written by plan mode"),
        pytest.param("[Request interrupted by user for tool use]", ["injected"], id="interrupted"),
        pytest.param("   \n ", [], id="blank"),
    ],
)
def test_speakers(text: str, roles: list[str]) -> None:
    assert [role for role, _ in split_by_speaker(text)] == roles


def test_the_words_of_a_command_are_the_users() -> None:
    text = (
        "<command-message>pr</command-message>\n<command-name>/pr</command-name>\n<command-args>to main</command-args>"
    )
    passages = split_by_speaker(text)
    assert passages[-1] == ("user", "to main")
    assert passages[0][0] == "injected" and "to main" not in passages[0][1]


@each(
    ("content", "reason"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"# Notes\nnot a session\n", "not JSON", id="prose"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50, "not JSON", id="a picture"),
        pytest.param(b'{"name": "package", "version": "1.0"}', "known coding agent", id="one line of another program"),
        pytest.param(b'{\n  "name": "package"\n}\n', "known coding agent", id="many lines of another program"),
        pytest.param(b"[1, 2]", "known coding agent", id="a list"),
        pytest.param(
            b'{"sessionId":"s","projectHash":"p","messages":[]}', "but has no messages", id="Gemini on one line"
        ),
        pytest.param(b'{\n"sessionId":"s",\n"projectHash":"p"\n}', "but has no messages", id="Gemini on many lines"),
        pytest.param(
            b'{"type":"session","id":"s","timestamp":"x"}', "but has no messages", id="a header and nothing else"
        ),
    ],
)
def test_other_files_are_refused_with_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(NotASessionError, match=reason) as caught:
        parse_file(path)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_huge_file_of_another_program_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(json.dumps({"rows": "x" * 1000}).encode() + b"\n")
        # a hole: a gigabyte to read, nothing on the disk
        os.truncate(file.fileno(), 1 << 30)
    with pytest.raises(NotASessionError):
        parse_file(path)


@each("part", ["recognises", "reader"])
@each("mistake", [KeyError, TypeError, RecursionError])
def test_a_mistake_in_a_reader_costs_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, mistake: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise mistake("hunter2")

    monkeypatch.setattr(Pi, part, fail)
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"session","id":"s","timestamp":"2026-05-01T12:00:00Z"}')
    with pytest.raises(NotASessionError) as caught:
        parse_file(path)
    assert str(caught.value) == f"It could not be read: {mistake.__name__} in the reader of pi; please report it."


def test_every_text_of_a_session_can_be_stored(tmp_path: Path) -> None:
    calls = [{"type": "toolCall", "name": name, "arguments": {"path": "a\ud800"}} for name in ("read", "new\ud800")]
    records = [
        {"type": "message", "timestamp": STAMP, "message": {"role": "user", "content": "\x00\ud800"}},
        {"type": "message", "timestamp": STAMP, "message": {"role": "assistant", "content": calls}},
        {"type": "\ud800new"},
    ]
    path = tmp_path / "a.jsonl"
    for identity in ("s\ud800", ""):
        header = {"type": "session", "id": identity, "timestamp": STAMP, "cwd": "/\ud800"}
        path.write_text("\n".join(map(json.dumps, [header, *records])))
        session = parse_file(path)
        assert session.session_id == (identity[:1] or "a") and session.cwd == "/"
        assert [message.tool_name for message in session.messages] == ["read", "new"]
        assert session.files_read == ("a",) and session.unknown_records == {"new": 1}
        path = path.rename(os.fsdecode(os.fsencode(tmp_path / "a") + b"\xff.jsonl"))


STAMP = "2026-05-01T12:00:00Z"
JUNK = [None, True, -1, 1e300, "", "x", [], [None], [[]], {}, {"type": []}]


def mutations(value: Any) -> Iterator[Any]:
    """Copies of a value in which one part, at any depth, is missing or of another kind."""
    yield from JUNK
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(parts):
        for other in mutations(part):
            copy = value.copy()
            copy[key] = other
            yield copy
        if isinstance(value, dict):
            yield {name: kept for name, kept in value.items() if name != key}
