"""Where a conversation turns to another topic."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import cast

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.quotes.segmentation import (
    ENCODED,
    GAP,
    MAX_WINDOW,
    MIN_MESSAGES,
    message_vectors,
    segment_starts,
)
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.encoder import Encoder
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


ONE, OTHER = (1.0, 0.0), (0.0, 1.0)


class Colours:
    """An encoder with two axes: style, and everything else."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        self.encoded += texts
        return [[0.0, 1.0] if "colour" in text else [1.0, 0.0] for text in texts]


def test_vectors_tell_a_shift_that_words_do_not() -> None:
    said = talk([QUEUE] * 24)
    assert segment_starts(said) == [0]
    assert segment_starts(said, [ONE] * 12 + [OTHER] * 12) == [0, 12]


def test_vectors_tell_that_other_words_are_the_same_topic() -> None:
    said = talk([QUEUE] * 12 + [STYLE] * 12)
    assert segment_starts(said) == [0, 12]
    assert segment_starts(said, [ONE] * 24) == [0]


def test_without_any_vector_only_pauses_and_length_end_a_topic() -> None:
    assert segment_starts(talk([QUEUE] * 12 + [STYLE] * 12), [None] * 24) == [0]


def test_vectors_are_of_the_persons_own_words_and_the_models() -> None:
    said = [
        WindowMessage("m0", "user", START, "look: zzz", quoted=((6, 9),)),
        WindowMessage("m1", "tool", START, "a log"),
        WindowMessage("m2", "injected", START, "a reminder"),
        WindowMessage("m3", "assistant", START, "x" * (ENCODED + 1)),
        WindowMessage("m4", "user", START, "zzz", quoted=((0, 3),)),
        WindowMessage("m5", "user", START, "which colour?"),
    ]
    encoder = Colours()
    vectors = message_vectors(said, cast(Encoder, encoder))
    assert vectors == [[1.0, 0.0], None, None, [1.0, 0.0], None, [0.0, 1.0]]
    assert encoder.encoded == ["look:", "x" * ENCODED, "which colour?"]


def test_the_observer_with_an_encoder_cuts_by_vectors() -> None:
    texts = ["the redis queue drops jobs"] * 12 + ["the redis queue drops colour jobs"] * 12
    encoded = ExtractiveObserver(encoder=cast(Encoder, Colours()))
    starts = [[s.first_message_id for s in o.observe(talk(texts))] for o in (ExtractiveObserver(), encoded)]
    assert starts == [["m0"], ["m0", "m12"]]
