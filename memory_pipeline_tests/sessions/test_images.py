"""Images stay in the session files: what is stored says where they are, and they can be fetched from there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Image, ParsedSession
from memory_pipeline.sessions.images import NoSuchImageError, load_image
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.sessions.test_golden import GOLDEN

BYTES = [f"not really picture {number}".encode() * 9 for number in range(3)]
DATA = [base64.b64encode(data).decode() for data in BYTES]
AT = {"timestamp": "2026-05-01T12:00:00.000Z"}


def pi(*content: Any) -> list[Any]:
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"} | AT
    return [header, {"type": "message", "id": "e1"} | AT | {"message": {"role": "user", "content": content}}]


def pi_image(number: int) -> Any:
    return {"type": "image", "data": DATA[number], "mimeType": "image/png"}


def claude(*content: Any) -> list[Any]:
    title = {"type": "ai-title", "sessionId": "s", "aiTitle": "Pictures"}
    said = {"type": "user", "uuid": "u1", "sessionId": "s"} | AT
    return [title, said | {"message": {"role": "user", "content": content}}]


def claude_image(number: int) -> Any:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA[number]}}


def codex(*content: Any) -> list[Any]:
    header = {"type": "session_meta", "payload": {"id": "s", "cwd": "/"}} | AT
    return [header, {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}} | AT]


def codex_image(number: int) -> Any:
    return {"type": "input_image", "image_url": f"data:image/png;base64,{DATA[number]}"}


def codex_event(number: int) -> list[Any]:
    urls = [f"data:image/png;base64,{data}" for data in DATA[: number + 1]]
    return [
        *codex()[:1],
        {"type": "event_msg", "payload": {"type": "user_message", "message": "see", "images": urls}} | AT,
    ]


def gemini(*content: Any) -> list[Any]:
    header = {"sessionId": "s", "projectHash": "p", "startTime": AT["timestamp"]}
    return [header, {"id": "u1", "type": "user", "content": list(content)} | AT]


def gemini_image(number: int) -> Any:
    return {"inlineData": {"mimeType": "image/png", "data": DATA[number]}}


SEE = {"type": "text", "text": "see"}
THREE = [
    pytest.param(pi(SEE, *map(pi_image, range(3))), id="pi"),
    pytest.param(claude(SEE, *map(claude_image, range(3))), id="Claude Code"),
    pytest.param(codex({"type": "input_text", "text": "see"}, *map(codex_image, range(3))), id="Codex"),
    pytest.param(codex_event(2), id="Codex, in the event only"),
    pytest.param(gemini({"text": "see"}, *map(gemini_image, range(3))), id="Gemini CLI"),
]


def written(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def stored(session: ParsedSession) -> str:
    return repr(session)


@each("records", THREE)
def test_each_image_of_a_prompt_is_found_where_its_message_says(tmp_path: Path, records: list[Any]) -> None:
    path = written(tmp_path / "s.jsonl", records)
    session = parse_file(path)
    (message,) = session.messages
    assert message.images == tuple(Image(2, number, "image/png") for number in range(3))
    marks = "".join(f"\n[image: image/png, line 2, number {number}]" for number in (1, 2, 3))
    assert message.text == f"see{marks}"
    pictures = [load_image(str(path), image.line, image.block) for image in message.images]
    assert pictures == [("image/png", data) for data in BYTES]
    assert not any(data[:20] in stored(session) for data in DATA)


RESULTS = [
    pytest.param(
        [
            *pi(SEE),
            {"type": "message", "id": "e2"}
            | AT
            | {"message": {"role": "toolResult", "toolName": "read", "content": [pi_image(0)]}},
        ],
        id="pi",
    ),
    pytest.param(
        [
            *claude(SEE),
            {
                "type": "user",
                "uuid": "u2",
                "sessionId": "s",
                "message": {"content": [{"type": "tool_result", "content": [claude_image(0)]}]},
            }
            | AT,
        ],
        id="Claude Code",
    ),
    pytest.param(
        [
            *codex({"type": "input_text", "text": "see"}),
            {
                "type": "response_item",
                "payload": {"type": "function_call_output", "call_id": "c", "output": [codex_image(0)]},
            }
            | AT,
        ],
        id="Codex",
    ),
]


@each("records", RESULTS)
def test_the_image_of_a_tools_result_is_found(tmp_path: Path, records: list[Any]) -> None:
    path = written(tmp_path / "s.jsonl", records)
    shown = parse_file(path).messages[-1]
    assert (shown.role, shown.text) == ("tool", "[image: image/png, line 3, number 1]")
    assert shown.images == (Image(3, 0, "image/png"),)
    assert load_image(str(path), 3, 0).data == BYTES[0]


def test_an_image_of_two_results_in_one_record_is_found_in_its_own(tmp_path: Path) -> None:
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": [claude_image(n)]} for n in range(2)]
    path = written(tmp_path / "s.jsonl", claude(*results))
    found = [(message.text, message.images[0]) for message in parse_file(path).messages]
    assert found == [(f"[image: image/png, line 2, number {n + 1}]", Image(2, n, "image/png")) for n in range(2)]
    assert [load_image(str(path), image.line, image.block).data for _, image in found] == BYTES[:2]


def test_a_message_of_the_same_record_does_not_show_anothers_image(tmp_path: Path) -> None:
    skill = {"type": "text", "text": "<skill name='a'>rules</skill>"}
    injected, typed = parse_file(written(tmp_path / "s.jsonl", pi(skill, SEE, pi_image(0)))).messages
    assert (injected.role, injected.images) == ("injected", ())
    assert (typed.role, len(typed.images)) == ("user", 1)


GOLDEN_FILES = sorted(path for path in GOLDEN.glob("*/*") if path.suffix in (".json", ".jsonl"))


@each("path", GOLDEN_FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_image_of_the_golden_sessions_is_found_and_its_bytes_are_nowhere(path: Path) -> None:
    session = parse_file(path)
    for image in (image for message in session.messages for image in message.images):
        assert load_image(str(path), image.line, image.block).data.startswith(b"\x89PNG")
    assert "iVBORw0KGgo" not in stored(session)


def test_an_image_that_is_only_named_is_not_fetched(tmp_path: Path) -> None:
    named = {
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "see", "local_images": ["/etc/passwd"]},
    }
    path = written(tmp_path / "s.jsonl", [*codex()[:1], named | AT])
    (image,) = parse_file(path).messages[0].images
    with pytest.raises(NoSuchImageError):
        load_image(str(path), image.line, image.block)


TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5"
ODD = [
    pytest.param(pi(SEE, pi_image(0) | {"mimeType": TOKEN}), id="pi"),
    pytest.param(claude(SEE, {"type": "image", "source": {"type": "base64", "media_type": TOKEN}}), id="Claude Code"),
    pytest.param(codex({"type": "input_image", "image_url": f"data:{TOKEN};base64,eA=="}), id="Codex"),
    pytest.param(
        [
            *codex()[:1],
            {"type": "event_msg", "payload": {"type": "user_message", "message": "see", "images": [f"data:{TOKEN}"]}}
            | AT,
        ],
        id="Codex, in the event only",
    ),
    pytest.param(
        gemini({"text": "see"}, {"inlineData": {"mimeType": f"image/{TOKEN}", "data": DATA[0]}}), id="Gemini CLI"
    ),
]


@each("records", ODD)
def test_a_media_type_that_is_none_is_not_stored(tmp_path: Path, records: list[Any]) -> None:
    session = parse_file(written(tmp_path / "s.jsonl", records))
    assert [image.media_type for image in session.messages[0].images] == ["unknown type"]
    assert "[image: unknown type, line 2, number 1]" in session.messages[0].text
    assert TOKEN[4:20] not in stored(session)
