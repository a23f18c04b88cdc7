"""The reader of Cline's tasks and sessions, and of the extensions made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline import harnesses
from memory_pipeline.harnesses.cline.texts import outcome, typed
from memory_pipeline.harnesses.model import NotASessionError, ParsedSession
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse
from memory_pipeline_tests.conftest import utc
from memory_pipeline_tests.harnesses.databases import ids, sessions, shape

TASK = "1777636800000"  # 2026-05-01T12:00:00Z
EXTENSIONS = {
    "cline": "saoudrizwan.claude-dev",
    "roo": "rooveterinaryinc.roo-cline",
    "kilo_code": "kilocode.kilo-code",
}


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def message(role: str, *texts: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": [text(said) for said in texts], **fields}


def written(folder: Path, messages: object, **beside: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "api_conversation_history.json").write_text(json.dumps(messages), encoding="utf-8")
    for name, value in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def read(folder: Path, *messages: dict[str, Any], **beside: object) -> ParsedSession:
    (source,) = find_sources([written(folder / TASK, messages, **beside)])
    return parse(source)


def test_tasks_are_found_in_the_storage_of_every_editor(tmp_path: Path) -> None:
    users = (
        ".config/Code/User",
        ".config/VSCodium/User",
        ".config/Cursor/User",
        "Library/Application Support/Code - Insiders/User",
        ".local/share/code-server/User",
        ".vscode-server/data/User",
    )
    for name, extension in EXTENSIONS.items():
        harness = harnesses.named(name)
        assert harness
        roots = harness.default_roots(tmp_path, {"APPDATA": "/appdata"})
        folders = [tmp_path / user / "globalStorage" / extension / "tasks" for user in users]
        assert set(roots) >= {*folders, Path(f"/appdata/Code/User/globalStorage/{extension}/tasks")}, name
        for root in folders:
            written(root / TASK, [message("user", "<task>\nHi\n</task>")], ui_messages=[], task_metadata={})
        (folders[0] / "_index.json").write_text("{}")
        (folders[0].parent / "settings").mkdir()
        (folders[0].parent / "settings/mcp_settings.json").write_text("{}")
        found = [*find_sources(folders), *find_sources([folders[0].parent])]
        assert [(source.agent, source.session) for source in found] == [(name, TASK)] * 7
        assert parse(found[0]).harness == name


def test_sessions_of_cline_4_are_found_where_its_variables_say() -> None:
    cline = harnesses.named("cline")
    assert cline
    home = Path("/home/ada")
    cases: list[tuple[dict[str, str], str, str]] = [
        ({}, "/home/ada/.cline/data/tasks", "/home/ada/.cline/data/sessions"),
        ({"CLINE_DIR": "/c"}, "/c/data/tasks", "/c/data/sessions"),
        ({"CLINE_DATA_DIR": "/d", "CLINE_DIR": "/c"}, "/d/tasks", "/d/sessions"),
        ({"CLINE_SESSION_DATA_DIR": "/s"}, "/s", "/home/ada/.cline/data/sessions"),
    ]
    for env, *expected in cases:
        assert cline.default_roots(home, env)[-2:] == [Path(path) for path in expected], env


def test_what_was_typed_is_told_from_what_cline_writes(tmp_path: Path) -> None:
    cases: list[tuple[str, list[tuple[str, str]]]] = [
        ("<task>\nDo <b>this</b>.\n</task>", [("user", "Do <b>this</b>.")]),
        ("<feedback>\nNo.\n</feedback>", [("user", "No.")]),
        (
            "New instructions:\n<user_message>\nGo.\n</user_message>",
            [("injected", "New instructions:"), ("user", "Go.")],
        ),
        ("Plain text, as in a notice.", [("injected", "Plain text, as in a notice.")]),
        (
            "A file with <task>an element</task>? <b> <task>x</task>",
            [("injected", "A file with"), ("user", "an element")],
        ),
        ("<environment_details>\n<task>x</task>\n</environment_details>", [("injected", "<environment_details>")]),
        ("[read_file for 'a'] Result:\n<task>\nx\n</task>", [("tool", "<task>\nx\n</task>")]),
        (
            "[use_mcp_tool for 's'] Result:\nThe answer is <answer>x</answer>",
            [("tool", "The answer is <answer>x</answer>")],
        ),
    ]
    for said, expected in cases:
        found = shape(read(tmp_path, message("user", said), message("assistant", "ok")))[:-1]
        assert [
            (role, part[: len(start)]) for (role, part), (_, start) in zip(found, expected, strict=False)
        ] == expected, said
    assert typed("no element") is None


def test_outcomes_of_calls() -> None:
    cases = {
        ("execute_command", "Exit code: 2\nOutput:\nfailed"): (True, False, ""),
        ("execute_command", "Exit code: 0\nOutput:\nok"): (False, False, ""),
        ("read_file", "The tool execution failed with the following error:\n<error>\nx\n</error>"): (True, False, ""),
        ("read_file", "The user denied this operation."): (False, True, ""),
        ("read_file", '{"status":"denied","feedback":"Not that one."}'): (False, True, "Not that one."),
        ("read_file", '{"status":"error","error":"no such file"}'): (True, False, ""),
        ("read_file", '{"status": broken'): (False, False, ""),
        ("ask_followup_question", "<answer>\nEuro.\n</answer>"): (False, False, "Euro."),
        ("read_file", "<answer>\nEuro.\n</answer>"): (False, False, ""),
    }
    for (tool, told), expected in cases.items():
        found = outcome(tool, told)
        assert (found.is_error, found.refused, found.said) == expected, told


def test_times_are_taken_from_what_was_shown(tmp_path: Path) -> None:
    shown = [
        {"ts": 1777636805000, "type": "say", "say": "text", "text": "Yes."},
        {"ts": 1777636900000, "type": "say", "say": "text", "text": "Yes."},
        {"ts": 1777636850000, "type": "say", "say": "user_feedback", "text": "Again."},
        "damaged",
    ]
    said = [
        message("user", "<task>\nBegin.\n</task>"),
        message("assistant", "Yes."),
        message("user", "<feedback>\nAgain.\n</feedback>"),
        message("assistant", "Yes."),
        message("user", "<feedback>\nNobody noted it.\n</feedback>"),
    ]
    session = read(tmp_path, *said, ui_messages=shown)
    times = [12 * 3600, 12 * 3600 + 5, 12 * 3600 + 50, 12 * 3600 + 100]
    midnight = utc("2026-05-01T00:00+00:00")
    assert [(m.said_at - midnight).total_seconds() for m in session.messages if m.is_timed] == times
    assert [m.is_timed for m in session.messages] == [True] * 4 + [False]


def test_the_ids_of_messages_do_not_depend_on_their_place(tmp_path: Path) -> None:
    said = [message("user", f"<feedback>\n{n}\n</feedback>", ts=1777636800000 + n) for n in range(4)]
    assert ids(read(tmp_path, *said))[2:] == ids(read(tmp_path, *said[2:]))


def test_a_session_without_a_person_is_a_programs(tmp_path: Path) -> None:
    for interactive, role in ((True, "user"), (False, "injected")):
        folder = tmp_path / "s1"
        folder.mkdir(exist_ok=True)
        (folder / "s1.json").write_text(json.dumps({"interactive": interactive, "cwd": "/home/ada/shop"}))
        log = {"agent": "lead", "messages": [{"id": "m1", "role": "user", "content": "Go."}]}
        (folder / "s1.messages.json").write_text(json.dumps(log))
        assert shape(sessions(tmp_path)["s1"]) == [(role, "Go.")]


def test_what_can_be_saved_of_a_damaged_history_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / TASK, [message("user", "<task>\nBegin.\n</task>"), message("assistant", "Yes." * 9)])
    file = folder / "api_conversation_history.json"
    file.write_text(file.read_text("utf-8")[:-30], "utf-8")
    (source,) = find_sources([folder])
    session = parse(source)
    assert shape(session) == [("user", "Begin.")]
    assert [problem.reason for problem in session.problems] == [
        "The file is damaged or incomplete; 1 messages were read from it."
    ]
    odd = [{"type": ["text"]}, {"type": "tool_use", "id": ["x"], "name": {}, "input": 3}, None, {"type": "tool_result"}]
    whole = json.dumps([message("user", "<task>\nBegin \ud800.\n</task>"), {"role": "user", "content": odd}])
    file.write_text(f"{whole[:-1]}, {json.dumps({'role': 'assistant', 'content': odd})}, {{", "utf-8")
    (source,) = find_sources([folder])
    session = parse(source)
    assert shape(session) == [("user", "Begin ."), ("tool", "(no output)"), ("tool", "()")]
    assert session.unknown_records == {"block/": 2, "block/tool_use": 1, "block/tool_result": 1}
    for raw in ("", "3", '"x"', "{}", "[3, null]", '[{"role": 3}]', '[{"role": "user", "content": {"a": [1]}}]'):
        file.write_text(raw, "utf-8")
        (source,) = find_sources([folder])
        with pytest.raises(NotASessionError):
            parse(source)
