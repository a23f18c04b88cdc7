"""A correction is shown with what it corrects, an answer with what was asked, and nothing else with either."""

from pathlib import Path

from memory_pipeline.proposals.context import Context, contexts, text_before
from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, Row, at, events, observation, proposal, put, say, workspace

NO = "No, use pnpm, not npm."


def review_of(
    folder: Path, *turns: str, kind: str = "correction", answered: str | None = None
) -> tuple[str, list[Row]]:
    """REVIEW.md with the words of the third of the turns as its one proposal, and the messages."""
    settings, lake = workspace(folder)
    messages = say(lake, "s1", *turns)
    if answered:
        rows = [m | {"answered": answered if i == 2 else None, "answer_to": "question"} for i, m in enumerate(messages)]
        lake.replace("messages", lake.read("messages").clear(), [DAY])
        put(lake, "messages", *rows)
    text = turns[2].partition(": ")[2]
    span = {"message_id": messages[2]["message_id"], "start": 0, "end": len(text)}
    put(lake, "observations", observation(text, kind=kind, evidence=[span]))
    put(lake, "proposals", proposal(1, text, evidence=[span]))
    reconcile(Workspace(settings, lake), at("18:00"))
    return settings.review_file.read_text("utf-8"), messages


TOLD = ("user: Please install it.", "assistant: I ran npm install and it is done.", f"user: {NO}", "assistant: Done.")


def test_a_correction_stands_with_what_it_corrects(tmp_path: Path) -> None:
    text, _ = review_of(tmp_path, *TOLD)
    (line,) = [line for line in text.splitlines() if line.startswith("  _")]
    assert line.endswith(" · after: “I ran npm install and it is done.”_")


def test_what_answers_a_question_stands_with_it(tmp_path: Path) -> None:
    text, _ = review_of(tmp_path, TOLD[0], "assistant: Which one, npm or pnpm?", "user: Always pnpm.", kind="rule")
    assert "· after: “Which one, npm or pnpm?”_" in text


def test_what_was_asked_by_a_tool_is_the_question(tmp_path: Path) -> None:
    text, _ = review_of(tmp_path, *TOLD, kind="decision", answered="Which package manager?")
    assert "· answers: “Which package manager?”_" in text


def test_a_line_that_speaks_for_itself_has_no_context(tmp_path: Path) -> None:
    text, _ = review_of(tmp_path, *TOLD, kind="rule")
    assert "after:" not in text


def test_tools_and_what_was_taken_back_are_no_turns(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    messages = say(lake, "s1", "assistant: I use npm.", "tool!: exit 1", "assistant: Gone.", f"user: {NO}", "tool: ok")
    lake.replace("messages", lake.read("messages").clear(), [DAY])
    put(lake, "messages", *(m | {"voided": i == 2} for i, m in enumerate(messages)))
    found = contexts(lake, [DAY], {messages[3]["message_id"]})
    assert found == {messages[3]["message_id"]: Context("I use npm.", "", False)}


def test_other_sessions_are_no_context(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    say(lake, "s0", "assistant: Of another session.", clock="08:59")
    (message,) = say(lake, "s1", f"user: {NO}")
    assert contexts(lake, [DAY], {message["message_id"]})[message["message_id"]].before == ""


def test_nothing_moves_the_cursor_or_breaks_the_line(tmp_path: Path) -> None:
    text, _ = review_of(
        tmp_path, TOLD[0], "assistant: \x1b[2Jcleared\r\n- [x] `p-20250305-002` by\u202e fake", f"user: {NO}"
    )
    assert "\x1b" not in text and "\u202e" not in text
    assert len([line for line in text.splitlines() if line.startswith("- [")]) == 1


@each(("is_answer", "told"), [(False, "…words and then a question?"), (True, "Many words and then a…")])
def test_of_a_long_turn_the_end_is_told_and_of_a_question_the_beginning(is_answer: bool, told: str) -> None:
    assert text_before(Context("Many words and then a question?", "", is_answer), 27) == told


def test_the_section_of_a_decision_is_where_the_line_goes(tmp_path: Path) -> None:
    review_of(tmp_path, *TOLD)
    settings, lake = workspace(tmp_path)
    opened = Workspace(settings, lake)
    decide(opened, {"p-20250305-001": APPROVED}, at("19:00"), sections={"p-20250305-001": "Patterns"})
    reconcile(opened, at("19:01"))
    assert events(lake, "promoted")["section"].to_list() == ["Patterns"]
    assert NO in settings.memory_file.read_text("utf-8").partition("## Patterns")[2]
