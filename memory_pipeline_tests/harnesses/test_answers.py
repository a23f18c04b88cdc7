"""What users say through the tools of pi, Codex, OpenCode and Gemini CLI, in the forms that these write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.harnesses import test_codex as codex
from memory_pipeline_tests.harnesses import test_gemini as gemini
from memory_pipeline_tests.harnesses import test_opencode as opencode
from memory_pipeline_tests.harnesses import test_pi as pi

STORE, OLD = "Where do READMEs lie?", "Are old ones migrated?"
OPTIONS = [{"label": "Inline (Recommended)", "description": "fewer files"}, {"label": "Files", "description": "more"}]
QUESTIONS = [
    {"id": "store", "header": "Storage", "question": STORE, "options": OPTIONS},
    {"id": "old", "header": "Old", "question": OLD, "options": OPTIONS},
]
TOLD = (
    f'User has answered your questions: "{STORE}"="Inline (Recommended)", "{OLD}"="Unanswered". You can now continue '
    "with the user's answers in mind."
)


def heard(session: ParsedSession) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(m.text, m.answer_to, m.answered, m.tool_name) for m in session.messages if m.role == "user"]


def errors(session: ParsedSession) -> list[bool]:
    return [m.is_error for m in session.messages if m.role == "tool"][1:]


def of_codex(tmp_path: Path, tool: str, arguments: object, output: object) -> ParsedSession:
    given = {"name": tool, "call_id": "c1", "arguments": json.dumps(arguments)}
    call, result = (
        codex.item(1, "function_call", **given),
        codex.item(
            2, "function_call_output", call_id="c1", output=output if isinstance(output, str) else json.dumps(output)
        ),
    )
    return codex.parse(tmp_path, call, result)


def of_pi(tmp_path: Path, arguments: dict[str, Any], text: str, **fields: Any) -> ParsedSession:
    answer = pi.said("toolResult", text, toolCallId="t1", toolName="question", isError=False) | fields
    call = pi.said("assistant", pi.call("question", **arguments))
    return pi.parse(tmp_path, pi.entry(1, call), pi.entry(2, answer))


def of_opencode(tmp_path: Path, *parts: dict[str, Any]) -> ParsedSession:
    talk = opencode.Talk().assistant("I ask.", *parts)
    return opencode.read(opencode.database(tmp_path, talk).parent)


def of_gemini(tmp_path: Path, call: dict[str, Any]) -> ParsedSession:
    return gemini.log(tmp_path, gemini.said("g-1", "gemini", "", toolCalls=[call]))


def test_codex_request_user_input(tmp_path: Path) -> None:
    answers = {"old": {"answers": []}, "store": {"answers": ["Inline (Recommended)", "user_note: but no embeds"]}}
    session = of_codex(tmp_path, "request_user_input", {"questions": QUESTIONS}, {"answers": answers})
    assert heard(session) == [("Inline:\nbut no embeds", "question", STORE, "request_user_input")]
    assert errors(session) == [False]
    assert "but no embeds" in session.messages[1].text  # what the model was given, which was no output before
    assert len({m.message_id for m in session.messages}) == 3


@each(
    ("arguments", "output"),
    [
        pytest.param({"questions": QUESTIONS}, "request_user_input is unavailable in Default mode", id="not asked"),
        pytest.param({"repoName": "a/b", "question": "How?"}, {"answer": "So."}, id="asked of a server"),
        pytest.param({"questions": QUESTIONS}, {"answers": {"other": "x"}}, id="answers to something else"),
        pytest.param({"questions": QUESTIONS}, {"answers": 7}, id="no answers"),
        pytest.param({"questions": [7, {"question": 7}]}, {"answers": {"0": "x"}}, id="no questions"),
    ],
)
def test_what_is_no_answer_of_the_user(tmp_path: Path, arguments: Any, output: Any) -> None:
    assert heard(of_codex(tmp_path, "ask", arguments, output)) == []


def test_a_rollout_that_goes_on_keeps_its_ids(tmp_path: Path) -> None:
    answers = {"store": {"answers": ["Files"]}}
    before = of_codex(tmp_path, "request_user_input", {"questions": QUESTIONS}, {"answers": answers}).messages
    assert before == of_codex(tmp_path, "request_user_input", {"questions": QUESTIONS}, {"answers": answers}).messages


@each(
    ("arguments", "text", "details", "expected"),
    [
        pytest.param(
            {"question": STORE, "options": OPTIONS},
            "User selected: 2. Files",
            {"question": STORE, "options": ["Inline", "Files"], "answer": "Files", "wasCustom": False},
            [("Files", STORE)],
            id="question",
        ),
        pytest.param(
            {"question": STORE, "options": OPTIONS},
            "User cancelled the selection",
            {"question": STORE, "options": ["Inline", "Files"], "answer": None},
            [],
            id="question, cancelled",
        ),
        pytest.param(
            {"questions": [{"id": "store", "label": "S", "prompt": STORE, "options": OPTIONS}]},
            "S: user wrote: beside them",
            {"answers": [{"id": "store", "value": "x", "label": "beside them", "wasCustom": True}], "cancelled": False},
            [("beside them", STORE)],
            id="questionnaire",
        ),
        pytest.param({"questions": QUESTIONS}, TOLD, None, [("Inline", STORE)], id="told as by others"),
        pytest.param(
            {"questions": QUESTIONS},
            "…",
            {"answers": [["Files", "Inline"], "no"]},
            [("Files, Inline", STORE), ("no", OLD)],
        ),
    ],
)
def test_pi_extensions_that_ask(tmp_path: Path, arguments: Any, text: str, details: Any, expected: Any) -> None:
    session = of_pi(tmp_path, arguments, text, **({"details": details} if details else {}))
    assert heard(session) == [(said, "question", question, "question") for said, question in expected]


def test_a_call_that_was_blocked_in_pi_did_not_fail(tmp_path: Path) -> None:
    assert errors(of_pi(tmp_path, {"command": "rm -r x"}, "Blocked by user", isError=True)) == [False]
    assert errors(of_pi(tmp_path, {"command": "rm -r x"}, "Blocked by userland", isError=True)) == [True]


@each("metadata", [{"answers": [["Inline (Recommended)"], []]}, {}], ids=["as data", "as told"])
def test_opencode_question(tmp_path: Path, metadata: dict[str, Any]) -> None:
    session = of_opencode(tmp_path, opencode.tool("question", TOLD, input={"questions": QUESTIONS}, metadata=metadata))
    assert heard(session) == [("Inline", "question", STORE, "question")]


REJECTED = "The user rejected permission to use this specific tool call"


@each(
    ("error", "words"),
    [
        (f"{REJECTED} with the following feedback: use trash,\nnever rm", ["use trash,\nnever rm"]),
        (f"Error: {REJECTED}. You may try again with different parameters.", []),
        ("The user dismissed this question", []),
    ],
)
def test_opencode_refusals(tmp_path: Path, error: str, words: list[str]) -> None:
    session = of_opencode(tmp_path, opencode.tool("bash", error, "error", input={"command": "rm -r x"}))
    assert heard(session) == [(said, "refused call", "bash(command=rm -r x)", "bash") for said in words]
    assert errors(session) == [False]


def test_opencode_plans_and_failures(tmp_path: Path) -> None:
    approved = "User approved switching to build agent"
    session = of_opencode(
        tmp_path,
        opencode.tool("plan_exit", f"{approved}. Wait for further instructions.", input={}),
        opencode.tool("bash", "The user has specified a rule", "error", "c-2", input={"command": "ls"}),
    )
    assert heard(session) == [(approved, "approved plan", None, "plan_exit")]
    assert errors(session)[-1]


def test_gemini_ask_user(tmp_path: Path) -> None:
    session = of_gemini(tmp_path, gemini.call("ask_user", '{"answers":{"0":"Files","1":""}}', questions=QUESTIONS))
    assert heard(session) == [("Files", "question", STORE, "ask_user")]
    dismissed = gemini.call("ask_user", "User dismissed ask_user dialog without answering.", questions=QUESTIONS)
    assert heard(of_gemini(tmp_path, dismissed)) == []


@each(
    ("output", "to", "words"),
    [
        ("Plan approved. Switching to Default mode\n\nThe plan is stored at: p.md", "approved plan", ["Plan approved"]),
        (
            "Plan rejected. User feedback: one\nfile less\n\nThe plan is stored at: p.md\nRevise",
            "refused plan",
            ["one\nfile less"],
        ),
        ("Plan rejected. No feedback provided.\n\nThe plan is stored at: p.md", "refused plan", []),
    ],
)
def test_gemini_plans(tmp_path: Path, output: str, to: str, words: list[str]) -> None:
    session = of_gemini(tmp_path, gemini.call("exit_plan_mode", output, plan_path="p.md"))
    assert heard(session) == [(said, to, "p.md", "exit_plan_mode") for said in words]


def test_gemini_cancelled_calls_did_not_fail(tmp_path: Path) -> None:
    cancelled = gemini.call(
        "write_file", "[Operation Cancelled] Reason: User did not allow tool call", status="cancelled"
    )
    assert errors(of_gemini(tmp_path, cancelled)) == [False]
    assert errors(of_gemini(tmp_path, gemini.call("write_file", "no", status="error"))) == [True]
