"""The reader of Antigravity's transcripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.antigravity import Antigravity
from memory_pipeline_tests.harnesses.written import read, shape, typed, write


def step(number: int, source: str, kind: str, content: str = "", **fields: Any) -> dict[str, Any]:
    at = f"2026-07-20T08:00:{number:02d}Z"
    return {"step_index": number, "source": source, "type": kind, "created_at": at, "content": content} | fields


def request(number: int, text: str) -> dict[str, Any]:
    return step(number, "USER_EXPLICIT", "USER_INPUT", text)


def log(home: Path, session: str, name: str = "transcript.jsonl") -> Path:
    return home / ".gemini/antigravity-cli/brain" / session / ".system_generated/logs" / name


def test_the_request_is_the_users_and_what_is_added_the_programs(tmp_path: Path) -> None:
    added = '<ADDITIONAL_METADATA>{"cwd":"/home/ada/harbour"}</ADDITIONAL_METADATA>'
    wrapped = f"<USER_REQUEST>Count the boats.{added}</USER_REQUEST>"
    session = read(log(tmp_path, "s-1"), request(0, wrapped), request(1, "Again."))
    assert shape(session) == [("user", "Count the boats."), ("injected", added), ("user", "Again.")]
    assert (session.session_id, session.cwd) == ("s-1", "/home/ada/harbour")


def test_the_steps_of_the_model_are_its_replies_and_what_its_tools_gave_back(tmp_path: Path) -> None:
    call = {"name": "replace_file_content", "args": {"TargetFile": '"/a.txt"', "StartLine": "3"}}
    session = read(
        log(tmp_path, "s-1"),
        step(0, "MODEL", "PLANNER_RESPONSE", "I edit it.", thinking="hm", tool_calls=[call, 5]),
        step(1, "MODEL", "CODE_ACTION", "Created At: now\nCompleted At: now\nEdited.", status="DONE"),
        step(2, "MODEL", "RUN_COMMAND", "exit 1", status="ERROR"),
        step(3, "MODEL", "RUN_COMMAND", "Created At: now\n", status="DONE"),
        step(4, "WIND", "GUST"),
    )
    assert shape(session) == [
        ("assistant", "I edit it."),
        ("tool", "replace_file_content(TargetFile=/a.txt, StartLine=3)"),
        ("tool", "Edited."),
        ("tool", "exit 1"),
    ]
    assert [message.is_error for message in session.messages] == [False, False, False, True]
    assert (session.files_modified, session.unknown_records) == (("/a.txt",), {"WIND": 1})


def test_a_session_that_another_one_started_has_no_prompt_of_a_person(tmp_path: Path) -> None:
    child = write(log(tmp_path, "child-1"), request(0, "<USER_REQUEST>Count the oars.</USER_REQUEST>"))
    assert typed(read(child, request(0, "Count the oars."))) == ["Count the oars."]
    content = 'Created the following subagents:\n{\n  "conversationId": "child-1"\n}'
    write(log(tmp_path, "parent", "transcript_full.jsonl"), step(2, "MODEL", "INVOKE_SUBAGENT", content))
    assert shape(read(child, request(0, "Count the oars."))) == [("injected", "Count the oars.")]


def test_the_folder_of_the_latest_session_of_each_workspace_is_noted(tmp_path: Path) -> None:
    noted = tmp_path / ".gemini/antigravity-cli/cache/last_conversations.json"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({"/home/ada/pier": "s-2", "/home/ada/quay": "s-1"}))
    assert read(log(tmp_path, "s-1"), request(0, "Hello.")).cwd == "/home/ada/quay"
    assert read(log(tmp_path, "s-3"), request(0, "Hello.")).cwd == ""


def test_both_transcripts_of_a_session_have_the_same_messages(tmp_path: Path) -> None:
    short, full = (
        read(log(tmp_path, "s-1", name), request(0, "Hello."), step(1, "MODEL", "PLANNER_RESPONSE", text))
        for name, text in (("transcript.jsonl", "A long …"), ("transcript_full.jsonl", "A long reply."))
    )
    assert [m.message_id for m in short.messages] == [m.message_id for m in full.messages]


def test_where_the_sessions_are(tmp_path: Path) -> None:
    for name in ("antigravity", "antigravity-cli"):
        (tmp_path / ".gemini" / name / "brain").mkdir(parents=True)
    found = {root.parent.name for root in Antigravity().default_roots(tmp_path, {})}
    assert found == {"antigravity", "antigravity-cli"}
