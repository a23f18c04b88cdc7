"""The extractive observer: within its budget, in the words that were said, the same every time."""

from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.observations.evaluation import invented_times, missing_evidence
from memory_pipeline.observations.quotes.observer import MIN_BUDGET, SHORT_SHARE, ExtractiveObserver, narrative
from memory_pipeline.observations.types import Fact, Segment, WindowMessage, WindowTimes
from memory_pipeline.text.sentences import squeeze
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.growth import takes_evenly

START = datetime(2025, 3, 5, 9, tzinfo=UTC)


def talk(*turns: str) -> list[WindowMessage]:
    """Messages a minute apart, each as `role: text`."""
    parts = [turn.split(": ", 1) for turn in turns]
    return [WindowMessage(f"m{i}", role, START + timedelta(minutes=i), text) for i, (role, text) in enumerate(parts)]


def observe(messages: list[WindowMessage], budget: float = 0.10) -> list[Segment]:
    return ExtractiveObserver(budget).observe(messages)


def facts(messages: list[WindowMessage], budget: float = 0.10) -> list[Fact]:
    return [fact for segment in observe(messages, budget) for fact in segment.facts]


def token_budget(messages: list[WindowMessage], budget: float) -> float:
    """The tokens that a window's facts may take, reckoned from the two rules."""
    said = sum(estimate(m.text) for m in messages if m.role in ("user", "assistant"))
    return max(budget * said, min(MIN_BUDGET, SHORT_SHARE * said))


WORDS = "river stone cloud maple amber cobalt falcon harbor ember velvet marble canyon".split()  # noqa: SIM905
RULES = [
    f"user: Never mix {one}{other} with {other}-{one}.{n}, because it breaks {one}_{n}."
    for n, (one, other) in enumerate(product(WORDS, WORDS))
    if one != other
]
"""132 rules of about 16 tokens that have little in common."""
REPORTS = [rule.replace("Never mix", "It broke when we mixed") for rule in RULES]
"""As many that lay nothing down, and are kept within the budget."""


@each("budget", [0.02, 0.10, 0.5])
def test_the_budget_is_kept_and_used(budget: float) -> None:
    messages = talk(*REPORTS)
    tokens = sum(estimate(f.text) for f in facts(messages, budget))
    assert tokens <= token_budget(messages, budget)
    assert tokens > 0.9 * token_budget(messages, budget)


def test_a_short_window_may_use_more_of_its_words() -> None:
    """A tenth of ten sentences would be one sentence."""
    messages = talk(*REPORTS[:10])
    said = sum(estimate(m.text) for m in messages)
    tokens = sum(estimate(f.text) for f in facts(messages))
    assert 0.1 * said < tokens <= SHORT_SHARE * said


@pytest.mark.slow
def test_a_long_window_of_the_same_words_again_and_again_grows_evenly() -> None:
    """Of the same few words: everything resembles everything, and still no pair of units is compared."""
    words = [f"{one}{other}" for one in WORDS for other in WORDS]
    turns = [
        f"{'user' if i % 2 else 'assistant'}: "
        + " ".join(f"{' '.join(words[(i * j) % 97 + j :][:12])}." for j in range(6))
        for i in range(1200)
    ]
    messages = talk(*turns)
    takes_evenly(lambda: observe(messages[:300]), lambda: observe(messages))


def test_what_tools_say_buys_no_room() -> None:
    few = talk(*RULES[:10])
    assert facts(few) == facts([*few, *talk("tool: " + "x " * 50_000)[:1]])


def test_a_rule_is_not_given_up_for_remarks_that_cost_less() -> None:
    remarks = [f"user: the staging host number {n} is quite slow today" for n in range(40)]
    found = facts(talk(*remarks, RULES[0], *remarks), budget=0.02)
    assert RULES[0].removeprefix("user: ") in [f.text for f in found]


@each("count", [2, 5, 60])
def test_what_is_laid_down_is_high_and_kept_whatever_the_budget(count: int) -> None:
    found = facts(talk(*REPORTS[60:90], *RULES[:count]), 0.02)
    assert [f.text for f in found if f.priority == "high"] == [rule.removeprefix("user: ") for rule in RULES[:count]]


