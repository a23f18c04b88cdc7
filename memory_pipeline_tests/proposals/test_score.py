"""What comes first in the queue of the reviewer."""

from memory_pipeline.proposals.events import with_sessions
from memory_pipeline.proposals.offering import HYPOTHETICAL, line_score, why_left_out
from memory_pipeline_tests.cases import each

RULE = "Never deploy `api/server.py` on a Friday."


def of(text: str = RULE, kind: str = "rule", trust: str = "user", priority: str = "high") -> float:
    return line_score(text, kind, trust, priority)


@each(
    ("better", "worse"),
    [
        (of(), of(priority="medium")),
        (of(), of(trust="assistant")),
        (of(), of(kind="statement")),
        (of(), of("Never deploy on a Friday.")),  # names nothing
        (of("Themes must never crash."), of("This must never crash.")),
        (of("這個模組使用 SMTP。"), of("請讀取這個模組，使用 SMTP。")),
        (of("The pipe breaks on spaces."), of("can you look why the pipe breaks on spaces.")),
        (of(trust="assistant"), of("Added `a.py`; renamed `b.py`; moved `api/c.py`.", trust="assistant")),
        (of("The pipe breaks on spaces."), of("The pipe seems to break on spaces.")),
        (of("The pipe is fixed.", trust="assistant"), of("The pipe works successfully.", trust="assistant")),
        (of(), of(RULE + " It was said at length and with many words that nobody needs." * 5)),
    ],
)
def test_what_is_worth_more(better: float, worse: float) -> None:
    assert better > worse


def test_only_a_person_asks_for_the_moment_and_only_a_model_lists() -> None:
    assert of("Show `a.py` when it fails.", trust="assistant") > of("Show `a.py` when it fails.", kind="statement")
    listed, told = "no; really; `a.py`", "no, really, `a.py`"
    assert of(listed) == of(told)
    assert of(listed, trust="assistant") < of(told, trust="assistant")


def test_each_further_session_counts_up_to_a_point() -> None:
    values = [with_sessions(1.0, sessions) for sessions in (0, 1, 2, 3, 4, 9)]
    assert values[0] == values[1] < values[2] < values[3] < values[4] == values[5]


def test_of_an_answer_to_a_question_the_answer_counts() -> None:
    """What a model asks supposes; what the user answers decides."""
    assert why_left_out('Asked "If we migrate, could old READMEs stay": "no, move all"', []) is None
    assert why_left_out('Asked "Which store": "maybe Redis"', []) == HYPOTHETICAL
