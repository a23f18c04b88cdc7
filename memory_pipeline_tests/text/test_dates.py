"""The day that a text speaks of: written out, or counted from the day on which it was said, and else none."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.dates import DATE, day_spoken_of
from memory_pipeline_tests.cases import each

WEDNESDAY = date(2025, 3, 5)


@each(
    ("text", "day"),
    [
        ("released on 2025-02-28", date(2025, 2, 28)),
        ("from 2025-02-28 to 2025-03-02", date(2025, 2, 28)),  # the first one
        ("(2025-02-28)", date(2025, 2, 28)),
        ("at 2025-02-28T10:00:00Z", date(2025, 2, 28)),
        ("2025-02-29 does not exist, 2025-03-01 does", date(2025, 3, 1)),
        ("2025-13-01", None),
        ("call 12025-02-28", None),  # part of a longer number
        ("build-2025-02-28", None),  # part of a name
        ("2025-02-280", None),
        ("1999-02-28", None),
    ],
)
def test_a_day_that_is_written_out(text: str, day: date | None) -> None:
    assert day_spoken_of(text, WEDNESDAY) == day


@each(
    ("text", "days"),
    [
        ("it broke yesterday", -1),
        ("Tomorrow the key expires", 1),
        ("the day before yesterday", -2),
        ("day before yesterday it still worked", -2),
        ("the day after tomorrow", 2),
        ("3 days ago", -3),
        ("a week ago", -7),
        ("two weeks ago", -14),
        ("10 days from now", 10),
        ("in 2 weeks", 14),
        ("in three days", 3),
        ("0 days ago", 0),
        ("by Friday", 2),
        ("until wednesday", 0),  # said on a Wednesday: that very day
        ("before Tuesday", 6),
        ("last Wednesday", -7),  # not that very day
        ("last Monday", -2),
        ("last Friday", -5),
    ],
)
def test_a_day_that_is_counted_from_the_day_on_which_it_was_said(text: str, days: int) -> None:
    assert day_spoken_of(text, WEDNESDAY) == WEDNESDAY + timedelta(days)


@each(
    "text",
    [
        "",
        "soon",
        "next Friday",  # of this week or of the next: nobody knows
        "on Friday",
        "in a while",
        "within 3 days of the release",  # counted from another day
        "in 3 days of work",
        "3 hours ago",
        "days ago",
        "the yesterdays of this project",
        "gestern",
    ],
)
def test_what_is_not_certain_is_no_day(text: str) -> None:
    assert day_spoken_of(text, WEDNESDAY) is None


def test_what_is_written_out_is_meant_wherever_it_stands() -> None:
    assert day_spoken_of("by Friday (meaning 2025-03-14)", WEDNESDAY) == date(2025, 3, 14)
    assert day_spoken_of("2025-03-14, not tomorrow", WEDNESDAY) == date(2025, 3, 14)


def test_of_several_counted_days_the_first_one_is_meant() -> None:
    assert day_spoken_of("it worked yesterday and must again by Friday", WEDNESDAY) == date(2025, 3, 4)


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)), st.text(alphabet="a 1-:.", max_size=5))
def test_every_date_is_found_as_it_is_written(day: date, after: str) -> None:
    text = f"on {day}{after}"
    expected = None if after[:1] == "1" or after[:1] == "-" else day
    assert day_spoken_of(text, WEDNESDAY) == expected
    assert bool(DATE.search(text)) is (expected is not None)


@given(st.text(), st.dates(date(2000, 1, 1), date(2099, 1, 1)))
def test_any_text_has_a_day_or_none(text: str, said_on: date) -> None:
    found = day_spoken_of(text, said_on)
    assert found is None or type(found) is date