def test_a_fact_tells_who_said_it_when_and_where() -> None:
    said = talk("user: ok. Never use npm here. Run the tests.", "assistant: Done.", *RULES[:3])
    first = facts(said, 0.5)[0]
    assert (first.text, first.priority, first.kind, first.trust) == ("Never use npm here.", "high", "rule", "user")
    assert first.observed_at == START
    assert [(s.message_id, s.start, s.end) for s in first.evidence] == [("m0", 4, 23)]


def test_segments_cover_every_message_in_order() -> None:
    said = talk(*RULES[:10], *["assistant: colours and margins of the buttons"] * 60, *RULES[:10])
    segments = observe(said)
    ids = [m.message_id for m in said]
    places = [(ids.index(s.first_message_id), ids.index(s.last_message_id)) for s in segments]
    assert len(places) > 1
    assert [i for first, last in places for i in range(first, last + 1)] == list(range(len(said)))


def test_a_fact_lies_in_the_segment_of_its_message() -> None:
    said = talk(*RULES[:12], *["assistant: colours and margins of the buttons"] * 60, *RULES[12:20])
    ids = [m.message_id for m in said]
    for segment in observe(said):
        within = ids[ids.index(segment.first_message_id) : ids.index(segment.last_message_id) + 1]
        assert {span.message_id for fact in segment.facts for span in fact.evidence} <= set(within)


@each(
    ("turns", "told"),
    [
        (
            ["user: Why is the queue slow?", "assistant: The index was missing on the table. It is there now."],
            "Asked: Why is the queue slow? Ended with: The index was missing on the table.",
        ),
        (
            [
                "user: Why is the queue slow?",
                "assistant: I added the missing index to the orders table.",
                "assistant: The queue is empty within a second.",
            ],
            "Asked: Why is the queue slow? Done: I added the missing index to the orders table. "
            "Ended with: The queue is empty within a second.",
        ),
        (
            ["user: make the queue fast", "assistant: The queue is empty within a second."],
            "Asked: make the queue fast. Ended with: The queue is empty within a second.",
        ),
        (["user: ok", "tool: Listing 42 files of the repository."], "Only tools and injected text."),
        (["injected: You are a careful agent. Never use npm."], "Only tools and injected text."),
        (["user: ok", "user: **Fix** the\nqueue now"], "Asked: Fix the queue now"),  # the first that asks something
    ],
)
def test_the_narrative_says_what_was_asked_and_how_it_ended(turns: list[str], told: str) -> None:
    assert narrative(talk(*turns)) == told


WORDS_SAID = "never always must use npm pip because no, ok the root cause was don't we I prefer 永远不要 für 12:30 9:05"
PIECES = st.sampled_from(
    [
        *WORDS_SAID.split(),
        *"-*#|?！。👍",
        "1**2:30",
        "**bold**",
        "`code`",
        "```",
        "1️⃣",
        "\u200b",
        " ",
        "\n",
        "\n\n",
        "...",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=80).map(" ".join), st.lists(PIECES).map("".join))
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "injected"]), TEXTS), max_size=12)


@settings(max_examples=times(3))
@given(MESSAGES, st.sampled_from([0.02, 0.1, 0.5]))
def test_whatever_is_said(turns: list[tuple[str, str]], budget: float) -> None:
    """No crash, every span is in its message, the budget holds, every time was said, and twice gives the same."""
    said = [WindowMessage(f"m{i}", role, START + timedelta(minutes=i), text) for i, (role, text) in enumerate(turns)]
    texts = {m.message_id: m.text for m in said}
    recorded = WindowTimes.from_messages([(m.said_at, m.untimed, m.text) for m in said], ZoneInfo("UTC"))
    segments = observe(said, budget)
    found = [fact for segment in segments for fact in segment.facts]
    for fact in found:
        row = {"text": fact.text, "observed_at": fact.observed_at, "observer": "extractive-4-lexical", "untimed": None}
        row["evidence"] = [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence]
        assert missing_evidence(row, texts) is None
        assert invented_times(row, recorded) == []
        assert fact.text == squeeze(fact.text)
    assert sum(estimate(f.text) for f in found if f.priority != "high") <= token_budget(said, budget)
    assert [s.first_message_id for s in segments][:1] == [m.message_id for m in said][:1]
    assert observe(said, budget) == segments
