"""Where a fact was said: spans of the window that carry its words."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.observations.model.alignment import GROUNDED, MAX_SPAN, MAX_SPANS, Aligned, Alignment, stems
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.observations.talking import START, quotes, talk

WINDOW = talk(
    "user: Never deploy on a Friday. Nobody is there to watch it.",
    "assistant: The root cause was a stale lock in /var/run/worker.pid. I removed it.",
    "tool: worker started\npid written to /var/run/worker.pid\n3 jobs",
    "user: Use uv instead of pip.",
    "assistant: Done, pyproject.toml now names uv.",
)


def align(window: Sequence[WindowMessage], text: str) -> Aligned:
    """Wherever in the window it was said."""
    return Alignment(window).align(text, range(len(window)))


def found(text: str) -> tuple[list[str], float]:
    aligned = align(WINDOW, text)
    return quotes(WINDOW, aligned.spans), aligned.coverage


@each(
    ("text", "spans"),
    [
        ("The person forbids deploying on a Friday.", ["m1: Never deploy on a Friday."]),
        ("A stale lock was the root cause.", ["m2: The root cause was a stale lock in /var/run/worker.pid."]),
        ("uv instead of pip", ["m4: Use uv instead of pip."]),
        (  # two places
            "No deployments on a Friday; uv instead of pip.",
            ["m4: Use uv instead of pip.", "m1: Never deploy on a Friday."],
        ),
    ],
)
def test_a_fact_is_found_by_its_words(text: str, spans: list[str]) -> None:
    assert found(text)[0] == spans


def test_forms_of_a_word_are_one() -> None:
    assert stems("deployments") == stems("deployed") == {"deploy"}
    assert stems("src/workers.py uv0123456789") == {"src", "worker", "py", "uv0123456789"}  # names have parts
    assert stems("a b 字") == {"字"}


def test_what_a_model_calls_those_who_speak_does_not_count() -> None:
    assert found("The person said to the agent in this session: never deploy on a Friday.")[1] == pytest.approx(
        found("Never deploy on a Friday, said.")[1]
    )


def test_only_the_given_messages_are_looked_at() -> None:
    """The path stands in a claim and in the output of a tool."""
    path = "/var/run/worker.pid"
    assert found(path)[0] == ["m2: The root cause was a stale lock in /var/run/worker.pid."]
    assert quotes(WINDOW, Alignment(WINDOW).align(path, [2]).spans) == ["m3: pid written to /var/run/worker.pid"]
    assert Alignment(WINDOW).align(path, [0, 3]).spans == ()
    assert Alignment(WINDOW).align(path, []).coverage == 0


def test_a_fact_may_sum_up_a_list_of_messages_that_the_model_named() -> None:
    window = talk("tool: accent 8abeb7\ngreen b5bd68\nred cc6666\nborder 343541\nmuted 808080", "user: Good.")
    text = "Colors: 8abeb7, b5bd68, cc6666, 343541, 808080."
    named = Alignment(window).align(text, [0], named=True)
    assert len(named.spans) == MAX_SPANS
    assert named.coverage == pytest.approx(5 / 6, abs=0.05)  # all but the word "colors"
    assert align(window, text).coverage < named.coverage


def test_coverage_by_voice() -> None:
    window = talk("user: Look:\n<<The lock is stale.>>\nPlease fix it today.", "assistant: The lock is stale.")
    alignment = Alignment(window)
    assert alignment.coverage("stale lock", [0], ["paste"]) == 1
    assert alignment.coverage("stale lock", [0], ["user"]) == 0
    assert alignment.coverage("fix it today", [0], ["user"]) == 1
    assert alignment.coverage("stale lock", [0, 1], ["user", "assistant"]) == 1
    assert alignment.coverage("stale lock", []) == 0
    assert alignment.coverage("", [0, 1]) == 0


def test_of_two_that_say_the_same_the_persons_words_count_then_the_first() -> None:
    same = talk("tool: use uv", "injected: use uv", "assistant: use uv", "user: use uv", "user: use uv")
    assert quotes(same, align(same, "use uv").spans) == ["m4: use uv"]


@each(
    ("text", "low", "high"),
    [
        ("Never deploy on a Friday.", 1.0, 1.0),
        ("The person said: never deploy on a Friday.", GROUNDED, 0.99),
        ("Always shred the quarterly invoices in Berlin.", 0.0, 0.0),
        ("The worker shreds the invoices, and nobody is there.", 0.01, GROUNDED),
        ("", 0.0, 0.0),
        ("!!! …", 0.0, 0.0),
    ],
)
def test_coverage(text: str, low: float, high: float) -> None:
    assert low <= found(text)[1] <= high


def test_a_span_that_adds_next_to_nothing_is_no_evidence() -> None:
    """Nor is one that only repeats what another has."""
    told = " ".join(f"word{n}" for n in range(30))
    window = talk(f"user: {told}.", "assistant: zebra", f"assistant: {told}.")
    assert [s.message_id for s in align(window, f"{told} zebra").spans] == ["m1"]


def test_words_that_nobody_else_used_weigh_more_than_common_ones() -> None:
    window = talk(*["user: the worker is slow"] * 9, "user: the gizmo is slow")
    assert align(window, "worker zebra").coverage < align(window, "gizmo zebra").coverage


def test_chinese_is_found_by_its_characters() -> None:
    window = talk("user: 請使用 pnpm 安裝套件。", "assistant: 好的,已經刪除 package-lock.json。")
    aligned = align(window, "使用者要求以 pnpm 安裝套件")
    assert quotes(window, aligned.spans)[0] == "m1: 請使用 pnpm 安裝套件。"
    assert aligned.coverage > GROUNDED
    assert align(window, "發票必須在星期五寄出").coverage == 0


def test_output_is_cut_into_lines_and_long_lines_into_pieces() -> None:
    long = " ".join(f"word{n}" for n in range(500))
    window = talk(f"tool: first\n{long}\n  last line  ")
    (span,) = align(window, "word7 word8").spans
    assert 0 < span.end - span.start <= MAX_SPAN
    assert quotes(window, align(window, "last line").spans) == ["m1: last line"]


def test_code_in_an_answer_has_lines_too() -> None:
    window = talk("assistant: Look:\n```\nretries = 3\ntimeout = 30\n```")
    assert quotes(window, align(window, "timeout 30").spans) == ["m1: timeout = 30"]


def test_a_window_without_words_carries_nothing() -> None:
    for window in ([], talk("user: ", "tool: \n \n")):
        aligned = align(window, "anything")
        assert (aligned.spans, aligned.coverage) == ((), 0.0)


TEXT = st.text(alphabet="ab cd\n.。…`*|:1-é字\u2028\x1c\t", max_size=80) | st.text(max_size=40)
ROLES = st.sampled_from(["user", "assistant", "tool", "injected"])


@settings(max_examples=times(2))
@given(st.lists(st.tuples(ROLES, TEXT), max_size=6), TEXT, st.sets(st.integers(0, 6)), st.booleans())
def test_spans_lie_in_their_messages_and_have_words(
    turns: list[tuple[str, str]], text: str, named: set[int], is_named: bool
) -> None:
    window = [WindowMessage(f"m{i}", role, START, words) for i, (role, words) in enumerate(turns)]
    aligned = Alignment(window).align(text, named, named=is_named)
    assert set(aligned.positions) <= named
    assert len(aligned.spans) == len(aligned.positions) <= MAX_SPANS
    assert 0 <= aligned.coverage <= 1.000001
    assert is_named or bool(aligned.spans) is (aligned.coverage > 0)
    for span, position in zip(aligned.spans, aligned.positions, strict=True):
        assert span.message_id == window[position].message_id
        quoted = window[position].text[span.start : span.end]
        assert stems(quoted) & stems(text)
        assert quoted == quoted.strip()
