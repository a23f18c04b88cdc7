"""What a model gave in the format is not lost to a later answer that is not; a session that went on is added to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.observations.rows import Rows, better, rows_of
from memory_pipeline.observations.types import EvidenceSpan, Segment
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.observations.talking import LONDON, fact
from memory_pipeline_tests.rows import DAY

WINDOW = {"day": DAY, "dedupe_key": "w1", "session_id": "s1"}
IDS = [f"m{n}" for n in range(10)]


def answered(name: str, *parts: tuple[int, int, bool], answer: str | None = "a") -> Rows:
    """Rows of an answer with these segments: first and last message, and whether they are in the format.

    Each has a fact for each of its messages, `name 3` for m3, and one that nothing carries, `name 0-3`.
    """
    segments = []
    for first, last, is_parsed in parts:
        facts = [fact(f"{name} {n}", "medium", EvidenceSpan(f"m{n}", 0, 1)) for n in range(first, last + 1)]
        loose = fact(f"{name} {first}-{last}", "low", flags=("ungrounded",))
        segments.append(
            Segment(name, f"m{first}", f"m{last}", (*facts, loose), parsed=is_parsed, answer=answer and name)
        )
    return rows_of(WINDOW, segments, f"openai:gpt#{name}", LONDON)


def told(rows: Rows) -> list[tuple[str, str, str, list[str]]]:
    """Of each segment its narrative, first and last message and facts."""
    return [
        (
            *(s["narrative"], s["first_message_id"], s["last_message_id"]),
            [o["text"] for o in rows.observations if o["segment_id"] == s["segment_id"]],
        )
        for s in rows.segments
    ]


GOOD = answered("old", (0, 1, True), (2, 4, True))


@each(
    "before",
    [
        Rows(),  # nothing
        answered("old", (0, 4, False)),  # as bad
        answered("old", (0, 4, True), answer=None),  # by the extractive observer, which needs no format
    ],
)
def test_without_better_rows_what_is_found_now_counts(before: Rows) -> None:
    found = answered("new", (0, 4, False))
    assert told(better(found, before, IDS[:5])) == told(found)


def test_an_answer_in_the_format_replaces_all_before() -> None:
    found = answered("new", (0, 4, True))
    assert better(found, GOOD, IDS[:5]) is found
    nothing = answered("new", (0, 4, True))
    nothing.observations.clear()  # nothing worth keeping is an answer too
    assert better(nothing, GOOD, IDS[:5]).observations == []
    extractive = answered("new", (0, 4, True), answer=None)
    assert better(extractive, GOOD, IDS[:5]) is extractive  # a person went back to it


def test_a_worse_answer_never_replaces_a_better_one() -> None:
    kept = better(answered("new", (0, 4, False)), GOOD, IDS[:5])
    assert (kept.segments, kept.observations) == (GOOD.segments, GOOD.observations)


def test_a_session_that_went_on_keeps_the_old_rows_and_adds_the_new_ones() -> None:
    kept = better(answered("new", (0, 4, False), (5, 7, False)), GOOD, IDS[:8])
    assert told(kept) == [*told(GOOD), ("new", "m5", "m7", ["new 5", "new 6", "new 7", "new 5-7"])]
    assert [s["position"] for s in kept.segments] == [0, 1, 2]


def test_of_a_segment_that_reaches_over_the_old_ones_the_rest_is_added() -> None:
    found = answered("new", (0, 7, False))
    kept = better(found, GOOD, IDS[:8])
    assert told(kept) == [*told(GOOD), ("new", "m5", "m7", ["new 5", "new 6", "new 7"])]
    assert found.segments[0]["segment_id"] == GOOD.segments[0]["segment_id"] != kept.segments[2]["segment_id"]


def test_of_a_new_end_whose_facts_stand_on_earlier_messages_too_nothing_is_lost_or_moved() -> None:
    """Asked for were m4 to m7, and m3 was shown with them."""
    found = answered("new", (4, 5, True), (6, 7, False))
    for o in found.observations:
        if o["text"] in ("new 4", "new 6"):
            o["evidence"] = [{"message_id": "m3", "start": 0, "end": 1}, *o["evidence"]]
    assert told(better(found, Rows(), IDS[:8], 4)) == told(found)
    bad = answered("new", (4, 7, False))
    bad.observations[0]["evidence"] = [{"message_id": "m3", "start": 0, "end": 1}, *bad.observations[0]["evidence"]]
    assert told(better(bad, Rows(), IDS[:8], 4)) == told(bad)


def test_only_what_is_worse_is_replaced_by_what_was() -> None:
    """One part of a window was answered well this time, the other was not."""
    kept = better(answered("new", (0, 2, True), (3, 4, False)), GOOD, IDS[:5])
    assert told(kept) == [
        ("new", "m0", "m2", ["new 0", "new 1", "new 2", "new 0-2"]),
        ("old", "m3", "m4", ["old 3", "old 4"]),
    ]


def test_what_was_added_once_stays_when_the_same_bad_answer_comes_again() -> None:
    found = answered("new", (0, 7, False))
    once = better(found, GOOD, IDS[:8])
    again = better(found, once, IDS[:8])
    assert (again.segments, again.observations) == (once.segments, once.observations)


def test_rows_about_messages_that_are_gone_are_not_kept() -> None:
    """The person took a turn back: what was said in it is no fact any more, and its evidence is not there."""
    found = answered("new", (0, 3, False))
    ids = [m for m in IDS[:5] if m != "m3"]
    found = answered("new", (0, 2, False), (4, 4, False))
    assert told(better(found, GOOD, ids)) == [
        told(GOOD)[0],
        ("new", "m2", "m2", ["new 2"]),
        ("new", "m4", "m4", ["new 4", "new 4-4"]),
    ]


def test_a_fact_with_a_place_in_the_old_and_in_the_new_part_is_there_once() -> None:
    both = fact("It holds.", "medium", EvidenceSpan("m1", 0, 1), EvidenceSpan("m6", 0, 1))
    ends = (Segment("new", "m0", "m1", (both,), answer="a"), Segment("new", "m2", "m7", (both,), parsed=False))
    found = rows_of(WINDOW, ends, "openai:gpt#new", LONDON)
    kept = better(found, GOOD, IDS[:8])
    assert [o["text"] for o in kept.observations].count("It holds.") == 1
    assert_ids(kept)


CUTS = st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4)


def parts(cuts: Sequence[tuple[int, bool]], length: int) -> list[tuple[int, int, bool]]:
    """Segments over so many messages, in the format or not."""
    inner = {place: good for place, good in cuts if place < length}
    starts = sorted({0, *inner})
    return [(a, b - 1, inner.get(a, True)) for a, b in pairwise([*starts, length])]


def is_good(rows: Rows, message: int) -> bool:
    """Whether the segment of the message is in the format."""
    (of,) = (s for s in rows.segments if int(s["first_message_id"][1:]) <= message <= int(s["last_message_id"][1:]))
    return bool(of["parsed"])


@given(CUTS, CUTS, st.integers(1, 10), st.integers(0, 4), st.booleans())
def test_whatever_came_before(
    old: list[tuple[int, bool]], new: list[tuple[int, bool]], length: int, more: int, is_same: bool
) -> None:
    total = min(length + more, 10)
    before = answered("old", *parts(old, length))
    found = answered("old" if is_same else "new", *parts([*new, (total - 1, False)], total))
    kept = better(found, before, IDS[:total])
    places = [(int(s["first_message_id"][1:]), int(s["last_message_id"][1:])) for s in kept.segments]
    assert [n for first, last in places for n in range(first, last + 1)] == list(range(total))  # each message once
    for n in range(total):
        assert is_good(kept, n) is (is_good(found, n) or (n < length and is_good(before, n)))
    assert_ids(kept)
    again = better(found, kept, IDS[:total])
    assert (again.segments, again.observations) == (kept.segments, kept.observations)


def assert_ids(rows: Rows) -> None:
    """Unique, and every observation in a segment."""
    segments = [s["segment_id"] for s in rows.segments]
    observations: list[Any] = [o["observation_id"] for o in rows.observations]
    assert len(set(segments)) == len(segments)
    assert len(set(observations)) == len(observations)
    assert {o["segment_id"] for o in rows.observations} <= set(segments)
    assert [s["position"] for s in rows.segments] == list(range(len(segments)))
