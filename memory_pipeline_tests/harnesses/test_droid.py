"""The reader of Factory Droid's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.droid import Droid
from memory_pipeline.harnesses.model import source_of
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.harnesses.written import read, shape, typed, write

START = {"type": "session_start", "id": "d-1", "title": "Fence", "version": 2, "cwd": "/home/ada/fence"}


def message(number: int, role: str, *blocks: Any, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    at = f"2026-09-20T12:00:{number:02d}Z"
    return {
        "type": "message",
        "id": f"m-{number}",
        "timestamp": at,
        "message": {"role": role, "content": content},
    } | fields


def use(identifier: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def given(identifier: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content} | fields


def test_a_conversation(tmp_path: Path) -> None:
    session = read(
        tmp_path / "d-1.jsonl",
        START,
        message(1, "user", "<system-reminder>Sunday.</system-reminder>", "Paint it."),
        message(2, "assistant", {"type": "thinking", "thinking": "hm"}, "I paint.", use("t", "Create", file_path="/f")),
        message(3, "user", given("t", [{"type": "text", "text": "No."}], is_error=True), "Never mind."),
        message(4, "gardener", "?"),
    )
    assert shape(session) == [
        ("injected", "<system-reminder>Sunday.</system-reminder>"),
        ("user", "Paint it."),
        ("assistant", "I paint."),
        ("tool", "Create(file_path=/f)"),
        ("tool", "No."),
        ("user", "Never mind."),
    ]
    assert (session.harness, session.session_id, session.name, session.cwd) == (
        "droid",
        "d-1",
        "Fence",
        "/home/ada/fence",
    )
    assert (session.files_modified, session.unknown_records) == ((), {"message/gardener": 1})


def test_answers_to_the_tools_questions_are_the_users(tmp_path: Path) -> None:
    question = {"question": "Which green?", "header": "Green", "options": [{"label": "Moss"}, {"label": "Mint"}]}
    told = 'User has answered your questions: "Which green?"="Moss". You can now continue with the answers in mind.'
    session = read(
        tmp_path / "d-1.jsonl",
        START,
        message(1, "assistant", use("t", "AskUser", questions=[question])),
        message(2, "user", given("t", told)),
    )
    (answer,) = [message for message in session.messages if message.role == "user"]
    assert (answer.text, answer.answer_to, answer.answered) == ("Moss", "question", "Which green?")


def test_content_of_any_shape(tmp_path: Path) -> None:
    shapes = ["One.", {"type": "text", "text": "Two."}, {"text": "Three."}, [{"text": "Four."}], 5, None, {"file": 6}]
    said = [message(n, "user") | {"message": {"role": "user", "content": shape}} for n, shape in enumerate(shapes)]
    assert typed(read(tmp_path / "d-1.jsonl", START, *said)) == ["One.", "Two.", "Three.", "Four."]


def test_a_sub_agents_prompt_is_its_parents(tmp_path: Path) -> None:
    start = START | {"callingSessionId": "d-0", "callingToolUseId": "toolu_1"}
    assert shape(read(tmp_path / "d-1.jsonl", start, message(1, "user", "Look."))) == [("injected", "Look.")]


def test_a_compaction_ends_with_its_anchor(tmp_path: Path) -> None:
    summary = {"type": "compaction_state", "id": "c", "timestamp": "2026-09-20T12:00:09Z", "summaryText": "Painted."}
    talk = [message(1, "user", "Paint it."), message(2, "assistant", "Done."), message(3, "user", "More?")]
    anchored = read(tmp_path / "a.jsonl", START, *talk, summary | {"anchorMessage": {"id": "m-2"}})
    assert [len(compaction.message_ids) for compaction in anchored.compactions] == [2]
    unknown = read(tmp_path / "b.jsonl", START, *talk, summary | {"anchorMessage": {"id": "lost"}})
    assert [len(compaction.message_ids) for compaction in unknown.compactions] == [3]
    assert shape(unknown)[-1] == ("injected", "Painted.")


def test_without_its_header_a_session_is_known_by_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", message(1, "user", "Paint it."))
    assert parse(source_of(path)._replace(agent="droid")).harness == "droid"
    assert parse(source_of(path)).harness == "pi"
    assert typed(parse(source_of(path)._replace(agent="droid"))) == ["Paint it."]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    assert Droid().default_roots(tmp_path, {}) == [tmp_path / ".factory/sessions"]
