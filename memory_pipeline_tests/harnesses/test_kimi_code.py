"""The reader of Kimi Code's sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.kimi_code import KimiCode, within
from memory_pipeline_tests.harnesses.written import read, shape, typed, write

HEAD = {"type": "metadata", "protocol_version": "1.4", "created_at": 1785571200000}


def at(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "time": 1785571200000 + number * 1000} | fields


def message(number: int, role: str, text: str, origin: Any = None, **fields: Any) -> dict[str, Any]:
    said = {"role": role, "content": [{"type": "text", "text": text}], "toolCalls": [], "origin": origin} | fields
    return at(number, "context.append_message", message=said)


def prompt(number: int, text: str) -> dict[str, Any]:
    return message(number, "user", text, {"kind": "user"})


def event(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    return at(number, "context.append_loop_event", event={"type": kind, "uuid": f"u-{number}"} | fields)


def reply(number: int, text: str) -> dict[str, Any]:
    return event(number, "content.part", part={"type": "text", "text": text})


def wire(home: Path, agent: str = "main") -> Path:
    return home / ".kimi-code/sessions/wd_kiln/session_1/agents" / agent / "wire.jsonl"


def test_only_what_the_user_typed_is_theirs(tmp_path: Path) -> None:
    slash = {"kind": "skill_activation", "trigger": "user-slash", "skillArgs": "in green"}
    session = read(
        wire(tmp_path),
        HEAD,
        prompt(1, "Fire the pots."),
        message(2, "user", "Of an old version."),
        *(
            message(3 + n, "user", f"By {kind}.", {"kind": kind})
            for n, kind in enumerate(("injection", "cron_job", "retry"))
        ),
        message(7, "user", "The skill.", slash),
    )
    assert typed(session) == ["Fire the pots.", "Of an old version.", "in green"]
    assert [text for role, text in shape(session) if role == "injected"] == [
        *("By injection.", "By cron_job.", "By retry.", "The skill."),
    ]
    assert (session.session_id, session.harness) == ("session_1", "kimi_code")


def test_a_sub_agents_prompt_is_its_parents(tmp_path: Path) -> None:
    session = read(wire(tmp_path, "agent-7"), HEAD, prompt(1, "Look."))
    assert (session.session_id, shape(session)) == ("session_1/agent-7", [("injected", "Look.")])


def test_title_and_folder_lie_beside_the_journal(tmp_path: Path) -> None:
    path = write(wire(tmp_path))
    (path.parents[2] / "state.json").write_text(json.dumps({"title": "Pots", "workDir": "/home/ada/kiln"}))
    session = read(path, HEAD, prompt(1, "Fire the pots."))
    assert (session.name, session.cwd) == ("Pots", "/home/ada/kiln")
    environment = {"cwd": "/home/ada/oven"}
    (path.parents[2] / "state.json").unlink()
    assert (
        read(path, HEAD, at(0, "config.update", environmentDisclosure=environment), prompt(1, "Hi.")).cwd
        == "/home/ada/oven"
    )


def test_calls_of_both_forms(tmp_path: Path) -> None:
    nested = {"type": "function", "id": "Read:0", "function": {"name": "Read", "arguments": '{"path":"/a"}'}}
    flat = {"type": "function", "id": "Edit:1", "name": "Edit", "arguments": '{"path":"/b"}'}
    session = read(
        wire(tmp_path),
        HEAD,
        message(1, "assistant", "I look.", toolCalls=[nested, flat]),
        message(2, "tool", "no such text", toolCallId="Edit:1", isError=True),
        event(3, "tool.call", toolCallId="Edit:1", name="Edit", args={"path": "/c"}),  # ids come again
        event(4, "tool.result", toolCallId="Edit:1", result={"output": [{"type": "text", "text": "Edited."}]}),
    )
    assert [text for _, text in shape(session)] == [
        *("I look.", "Read(path=/a)", "Edit(path=/b)", "no such text", "Edit(path=/c)", "Edited."),
    ]
    assert (session.files_read, session.files_modified) == (("/a",), ("/c",))


def test_an_undo_voids_the_last_prompts(tmp_path: Path) -> None:
    talk = [HEAD, prompt(1, "One."), reply(2, "1"), prompt(3, "Two."), reply(4, "2"), prompt(5, "Three.")]
    cases = {1: ["One.", "Two.", "Four."], 2: ["One.", "Four."], 3: ["Four."], 4: ["One.", "Two.", "Three.", "Four."]}
    found = {
        count: typed(read(wire(tmp_path), *talk, at(6, "context.undo", count=count), prompt(7, "Four.")))
        for count in cases
    }
    assert found == cases


def test_what_a_compaction_summarised_cannot_be_undone(tmp_path: Path) -> None:
    compaction = at(3, "context.apply_compaction", summary="Once.", tokensBefore=9, keptUserMessageCount=1)
    session = read(
        wire(tmp_path), HEAD, prompt(1, "One."), prompt(2, "Two."), compaction, at(4, "context.undo", count=1)
    )
    assert typed(session) == ["One.", "Two."]
    (made,) = session.compactions
    assert (made.message_ids, made.tokens_before) == ((session.messages[0].message_id,), 9)


def test_what_was_before_a_clear_cannot_be_undone(tmp_path: Path) -> None:
    clear, undo = at(2, "context.clear"), at(4, "context.undo", count=2)
    assert typed(read(wire(tmp_path), HEAD, prompt(1, "One."), clear, prompt(3, "Two."), undo)) == ["One.", "Two."]


def test_branches(tmp_path: Path) -> None:
    def switch(number: int, branch: str, base: str, line: int, **fields: Any) -> dict[str, Any]:
        return at(number, "agent.switched", branch=branch, base={"branch": base, "line": line}, **fields)

    undo = [HEAD, prompt(1, "One."), prompt(2, "Two."), at(3, "context.undo", count=1)]
    back = switch(4, "b1", "main", 2, legacyUndoLine=4)
    assert typed(read(wire(tmp_path), *undo, back, prompt(5, "Three."))) == ["One.", "Three."]
    # the user goes back to the prompt that they had taken back
    again = [*undo, back, prompt(5, "Three."), switch(6, "b2", "main", 3), prompt(7, "Four.")]
    assert typed(read(wire(tmp_path), *again)) == ["One.", "Two.", "Four."]
    assert typed(read(wire(tmp_path), *again, at(8, "context.undo", count=2))) == ["One."]
    assert typed(read(wire(tmp_path), *undo, switch(4, "b1", "nowhere", 2), prompt(5, "Three."))) == ["One.", "Three."]


def test_within() -> None:
    assert within([1, 3, 5, 9], [range(5, 9), range(2), range(7, 3)]) == {1, 5}


def test_a_fork_has_the_same_messages(tmp_path: Path) -> None:
    first = read(wire(tmp_path), HEAD, prompt(1, "One."), reply(2, "1"))
    fork = read(tmp_path / "sessions/w/session_2/agents/main/wire.jsonl", HEAD, prompt(1, "One."), reply(2, "1"))
    assert first.session_id != fork.session_id
    assert [m.message_id for m in first.messages] == [m.message_id for m in fork.messages]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    assert KimiCode().default_roots(tmp_path, {}) == [tmp_path / ".kimi-code/sessions"]
    assert KimiCode().default_roots(tmp_path, {"KIMI_CODE_HOME": "/moved"}) == [Path("/moved/sessions")]
