"""Every field that a reader reads may hold any JSON: it costs at most its text, never the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.content import content_text, images_in
from memory_pipeline.harnesses.model import Problem
from memory_pipeline.harnesses.records import JsonLines
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each

SHAPES = (
    '"text"',
    "1",
    "-1.5e9",
    "123456789012345678901234567890",
    "1e999",
    "true",
    "null",
    "[1, {}, [{}]]",
    '{"a": {}}',
)


def test_every_field_holds_any_json(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f'{{"a": {shape}}}\n' for shape in SHAPES), encoding="utf-8")
    problems: list[Problem] = []
    assert [line for line, _ in JsonLines(str(path), problems).records()] == [*range(1, len(SHAPES) + 1)]
    assert not problems


CLAUDE: list[dict[str, Any]] = [
    {"uuid": "u0", "parentUuid": None, "type": "user", "message": {"role": "user", "content": "plan the export"}},
    {
        "uuid": "a0",
        "parentUuid": "u0",
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "Sure."}]},
    },
    {"uuid": "u1", "parentUuid": "a0", "type": "user", "message": {"role": "user", "content": "with pandas"}},
    {"uuid": "x1", "parentUuid": "u1"},
    {"uuid": "a1", "parentUuid": "x1", "type": "assistant", "message": {"content": "Pandas it is."}},
    {"uuid": "u2", "parentUuid": "a1", "type": "user", "message": {"role": "user", "content": "always use pandas"}},
    {"uuid": "u3", "parentUuid": "a0", "type": "user", "message": {"role": "user", "content": "no, use csv"}},
]
BETWEEN: list[dict[str, Any]] = [
    *(
        {"type": "attachment", "attachment": {"type": kind}}
        for kind in ("file", "nested_memory", "hook_success", "new")
    ),
    {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "task-notification"}},
    {"type": "system", "subtype": "local_command"},
    {"type": "system", "subtype": "informational"},
    {"type": "assistant", "message": {}},
    {"type": "user", "isMeta": True, "message": {}},
]
CONTENTS: list[Any] = [
    "text",
    ["text", {"type": "text", "text": "a"}, [1], None],
    {"type": "text", "text": "a"},
    {"type": "text", "file": {"filePath": "/w/export.py", "content": "x"}},
    {"type": "tool_result", "tool_use_id": "t", "content": {"type": "x", "content": {"type": "text", "text": "a"}}},
    {"type": {"content": [{}]}, "text": {}, "content": {"content": {}}, "source": "s"},
    7,
    None,
]


def test_any_content_keeps_the_record_in_the_chain(tmp_path: Path) -> None:
    wrong = []
    path = tmp_path / "s-1.jsonl"
    for between in BETWEEN:
        for content in CONTENTS:
            records = json.loads(json.dumps([*CLAUDE[:3], CLAUDE[3] | between, *CLAUDE[4:]]))
            holder = next((records[3][name] for name in ("attachment", "message") if name in records[3]), records[3])
            holder |= {"content": content, "prompt": content}
            base = {"sessionId": "s-1", "cwd": "/w", "isSidechain": False}
            path.write_text("".join(json.dumps(base | record) + "\n" for record in records), encoding="utf-8")
            session = parse_file(path)
            voided = [m.text for m in session.messages if m.voided and m.line != 4]
            if voided != ["with pandas", "Pandas it is.", "always use pandas"] or session.problems:
                wrong.append((between, content, voided, session.problems))
    assert not wrong


@each(
    ("written", "text"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "advisor_result", "text": "Use 8080."}, "Use 8080."),
        ({"type": "fetched", "content": {"type": "document", "content": [{"type": "text", "text": "b"}]}}, "b"),
        ([{"type": "fetched", "content": "c"}], "c"),
        ({"type": "document", "source": {"data": "…"}}, ""),
        ({"type": "image", "source": {"media_type": "image/png"}}, "[image: image/png, line 3, number 1]"),
        ({"content": {"type": "image", "mimeType": "image/png"}}, "[image: image/png, line 3, number 1]"),
    ],
)
def test_text_in_an_object_is_kept(written: object, text: str) -> None:
    shown = content_text(written, 3)
    assert shown.removeprefix("\x00") == text
    assert len(images_in(shown)) == text.startswith("[image")
