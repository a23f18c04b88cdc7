"""One or two plain sentences that name lines, not counts alone."""

from memory_pipeline.proposals.summary import MAX_LINE, plain_summary


def test_what_is_new_and_what_was_said_again_is_named() -> None:
    assert plain_summary(["Use uv."], [], ["Use uv."]) == "New: “Use uv.”."
    assert plain_summary(["A", "B", "C", "D"], ["E", "F"], []) == "New: “A”, “B” and 2 more. Said again: “E” and “F”."


def test_where_nothing_is_new_what_mattered_most_is_named() -> None:
    assert plain_summary([], [], ["A", "B"]) == "Nothing new was offered; what mattered most: “A” and “B”."
    assert plain_summary([], [], []) == "Nothing was offered."


def test_a_long_line_is_cut_at_a_word() -> None:
    told = plain_summary(["parcel " * 100], [], [])
    assert told.endswith("parcel…”.") and len(told) < MAX_LINE + 10
