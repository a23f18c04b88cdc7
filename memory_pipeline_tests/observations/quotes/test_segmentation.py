"""Where a conversation turns to another topic."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from memory_pipeline.observations.quotes.segmentation import GAP, MAX_WINDOW, MIN_MESSAGES, segment_starts
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
QUEUE = "the redis queue drops jobs of the worker"
STYLE = "button colours and margins in the stylesheet"


def talk(texts: Iterable[str], roles: str = "ua", minutes: Iterable[int] = ()) -> list[WindowMessage]:
    """Messages a minute apart, roles in turn; `minutes` are pauses before the messages."""
    names = {"u": "user", "a": "assistant", "t": "tool"}
    pauses = list(minutes)
    said, now = [], START
    for i, text in enumerate(texts):
        now += timedelta(minutes=pauses[i] if i < len(pauses) else 1)
        said.append(WindowMessage(f"m{i}", names[roles[i % len(roles)]], now, text))
    return said


def test_a_short_talk_on_one_thing_is_one_segment() -> None:
    assert segment_starts(talk([QUEUE] * 9)) == [0]


def test_other_words_begin_another_segment() -> None:
    assert segment_starts(talk([QUEUE] * 12 + [STYLE] * 12)) == [0, 12]


def test_a_segment_begins_with_the_person() -> None:
    """The model alone turning to other words is no new topic: the person has not gone along."""
    assert segment_starts(talk([QUEUE] * 12 + [STYLE] * 12, roles="au")) == [0]


def test_a_change_of_words_within_the_first_ten_messages_is_no_new_topic() -> None:
    starts = segment_starts(talk([QUEUE] * 4 + [STYLE] * 30))
    assert all(b - a >= MIN_MESSAGES for a, b in pairwise(starts))


@each(
    ("pause", "starts"),
    [
        (30, [0, 4]),  # half an hour is a break, however little was said before it
        (29, [0]),
    ],
)
def test_a_pause_begins_another_segment(pause: int, starts: list[int]) -> None:
    assert timedelta(minutes=30) == GAP
    assert segment_starts(talk([QUEUE] * 8, minutes=[0, 1, 1, 1, pause])) == starts


def test_a_pause_of_the_model_is_just_a_long_command() -> None:
    assert segment_starts(talk([QUEUE] * 8, minutes=[0, 1, 1, 60])) == [0]


def test_a_segment_that_grows_too_long_is_cut_whoever_speaks() -> None:
    assert segment_starts(talk([QUEUE] * 220, roles="a")) == [0, MAX_WINDOW, 2 * MAX_WINDOW]


def test_a_long_segment_ends_where_the_person_speaks_next() -> None:
    roles = "u" + "a" * 55 + "u" + "a" * 9
    assert segment_starts(talk([QUEUE] * 66, roles=roles)) == [0, 56]


@each(
    ("role", "text"),
    [
        ("t", "bash: git commit -m 'Retry the queue'"),
        ("t", "== 42 passed in 3.10s =="),
        ("a", "I committed the change to the redis queue."),
        ("a", "All tests pass, the redis queue drops no job."),
    ],
)
def test_something_finished_ends_a_topic_when_the_person_goes_on(role: str, text: str) -> None:
    said = talk([QUEUE] * 5 + [text] + [QUEUE] * 3, roles="uaaaa" + role + "uaa")
    assert segment_starts(said) == [0, 6]


def test_the_person_turns_to_the_next_thing() -> None:
    said = talk([QUEUE] * 5 + ["ok, now let's look at the redis queue of the worker", QUEUE], roles="uaaaaua")
    assert segment_starts(said) == [0, 5]


@each("text", ["ok", "yes, go ahead with the redis queue", "sounds good"])
def test_consent_opens_no_topic(text: str) -> None:
    said = talk([QUEUE] * 5 + ["I committed it.", text, QUEUE], roles="uaaaaaua")
    assert segment_starts(said) == [0]


def test_a_test_that_failed_finishes_nothing() -> None:
    said = talk([QUEUE] * 5 + ["0 passed, 3 failed", QUEUE, QUEUE], roles="uaaaatua")
    assert segment_starts(said) == [0]


def test_words_of_tools_are_no_topic() -> None:
    """A log between two questions about the same thing does not cut them apart."""
    texts = [QUEUE, "zzz yyy xxx www"] * 12
    assert segment_starts(talk(texts, roles="ut")) == [0]
