"""The reader of Codex rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Image, ParsedSession
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each


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


@each(
    ("output", "text", "failed"),
    [
        pytest.param('{"output":"a","metadata":{"exit_code":0}}', "a", False, id="JSON text of 2025"),
        pytest.param('{"output":"a","metadata":{"exit_code":127}}', "a", True, id="its exit code"),
        pytest.param("Chunk ID: 1\nProcess exited with code 1\nOutput:\nx", None, True, id="plain text of 2026"),
        pytest.param("Chunk ID: 1\nProcess exited with code 0\nOutput:\nx", None, False, id="and when it went well"),
        pytest.param("Exit code: 2\nOutput:", None, True, id="apply_patch"),
        pytest.param("exec command rejected by user", None, False, id="refused by the user"),
        pytest.param("patch rejected by user", None, False, id="patch refused by the user"),
        pytest.param("user rejected MCP tool call", None, False, id="call of a server refused by the user"),
        pytest.param("Wall time: 3.1 seconds\naborted by user", None, False, id="interrupted by the user"),
        pytest.param('{"output":"aborted by user","metadata":{"exit_code":1}}', "aborted by user", False, id="as data"),
        pytest.param("failed in sandbox MacosSeatbelt", None, True, id="refused by the sandbox"),
        pytest.param(
            "apply_patch verification failed: Failed to find expected lines in a.py:\nx", None, True, id="patch"
        ),
        pytest.param("error: Failed to find expected lines in /a/b.py:\n  x", None, True, id="patch given to a shell"),
        pytest.param("write_stdin failed: Unknown process id 7", None, True, id="a process that has ended"),
        pytest.param("request_user_input is unavailable in Default mode", None, True, id="tool of another mode"),
        pytest.param("err: tools/call failed: timed out", None, True, id="a server of tools that fails"),
        pytest.param(
            [
                {"type": "input_text", "text": "Script failed\nWall time 0.0 seconds\nOutput:\n"},
                {"type": "input_text", "text": "Script error:\napply_patch verification failed: x"},
            ],
            "Script failed\nWall time 0.0 seconds\nOutput:\n\nScript error:\napply_patch verification failed: x",
            True,
            id="a script that failed",
        ),
        pytest.param(
            "Script failed\nScript error:\nexec command rejected by user", None, False, id="refused in a script"
        ),
        pytest.param("Script completed\nOutput:\nScript failed: never", None, False, id="a script that went well"),
        pytest.param("Wall time: 1 s\nOutput:\nerr: is a word here", None, False, id="output that has such words"),
        pytest.param("Exit code: 0\nOutput:\nerr: nothing", None, False, id="an exit code stands above words"),
        pytest.param('{"result":"seven"}', None, False, id="data without output"),
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
    unfit = item(2, "custom_tool_call_output", call_id="c1", output="apply_patch verification failed: no such lines")
    assert parse(tmp_path, patch).files_modified == ("b.py", "src/a.py")
    assert parse(tmp_path, shell).files_modified == ("b.py", "src/a.py")
    assert parse(tmp_path, patch, end).files_modified == ("/home/src/a.py",)
    assert parse(tmp_path, patch, failed).files_modified == ()
    assert parse(tmp_path, patch, unfit).files_modified == ()
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


def standing(session: ParsedSession) -> list[str]:
    return [message.text for message in session.messages if not message.voided]


def turns(*names: str) -> list[dict[str, Any]]:
    """A turn for each name: a prompt and its answer."""
    found = []
    for number, name in enumerate(names, start=1):
        found += [*prompt(2 * number, name), words(2 * number + 1, "assistant", f"to {name}")]
    return found


@each(
    ("rollbacks", "left"),
    [
        pytest.param([1], ["a", "to a", "b", "to b"], id="the last turn"),
        pytest.param([2], ["a", "to a"], id="two turns"),
        pytest.param([9], [], id="more turns than there are"),
        pytest.param([1, 1], ["a", "to a"], id="one, and then another one"),
        pytest.param([0], ["a", "to a", "b", "to b", "c", "to c"], id="none"),
        pytest.param(["x"], ["a", "to a", "b", "to b", "c", "to c"], id="no number"),
    ],
)
def test_turns_that_were_rolled_back_are_voided(tmp_path: Path, rollbacks: list[Any], left: list[str]) -> None:
    back = [event(10 + number, "thread_rolled_back", num_turns=turns) for number, turns in enumerate(rollbacks)]
    session = parse(tmp_path, words(1, "developer", "rules"), *turns("a", "b", "c"), *back, *prompt(20, "d"))
    assert standing(session) == ["rules", *left, "d"]
    assert len(session.messages) == 8


def test_a_rollback_voids_the_calls_of_a_turn_and_spares_what_comes_after(tmp_path: Path) -> None:
    session = parse(
        tmp_path,
        *prompt(1, "a"),
        item(2, "function_call", **SHELL),
        item(3, "function_call_output", call_id="c1", output="x"),
        event(4, "thread_rolled_back", num_turns=1),
        *prompt(5, "a"),
    )
    assert [message.voided for message in session.messages] == [True, True, True, False]


def test_items_completed_are_a_stream_of_prompts_and_answers(tmp_path: Path) -> None:
    def completed(number: int, kind: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return event(number, "item_completed", item={"type": kind, "content": list(content)} | fields)

    session = parse(
        tmp_path,
        words(1, "user", "hi"),
        completed(1, "UserMessage", {"type": "text", "text": "hi"}),
        completed(2, "AgentMessage", {"type": "Text", "text": "Done."}),
        words(2, "assistant", "Done."),
        words(3, "user", "Warning: too many processes"),
        completed(4, "UserMessage", {"type": "text", "text": "only here"}),
        completed(5, "AgentMessage", {"type": "Text", "text": "this too"}),
        completed(6, "Reasoning", summary_text=["hm"]),
        completed(7, "ContextCompaction", id="c"),
    )
    assert shape(session) == [
        ("user", "hi"),
        ("assistant", "Done."),
        ("injected", "Warning: too many processes"),
        ("user", "only here"),
        ("assistant", "this too"),
    ]
    assert session.unknown_records == {}


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="}


def test_a_prompt_with_an_image_counts_once(tmp_path: Path) -> None:
    tags = [{"type": "input_text", "text": text} for text in ('<image name=[Image #1] path="x.png">', "</image>")]
    asked = {"type": "input_text", "text": "What is this?"}
    named = {"type": "UserMessage", "content": [{"type": "local_image", "path": "x.png"}, asked | {"type": "text"}]}
    for events in (
        [event(1, "item_completed", item=named)],
        [event(1, "user_message", message="What is this?", images=[], local_images=["x.png"])],
        [],
    ):
        session = parse(tmp_path, item(1, role="user", content=[tags[0], PICTURE, tags[1], asked]), *events)
        assert shape(session) == [("user", "[image: image/png, line 2, number 1]\nWhat is this?")]
        assert session.messages[0].images == (Image(2, 0, "image/png"),)


FORKED = line(3, "session_meta", id="parent", cwd="/elsewhere")


def copied(*records: dict[str, Any], at: str = "2026-05-01T12:00:03.010Z") -> list[dict[str, Any]]:
    """As a copy is written: all at once."""
    return [record | {"timestamp": at} for record in records]


def test_the_copy_at_the_beginning_of_a_fork_is_inherited(tmp_path: Path) -> None:
    parent = parse(tmp_path, *turns("a", "b"), meta=line(0, "session_meta", id="parent", cwd="/elsewhere"))
    fork = parse(tmp_path, FORKED, *copied(*turns("a", "b")), *prompt(30, "a"), words(31, "assistant", "to a"))
    own = [message for message in fork.messages if message.message_id not in fork.inherited]
    assert (fork.session_id, fork.parent_id, parent.parent_id, parent.inherited) == ("s-1", "parent", "", frozenset())
    assert [message.text for message in fork.messages] == ["a", "to a", "b", "to b", "a", "to a"]
    assert [(message.text, message.line) for message in own] == [("a", 10), ("to a", 11)]
    assert fork.inherited <= {message.message_id for message in fork.messages}


def test_a_copy_that_is_written_slowly_is_inherited_as_a_whole(tmp_path: Path) -> None:
    slow = [
        record | {"timestamp": f"2026-05-01T12:00:0{3 + number * 0.3:.1f}Z"} for number, record in enumerate(turns("a"))
    ]
    fork = parse(tmp_path, FORKED, *slow, *prompt(30, "b"))
    assert [message.text for message in fork.messages if message.message_id not in fork.inherited] == ["b"]


def test_an_own_header_that_comes_again_begins_no_copy(tmp_path: Path) -> None:
    session = parse(tmp_path, *turns("a"), META, *copied(*prompt(2, "b")))
    assert (session.parent_id, session.inherited) == ("", frozenset())


def test_a_sub_agent_inherits_up_to_its_first_own_ordinal(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    meta = line(0, "session_meta", id="s-2", source=spawned, subagent_history_start_ordinal=4)
    records = [record | {"ordinal": number} for number, record in enumerate(turns("a", "look"), start=1)]
    session = parse(tmp_path, *records, meta=meta)
    inherited = [message.text for message in session.messages if message.message_id in session.inherited]
    assert (session.parent_id, inherited) == ("parent", ["a", "to a"])
    assert [role for role, _ in shape(session)] == ["injected", "assistant"] * 2


def test_prompts_count_once_where_both_kinds_of_events_are_written(tmp_path: Path) -> None:
    newer = [
        event(number, "item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": text}]})
        for number, text in ((1, "yes"), (2, "yes"), (3, "no"))
    ]
    session = parse(tmp_path, *prompt(1, "yes"), *newer[:1], *prompt(2, "yes"), *newer[1:])
    assert shape(session) == [("user", "yes"), ("user", "yes"), ("user", "no")]


def test_prompts_stand_where_they_were_typed_though_all_has_one_time(tmp_path: Path) -> None:
    records = [*prompt(1, "a"), words(1, "assistant", "to a"), *prompt(1, "b"), words(1, "assistant", "to b")]
    assert [text for _, text in shape(parse(tmp_path, *records))] == ["a", "to a", "b", "to b"]


def test_an_image_is_no_part_of_the_title(tmp_path: Path) -> None:
    pictured = item(1, role="user", content=[PICTURE, {"type": "input_text", "text": "What is this?"}])
    assert parse(tmp_path, pictured).name == "What is this?"
    assert parse(tmp_path, item(1, role="user", content=[PICTURE]), *prompt(2, "and now?")).name == "and now?"


def test_a_rollback_after_two_prompts_in_a_row_leaves_the_first(tmp_path: Path) -> None:
    """The item of the first is near the event of the second, and is not the second's."""
    session = parse(tmp_path, *prompt(1, "a"), *prompt(2, "b"), event(3, "thread_rolled_back", num_turns=1))
    assert standing(session) == ["a"]
