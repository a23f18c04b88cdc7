"""The reader of Codex rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.sessions.model import ParsedSession


def line(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-05-01T12:00:{number:02d}.000Z", "type": kind, "payload": payload}


META = line(0, "session_meta", id="s-1", cwd="/home/ada/shop", source="cli", base_instructions={"text": "You are"})


def item(number: int, kind: str = "message", **payload: Any) -> dict[str, Any]:
    return line(number, "response_item", type=kind, **payload)


def event(number: int, kind: str, **payload: Any) -> dict[str, Any]:
    return line(number, "event_msg", type=kind, **payload)


def words(number: int, role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(number, role=role, content=[{"type": kind, "text": text} for text in texts])


def prompt(number: int, text: str) -> list[dict[str, Any]]:
    """A prompt as it stands in a rollout: twice."""
    return [words(number, "user", text), event(number, "user_message", message=text, images=[])]


def parse(tmp_path: Path, *records: dict[str, Any], meta: dict[str, Any] = META) -> ParsedSession:
    path = tmp_path / "rollout-2026-05-01T12-00-00-019985ca-7ef7-7580-a921-c20ac619f40b.jsonl"
    path.write_text("\n".join(map(json.dumps, (meta, *records))), encoding="utf-8")
    return parse_file(path)


def shape(session: ParsedSession) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.messages]


def test_what_stands_there_twice_counts_once(tmp_path: Path) -> None:
    session = parse(
        tmp_path,
        words(1, "user", "# AGENTS.md instructions for /home", "<environment_context>x</environment_context>"),
        *prompt(2, "yes"),
        event(3, "agent_message", message="Done."),
        words(3, "assistant", "Done."),
        item(4, "reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="c2ln"),
        *prompt(5, "yes"),
        event(6, "agent_message", message="Done."),
        words(6, "assistant", "Done."),
        event(7, "agent_message", message="only here"),
        words(8, "user", "Warning: too many processes"),
    )
    assert shape(session)[1:] == [
        ("user", "yes"),
        ("assistant", "Done."),
        ("user", "yes"),
        ("assistant", "Done."),
        ("assistant", "only here"),
        ("injected", "Warning: too many processes"),
    ]
    assert session.messages[0].role == "injected"
    assert (session.session_id, session.cwd, session.name) == ("s-1", "/home/ada/shop", "yes")
    assert len({message.message_id for message in session.messages}) == len(session.messages)


def test_without_an_event_stream_the_items_are_the_prompts(tmp_path: Path) -> None:
    session = parse(tmp_path, words(1, "user", "<user_instructions>x</user_instructions>"), words(2, "user", "hi"))
    assert [role for role, _ in shape(session)] == ["injected", "user"]


def test_the_id_of_a_prompt_does_not_change_when_its_event_is_written(tmp_path: Path) -> None:
    both = prompt(1, "hi")
    assert parse(tmp_path, both[0]).messages[0].message_id == parse(tmp_path, *both).messages[0].message_id


def test_the_wrapper_of_an_editor_is_taken_off(tmp_path: Path) -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nfix it\n"
    assert [role for role, _ in shape(parse(tmp_path, *prompt(1, text)))] == ["injected", "user"]
    assert shape(parse(tmp_path, *prompt(1, text)))[1] == ("user", "fix it")


def test_a_sub_agents_prompts_are_a_models(tmp_path: Path) -> None:
    meta = line(0, "session_meta", id="s-2", cwd="/", source={"subagent": {"thread_spawn": {}}})
    assert [role for role, _ in shape(parse(tmp_path, *prompt(1, "look"), meta=meta))] == ["injected"]


SHELL = {"name": "shell", "arguments": '{"command":["ls","-l"]}', "call_id": "c1"}


@pytest.mark.parametrize(
    ("output", "text", "failed"),
    [
        pytest.param('{"output":"a","metadata":{"exit_code":0}}', "a", False, id="JSON text of 2025"),
        pytest.param('{"output":"a","metadata":{"exit_code":127}}', "a", True, id="its exit code"),
        pytest.param("Chunk ID: 1\nProcess exited with code 1\nOutput:\nx", None, True, id="plain text of 2026"),
        pytest.param("Chunk ID: 1\nProcess exited with code 0\nOutput:\nx", None, False, id="and when it went well"),
        pytest.param("Exit code: 2\nOutput:", None, True, id="apply_patch"),
        pytest.param("exec command rejected by user", None, True, id="refused"),
        pytest.param([{"type": "input_text", "text": "a"}], "a", False, id="blocks"),
        pytest.param({"content": "a", "success": True}, "a", False, id="an object"),
        pytest.param(None, "(no output)", False, id="nothing"),
        pytest.param('{"broken', None, False, id="text that only begins like JSON"),
    ],
)
def test_outputs(tmp_path: Path, output: Any, text: str | None, failed: bool) -> None:
    session = parse(
        tmp_path, item(1, "function_call", **SHELL), item(2, "function_call_output", call_id="c1", output=output)
    )
    answer = session.messages[1]
    assert session.messages[0].text == 'shell(command=["ls","-l"])'
    assert (answer.role, answer.tool_name, answer.is_error) == ("tool", "shell", failed)
    assert answer.text == (output if text is None else text)


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** Add File: b.py\n*** End Patch"


def test_changed_files(tmp_path: Path) -> None:
    patch = item(1, "custom_tool_call", name="apply_patch", input=PATCH, call_id="c1")
    shell = item(
        1, "function_call", name="shell", arguments=json.dumps({"command": ["apply_patch", PATCH]}), call_id="c1"
    )
    end = event(2, "patch_apply_end", call_id="c1", success=True, changes={"/home/src/a.py": {"type": "update"}})
    failed = item(2, "custom_tool_call_output", call_id="c1", output="Exit code: 1\nOutput:\nno")
    assert parse(tmp_path, patch).files_modified == ("b.py", "src/a.py")
    assert parse(tmp_path, shell).files_modified == ("b.py", "src/a.py")
    assert parse(tmp_path, patch, end).files_modified == ("/home/src/a.py",)
    assert parse(tmp_path, patch, failed).files_modified == ()
    assert parse(tmp_path, patch).files_read == ()


def test_compactions(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]}]
    session = parse(
        tmp_path,
        *prompt(1, "one"),
        line(2, "compacted", message="", replacement_history=history),
        *prompt(3, "two"),
        line(4, "compacted", message="the summary"),
        *prompt(5, "three"),
    )
    assert [text for _, text in shape(session)] == ["one", "two", "the summary", "three"]
    identifiers = [message.message_id for message in session.messages]
    assert [c.message_ids for c in session.compactions] == [(identifiers[0],), (identifiers[1],)]


def test_the_first_header_counts(tmp_path: Path) -> None:
    parent = line(1, "session_meta", id="parent", cwd="/elsewhere")
    session = parse(tmp_path, parent, *prompt(2, "hi"))
    assert (session.session_id, session.cwd) == ("s-1", "/home/ada/shop")


def test_without_a_header_the_name_of_the_file_says_the_id(tmp_path: Path) -> None:
    session = parse(tmp_path, *prompt(2, "hi"), meta=line(0, "turn_context", cwd="/here"))
    assert (session.session_id, session.cwd) == ("019985ca-7ef7-7580-a921-c20ac619f40b", "/here")


def test_unknown_records_are_counted(tmp_path: Path) -> None:
    session = parse(tmp_path, *prompt(1, "hi"), line(2, "hologram"), event(3, "sparkle"), item(4, "ray"))
    assert session.unknown_records == {"hologram": 1, "event_msg/sparkle": 1, "response_item/ray": 1}
