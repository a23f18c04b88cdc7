"""A day is a local calendar day: 23 hours in spring, 25 in autumn, 24 else."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_pipeline.days import date_ranges, day_of, lookback, parse_day, today
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import utc

LONDON = ZoneInfo("Europe/London")


@each(
    ("day", "start", "hours"),
    [
        (date(2025, 3, 29), "2025-03-29T00:00", 24),
        (date(2025, 3, 30), "2025-03-30T00:00", 23),  # 01:00 GMT is 02:00 BST
        (date(2025, 3, 31), "2025-03-30T23:00", 24),
        (date(2025, 10, 25), "2025-10-24T23:00", 24),
        (date(2025, 10, 26), "2025-10-25T23:00", 25),  # 02:00 BST is 01:00 GMT
        (date(2025, 10, 27), "2025-10-27T00:00", 24),
    ],
)
def test_london_days_begin_and_end_there_around_both_clock_changes(day: date, start: str, hours: int) -> None:
    first, after, moment = utc(start), utc(start) + timedelta(hours=hours), timedelta(microseconds=1)
    assert [day_of(m, LONDON) for m in (first, after - moment)] == [day, day]
    assert [day_of(m, LONDON) for m in (first - moment, after)] == [day - timedelta(days=1), day + timedelta(days=1)]


def test_the_zone_in_which_a_moment_was_written_does_not_matter() -> None:
    assert day_of(utc("2025-03-31T01:30+05:30"), LONDON) == date(2025, 3, 30)


def test_a_day_whose_midnight_does_not_exist_begins_with_its_first_moment() -> None:
    """In Beirut clocks went from 23:59 to 01:00 on 2025-03-30."""
    beirut, start, moment = ZoneInfo("Asia/Beirut"), utc("2025-03-29T22:00"), timedelta(microseconds=1)
    found = [day_of(m, beirut) for m in (start - moment, start, start + timedelta(hours=23) - moment)]
    assert found == [date(2025, 3, 29), date(2025, 3, 30), date(2025, 3, 30)]
    assert day_of(start + timedelta(hours=23), beirut) == date(2025, 3, 31)


def test_today_is_the_zones_day() -> None:
    """These two zones are 25 hours apart, so they never have the same day."""
    assert today(ZoneInfo("Pacific/Kiritimati")) > today(ZoneInfo("Pacific/Pago_Pago"))


def test_a_lookback_ends_with_its_day_oldest_first() -> None:
    assert lookback(date(2025, 3, 2), 3) == [date(2025, 2, 28), date(2025, 3, 1), date(2025, 3, 2)]
    assert lookback(date(2025, 3, 2), 1) == [date(2025, 3, 2)]


@each("text", ["", "today", "5.3.2025", "2025-02-30", "2025-03-05T10:00"])
def test_what_is_not_a_day_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="is not a day; write it as YYYY-MM-DD") as caught:
        parse_day(text)
    assert repr(text) in str(caught.value)


def march(*days: int) -> list[date]:
    return [date(2025, 3, day) for day in days]


def spans(days: list[date]) -> list[tuple[int, int]]:
    return [(first.day, last.day) for first, last in date_ranges(days)]


@each(
    ("days", "expected"),
    [
        (march(), []),
        (march(5), [(5, 5)]),
        (march(5, 6, 7), [(5, 7)]),
        (march(7, 5, 6, 5), [(5, 7)]),  # any order, twice
        (march(5, 7), [(5, 5), (7, 7)]),  # one day is missing
    ],
)
def test_ranges_of_days(days: list[date], expected: list[tuple[int, int]]) -> None:
    assert spans(days) == expected
