"""The reader of the sessions of Kimi CLI, the one in Python."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.kimi_cli import KimiCli
from memory_pipeline_tests.harnesses.written import read, shape, typed, write

HEAD = {"type": "metadata", "protocol_version": "1.9"}
FOLDER = hashlib.md5(b"/home/ada/piano", usedforsecurity=False).hexdigest()


def event(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1772355600.5 + number, "message": {"type": kind, "payload": payload}}


def wire(home: Path, *below: str) -> Path:
    return home.joinpath(".kimi/sessions", FOLDER, "s-1", *below, "wire.jsonl")


def call(number: int, identifier: str, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return event(number, "ToolCall", type="function", id=identifier, function=function)


def result(number: int, identifier: str, output: Any, *, failed: bool = False) -> dict[str, Any]:
    returned = {"is_error": failed, "output": output, "message": "Done."}
    return event(number, "ToolResult", tool_call_id=identifier, return_value=returned)


def test_a_conversation(tmp_path: Path) -> None:
    (path := write(wire(tmp_path))).with_name("state.json").write_text(json.dumps({"custom_title": "A piano"}))
    (tmp_path / ".kimi/kimi.json").write_text(
        json.dumps({"work_dirs": [5, {"path": "/x"}, {"path": "/home/ada/piano"}]})
    )
    session = read(
        path,
        HEAD,
        event(1, "TurnBegin", user_input="Tune it."),
        event(2, "ContentPart", type="think", think="hm"),
        event(3, "ContentPart", type="text", text="I tune."),
        call(4, "t", "StrReplaceFile", path="/a"),
        result(5, "t", [{"type": "text", "text": "Replaced."}, {"type": "image_url", "image_url": {"url": "data:"}}]),
        event(6, "SteerInput", user_input=[{"type": "text", "text": "Softly."}]),
        event(7, "SubagentEvent", event={"type": "TurnBegin", "payload": {"user_input": "Count the keys."}}),
    )
    assert shape(session) == [
        ("user", "Tune it."),
        ("assistant", "I tune."),
        ("tool", "StrReplaceFile(path=/a)"),
        ("tool", "Replaced."),
        ("user", "Softly."),
    ]
    assert (session.session_id, session.harness) == ("s-1", "kimi_cli")
    assert (session.name, session.cwd, session.files_modified) == ("A piano", "/home/ada/piano", ("/a",))
    assert session.messages[0].said_at.timestamp() == 1772355601.5


def test_what_a_call_gave_back_without_an_output_is_its_message(tmp_path: Path) -> None:
    session = read(wire(tmp_path), HEAD, call(1, "t", "WriteFile", path="/a"), result(2, "t", "", failed=True))
    assert shape(session)[-1] == ("tool", "Done.") and session.messages[-1].is_error
    assert session.files_modified == ()


def test_answers_are_the_users(tmp_path: Path) -> None:
    question = {"question": "Which key?", "options": [{"label": "A"}, {"label": "B"}]}
    asked = call(1, "t", "AskUserQuestion", questions=[question])
    session = read(wire(tmp_path), HEAD, asked, result(2, "t", '{"answers": {"Which key?": "A"}}'))
    assert [(m.text, m.answered) for m in session.messages if m.role == "user"] == [("A", "Which key?")]


def test_a_sub_agents_prompt_is_its_parents(tmp_path: Path) -> None:
    session = read(wire(tmp_path, "subagents", "a1"), HEAD, event(1, "TurnBegin", user_input="Count the keys."))
    assert (session.session_id, shape(session)) == ("s-1/a1", [("injected", "Count the keys.")])


def test_a_fork_has_the_same_messages(tmp_path: Path) -> None:
    records = [HEAD, event(1, "TurnBegin", user_input="Tune it."), event(2, "ContentPart", type="text", text="Yes.")]
    first, fork = read(wire(tmp_path), *records), read(tmp_path / "sessions/x/s-2/wire.jsonl", *records)
    assert [m.message_id for m in first.messages] == [m.message_id for m in fork.messages]
    assert typed(fork) == ["Tune it."]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    assert KimiCli().default_roots(tmp_path, {}) == [tmp_path / ".kimi/sessions"]
    assert KimiCli().default_roots(tmp_path, {"KIMI_SHARE_DIR": "/moved"}) == [Path("/moved/sessions")]
