"""What users say through tools, from the session file to the fact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.evaluation import (
    judge_evidence,
    judge_regurgitation,
    judge_specifics,
    missing_evidence,
)
from memory_pipeline.observations.model.transcript import rendered
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.observations.types import MAX_ASKED, Fact, WindowMessage, choice_line
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import utc
from memory_pipeline_tests.harnesses.test_answers_claude_code import REFUSED, SAID, STOP
from memory_pipeline_tests.harnesses.test_claude_code import record, result, use
from memory_pipeline_tests.observations.talking import LONDON, checked, parsed, quotes, talk

DAY = date(2026, 5, 1)
STORE = "Should the READMEs be embedded files or constants in the code?"
PLAN = "# Plan: one switch for all errors\n\n1. Replace the chain in main.go"
ANSWERED = (
    f'User has answered your questions: "{STORE}"="Constants". You can now continue with the user\'s answers in mind.'
)
NEVER = (
    "No, never edit vendor/ by hand: the generator writes it, every change is lost with the next release, and nobody "
    "notices before the shop is down, as it was twice in spring."
)
"""So long that it would be a copy of the tool's result, if a tool had said it."""
FILLER = "I am looking at the configuration of the worker to see where the retries come from."


def written(folder: Path, *exchanges: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """A session with a prompt, then calls with their results."""
    records = [record(0, "user", "The repositories need a README each.")]
    for number, (call, given) in enumerate(exchanges):
        at = 3 * number + 1
        records += [
            record(at, "assistant", [{"type": "text", "text": f"{FILLER} {number}"}]),
            record(at + 1, "assistant", [call | {"id": f"t{number}"}]),
            record(at + 2, "user", [given | {"tool_use_id": f"t{number}"}]),
        ]
    records += [
        record(50 + n, "user", f"Part {n} of the shop also needs one, like the parts before it.") for n in range(5)
    ]
    folder.mkdir(parents=True)
    (folder / "s-1.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def run(folder: Path) -> Workspace:
    """Read and observed."""
    settings = load_settings()
    workspace = Workspace(settings, Lake(settings.lake_dir))
    known = Catalogue(workspace.lake, workspace.settings)
    known.refresh(find_sources([folder]))
    bring_up_to_date(SessionsStage(workspace, known, utc("2026-06-01T09:00")), workspace.lake, DAY)
    bring_up_to_date(ObservationsStage(workspace, ExtractiveObserver(0.5)), workspace.lake, DAY)
    return workspace


def refusal(words: str) -> dict[str, Any]:
    return result(REFUSED + (SAID + words if words else STOP)) | {"is_error": True}


def test_an_answer_ends_as_a_high_fact_in_the_users_voice(tmp_path: Path) -> None:
    ask = use("AskUserQuestion", questions=[{"question": STORE, "header": "h", "options": []}])
    written(
        tmp_path / "in",
        (ask, result(ANSWERED)),
        (use("Edit", file_path="/a"), refusal(NEVER)),
    )
    workspace = run(tmp_path / "in")
    rows = workspace.lake.read("observations", [DAY]).to_dicts()
    texts = dict(workspace.lake.read("messages", [DAY]).select("message_id", "text").iter_rows())
    (fact,) = [row for row in rows if "Constants" in row["text"]]
    assert fact["text"] == f'Asked "{STORE[:-1]}": "Constants"'
    assert (fact["priority"], fact["kind"], fact["trust"]) == ("high", "decision", "user")
    assert [texts[s["message_id"]][s["start"] : s["end"]] for s in fact["evidence"]] == ["Constants"]
    (refused,) = [row for row in rows if "vendor" in row["text"]]
    assert (refused["trust"], refused["text"]) == ("user", NEVER)
    for verdict in (judge(workspace, DAY) for judge in (judge_evidence, judge_specifics, judge_regurgitation)):
        assert verdict.passed, verdict.offenders
    (session,) = workspace.lake.read("sessions", [DAY]).to_dicts()
    assert session["user_messages"] == 8


def test_refusals_are_no_failures_that_recur(tmp_path: Path) -> None:
    """Eight refusals of one command were friction of the tool before."""
    written(tmp_path / "in", *[(use("Bash", command="make lint"), refusal(""))] * 8)
    workspace = run(tmp_path / "in")
    bring_up_to_date(FrictionStage(workspace), workspace.lake, DAY)
    assert workspace.lake.read("messages", [DAY])["is_error"].sum() == 0
    assert workspace.lake.read("friction_clusters", [DAY]).is_empty()


def test_the_check_tells_a_question_that_nobody_asked(tmp_path: Path) -> None:
    row = {
        "text": 'Asked "a": "b"',
        "evidence": [{"message_id": "m", "start": 0, "end": 1}],
        "observer": "extractive-4",
    }
    assert missing_evidence(row, {"m": "b"}, {"m": ("question", "a?")}) is None
    assert missing_evidence(row, {"m": "b"}, {"m": ("question", "c?")}) == "its text differs from its evidence"
    assert missing_evidence(row, {"m": "b"}) == "its text differs from its evidence"


def chosen(words: str, to: str = "question", answered: str = STORE, *before: str) -> list[Fact]:
    """The facts of a window in which a user answers through a tool, from the answer."""
    turns = [
        *(before or ("user: The repositories need a README each.",)),
        *[f"assistant: {FILLER}"] * 12,
        "tool: asked",
        f"user: {words}",
    ]
    messages = talk(*turns)
    messages[-1] = replace(messages[-1], answer_to=to, answered=answered)
    found = [fact for segment in ExtractiveObserver(0.5).observe(messages) for fact in segment.facts]
    return [fact for fact in found if messages[-1].message_id in {s.message_id for s in fact.evidence}]


@each(
    ("words", "asked", "expected"),
    [
        ("uv", "Which installer?", ("medium", "decision")),
        ("No", "Do old repositories get one too?", ("medium", "decision")),
        ("always constants, never files", STORE, ("high", "rule")),
        ("只记日志", "release 失败时要不要也重试？", ("medium", "decision")),
        ("im Code, nicht als Dateien", "Wo liegen die READMEs?", ("high", "decision")),
        ("Postgres", "Should we use Postgres or SQLite?", ("high", "decision")),
        ("Not yet", "Should we commit this now?", ("medium", "decision")),
        ("Later, I am not sure yet", STORE, ("medium", "decision")),
        ("What would you recommend?", STORE, ("low", "question")),
        ("Push", "Would you like me to push this branch?", ("medium", "decision")),
    ],
)
def test_how_much_an_answer_decides(words: str, asked: str, expected: tuple[str, str]) -> None:
    (fact,) = chosen(words, "question", asked)
    assert (fact.priority, fact.kind) == expected
    assert fact.text.endswith(f': "{words}"')


def test_an_approved_plan_is_a_decision_of_days() -> None:
    (fact,) = chosen("User has approved your plan", "approved plan", PLAN)
    assert fact.text == 'Plan "Plan: one switch for all errors": "User has approved your plan"'
    assert (fact.priority, fact.kind, fact.trust) == ("medium", "decision", "user")


@each("words", ["nimm einen switch statt der langen Kette von Bedingungen", "the errors need one switch, not a chain"])
def test_words_of_a_refusal_correct_in_any_language(words: str) -> None:
    (fact,) = chosen(words, "refused call", "Edit(file_path=/b, old_string=if)")
    assert (fact.text, fact.kind, fact.trust) == (words, "correction", "user")


@each("words", ["?", "", "…"])
def test_an_answer_without_words_is_none(words: str) -> None:
    assert chosen(words) == []


def test_a_long_question_keeps_its_end() -> None:
    line = choice_line("question", f"{'There is much to say. ' * 20}Which one?", "this")
    assert line.startswith('Asked "There is much') and line.endswith('Which one": "this"')
    assert len(line) <= MAX_ASKED + 20
    assert len(choice_line("question", "word " * 200, "x")) <= MAX_ASKED + 20
    assert choice_line("approved plan", "\n\n## Fix it.\n\n- a", "ok") == 'Plan "Fix it": "ok"'


# --- a language model ---


def answered_window() -> Sequence[WindowMessage]:
    window = talk(
        "user: The repositories need a README each.",
        f"tool: AskUserQuestion(questions=[{STORE}])",
        f"tool: {ANSWERED}",
        "user: Constants",
        "assistant: Done.",
    )
    return [*window[:3], replace(window[3], answer_to="question", answered=STORE), window[4]]


def test_a_model_is_shown_what_is_answered() -> None:
    shown = rendered(answered_window()[3], 4, LONDON)
    assert shown == f"[#4 09:03 user]\n(to the question: {STORE})\nConstants"


def test_a_models_fact_about_an_answer_stands_on_the_answer_alone() -> None:
    fact = checked(
        answered_window(), parsed("READMEs are constants in the code, not embedded files.", refs=(4,), kind="decision")
    )
    assert quotes(answered_window(), fact.evidence) == ["m4: Constants"]
    assert (fact.priority, fact.trust, fact.flags) == ("high", "user", ())
