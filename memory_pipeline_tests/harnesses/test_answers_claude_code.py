"""What users say in the results of Claude Code's tools, in the forms that it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Message, source_of
from memory_pipeline.redaction import Redactor
from memory_pipeline.sessions.reading import Readings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.harnesses.test_claude_code import parse, record, result, use

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
STOP = "STOP what you are doing and wait for the user to tell you how to proceed."
SAID = "To tell you how to proceed, the user said:\n"
NOTE = (
    "\n\nNote: The user's next message may contain a correction or preference. Pay close attention — if they explain "
    "what went wrong or how they'd prefer you to work, consider saving that to memory for future sessions."
)
EDIT = use("Edit", file_path="/b", old_string="x")
PLAN = "# Errors\n\n1. One switch for all errors"
EXIT = use("ExitPlanMode", plan=PLAN)
STORE, OLD = "Where do READMEs lie?", 'Are old ones "migrated" too?'
ASK = use("AskUserQuestion", questions=[{"question": q, "header": "h", "options": []} for q in (STORE, OLD)])
CLARIFY = (
    "The user wants to clarify these questions.\n    This means they may have additional information, context or "
    "questions for you.\n    Take their response into account and then reformulate the questions if appropriate.\n"
    "    Start by asking them what they would like to clarify.\n\n    Questions asked:\n"
)


def heard(tmp_path: Path, call: dict[str, Any], content: Any, **fields: Any) -> tuple[list[Message], list[Message]]:
    """The user's messages and the tool's results of a session with one call."""
    is_error = fields.pop("is_error", None)
    given = result(content) | ({"is_error": True} if is_error else {})
    session = parse(
        tmp_path,
        record(1, "assistant", [call]),
        record(2, "user", [given, *fields.pop("beside", [])]) | fields,
        record(3, "assistant", "end"),
    )
    messages = session.messages
    return [m for m in messages if m.role == "user"], [m for m in messages if m.role == "tool"][1:]


@each(
    ("call", "content", "said", "to", "answered"),
    [
        pytest.param(
            EDIT, REFUSED + SAID + "use a switch", "use a switch", "refused call", "Edit(file_path=/b, old_string=x)"
        ),
        pytest.param(
            EDIT, REFUSED + SAID + "no\n\nnever" + NOTE, "no\n\nnever", "refused call", "Edit(file_path=/b, old_"
        ),
        pytest.param(
            EDIT,
            "Permission for this tool use was denied. The tool use was rejected (eg. if it was a file edit, the "
            "new_string was NOT written to the file). The user said:\nnot in vendor/",
            "not in vendor/",
            "refused call",
            "Edit(",
            id="in a sub-agent",
        ),
        pytest.param(EXIT, REFUSED + SAID + "one file less", "one file less", "refused plan", PLAN, id="refused plan"),
        pytest.param(
            EXIT,
            "The user rejected this plan and chose to stay in plan mode. Do not start implementing. Revise the plan to "
            "address this feedback and present it again for approval. The user said:\none file less",
            "one file less",
            "refused plan",
            PLAN,
            id="refused plan, newer",
        ),
    ],
)
def test_a_refusal_with_words(tmp_path: Path, call: Any, content: str, said: str, to: str, answered: str) -> None:
    users, tools = heard(tmp_path, call, content, is_error=True)
    assert [(m.text, m.answer_to, m.tool_name) for m in users] == [(said, to, call["name"])]
    assert (users[0].answered or "").startswith(answered)
    assert [(m.text, m.is_error, m.answer_to) for m in tools] == [(content, False, "refused call")]


@each(
    ("content", "fields"),
    [
        pytest.param(REFUSED + STOP, {}, id="refused"),
        pytest.param(REFUSED + STOP + NOTE, {}, id="with a note to the model"),
        pytest.param("The user doesn't want to take this action right now. " + STOP, {}, id="interrupted"),
        pytest.param("Denied.", {"toolDenialKind": "user-rejected"}, id="said by a field alone"),
        pytest.param(REFUSED + SAID + CLARIFY + f'- "{STORE}"\n  (No answer provided)', {}, id="nothing answered yet"),
    ],
)
def test_a_refusal_without_words_is_no_sentence_and_no_failure(tmp_path: Path, content: str, fields: Any) -> None:
    users, tools = heard(tmp_path, EDIT, content, is_error=True, **fields)
    assert users == []
    assert [(m.text, m.is_error, m.answer_to) for m in tools] == [(content, False, "refused call")]


@each(
    ("content", "is_error"),
    [
        pytest.param("Exit code 1\n" + REFUSED + SAID + "no", True, id="in the output of a failing command"),
        pytest.param(REFUSED + SAID + "no", False, id="in a file that was read"),
        pytest.param('User has answered your questions: "a"="b".', True, id="a failure that quotes an answer"),
    ],
)
def test_a_result_that_quotes_a_refusal_is_no_refusal(tmp_path: Path, content: str, is_error: bool) -> None:
    users, tools = heard(tmp_path, EDIT, content, is_error=is_error)
    assert users == []
    assert [m.is_error for m in tools] == [is_error]


TOLD = f'"{STORE}"="Inline (Recommended)", "{OLD}"="only "new" ones, please"'
END = ". You can now continue with the user's answers in mind."
ANSWERS = {STORE: "Inline (Recommended)", OLD: 'only "new" ones, please'}
EXPECTED = [("Inline", STORE), ('only "new" ones, please', OLD)]


@each(
    ("content", "fields", "expected"),
    [
        pytest.param("User has answered your questions: " + TOLD + END, {"answers": ANSWERS}, EXPECTED, id="as data"),
        pytest.param("User has answered your questions: " + TOLD + END, None, EXPECTED, id="as told"),
        pytest.param("Your questions have been answered: " + TOLD + END, None, EXPECTED, id="as told, newer"),
        pytest.param(
            f'User has answered your questions: "{STORE}"="Inline" selected preview:\na = "b" user notes: as now{END}',
            None,
            [("Inline:\nas now", STORE)],
            id="with a preview and notes, as told",
        ),
        pytest.param(
            "…",
            {"answers": {STORE: "Inline"}, "annotations": {STORE: {"preview": "a", "notes": "as now"}}},
            [("Inline:\nas now", STORE)],
            id="with notes, as data",
        ),
        pytest.param("…", {"answers": {STORE: ""}}, [], id="not answered"),
    ],
)
def test_answers_to_questions(tmp_path: Path, content: str, fields: Any, expected: list[tuple[str, str]]) -> None:
    users, tools = heard(tmp_path, ASK, content, **({"toolUseResult": fields} if fields else {}))
    assert [(m.text, m.answered) for m in users] == expected
    assert {(m.answer_to, m.tool_name) for m in users} <= {("question", "AskUserQuestion")}
    assert [m.text for m in tools] == [content]


def test_answers_to_questions_whose_call_is_not_in_the_file(tmp_path: Path) -> None:
    call = use("AskUserQuestion", "other", questions=[])
    users, _ = heard(tmp_path, call, 'User has answered your questions: "a?"="b", "c?"="d, "e"' + '"' + END)
    assert [(m.text, m.answered) for m in users] == [("b", "a?"), ('d, "e"', "c?")]


def test_questions_that_the_user_wants_to_talk_about_first(tmp_path: Path) -> None:
    listed = f'- "{STORE}"\n  Answer: Inline\n  User notes: as now\n- "{OLD}"\n  (No answer provided)'
    users, tools = heard(tmp_path, ASK, REFUSED + SAID + CLARIFY + listed + NOTE, is_error=True)
    assert [(m.text, m.answered) for m in users] == [("Inline:\nas now", STORE)]
    assert [m.is_error for m in tools] == [False]


APPROVED = "User has approved your plan. You can now start coding."


@each(
    ("content", "said", "answered"),
    [
        pytest.param(APPROVED, "User has approved your plan", PLAN),
        pytest.param(
            f"{APPROVED}\n\n## Approved Plan (edited by user):\n# Less\n", "User has approved your plan", "# Less"
        ),
        pytest.param(
            "User has approved exiting plan mode. You can now proceed.", "User has approved exiting plan mode", PLAN
        ),
    ],
)
def test_an_approved_plan(tmp_path: Path, content: str, said: str, answered: str) -> None:
    users, _ = heard(tmp_path, EXIT, content)
    assert [(m.text, m.answer_to, m.answered) for m in users] == [(said, "approved plan", answered)]


def test_a_remark_with_which_a_call_was_let_through(tmp_path: Path) -> None:
    remark = [{"type": "text", "text": "and make sure that this is tested"}]
    users, _ = heard(tmp_path, EDIT, "ok", beside=remark)
    assert [(m.text, m.answer_to, m.answered) for m in users] == [
        ("and make sure that this is tested", "approved call", "Edit(file_path=/b, old_string=x)")
    ]
    reminder = [{"type": "text", "text": "<system-reminder>r</system-reminder>"}]
    assert heard(tmp_path, EDIT, "ok", beside=reminder)[0] == []
    assert heard(tmp_path, EDIT, "ok", beside=remark, isMeta=True)[0] == []
    assert heard(tmp_path, EDIT, "ok", beside=remark, origin={"kind": "coordinator"})[0] == []


def test_ids_differ_and_stay_as_the_session_grows(tmp_path: Path) -> None:
    said = result(REFUSED + SAID + "no, in /c") | {"is_error": True}
    records = [
        record(1, "assistant", [EDIT, use("Edit", "t2", file_path="/c")]),
        record(2, "user", [said, result("ok", "t2"), {"type": "text", "text": "and test it"}]),
    ]
    readings, path = Readings(), tmp_path / "s-1.jsonl"
    before = parse(tmp_path, *records).messages
    first = readings.read(source_of(path), 1500, Redactor(b"")).messages
    assert len({m.message_id for m in before}) == len(before) == 6
    grown = parse(tmp_path, *records, record(3, "user", "go on")).messages
    again = readings.read(source_of(path), 1500, Redactor(b"")).messages
    assert [m.message_id for m in first] == [m.message_id for m in before] == [m.message_id for m in grown[:6]]
    assert again == grown


def test_what_a_user_says_and_what_they_answer_is_redacted(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    call = use("Bash", command=f"curl -H 'Authorization: Bearer {token}' x")
    users, _ = heard(tmp_path, call, REFUSED + SAID + f"the token is {token}, not that", is_error=True)
    assert "[redacted:" in users[0].text
    assert "[redacted:" in (users[0].answered or "")
    assert token not in f"{users[0]}"
    private = heard(tmp_path, call, REFUSED + SAID + "no <private>my boss</private>", is_error=True)[0]
    assert "boss" not in private[0].text
