"""Rows from an answer in the format are not replaced by those of a later answer that is not."""

from __future__ import annotations

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


def test_of_a_continued_window_the_rows_of_its_new_messages_are_compared() -> None:
    """m0 to m2 keep their rows; m3 and m4 were requested again."""
    before = answered("old", (0, 2, False), (3, 4, True))
    kept = better(answered("new", (3, 4, False)), before, IDS[:5], 3)
    assert told(kept) == [("old", "m3", "m4", ["old 3", "old 4", "old 3-4"])]
    assert [s["position"] for s in kept.segments] == [0]


@each(
    "ids",
    [
        IDS[:8],  # the session continued
        [m for m in IDS[:5] if m != "m3"],  # a turn was withdrawn
        [m for m in IDS[:5] if m != "m4"],
    ],
)
def test_rows_of_other_messages_are_not_kept(ids: list[str]) -> None:
    found = answered("new", (0, len(ids) - 1, False))
    assert better(found, GOOD, ids) is found
