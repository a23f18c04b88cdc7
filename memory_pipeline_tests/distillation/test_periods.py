"""Days, weeks and months: which end with a day, and what each is made of."""

from datetime import date, timedelta

import pytest

from memory_pipeline.distillation.periods import (
    DAY,
    MONTH,
    WEEK,
    Period,
    ending_with,
    last_days_touched_by,
)

TWO_YEARS = [date(2024, 1, 1) + timedelta(days=n) for n in range(731)]


@pytest.mark.parametrize(
    ("day", "levels"),
    [
        (date(2025, 3, 5), [DAY]),
        (date(2025, 3, 9), [DAY, WEEK]),  # a Sunday
        (date(2025, 3, 31), [DAY, MONTH]),  # a Monday
        (date(2025, 8, 31), [DAY, WEEK, MONTH]),  # a Sunday
        (date(2024, 2, 28), [DAY]),
        (date(2024, 2, 29), [DAY, MONTH]),
    ],
)
def test_the_periods_that_end_with_a_day(day: date, levels: list[int]) -> None:
    assert ending_with(day) == [Period(level, day) for level in levels]


def test_a_week_is_made_of_its_seven_days() -> None:
    week = Period(WEEK, date(2025, 3, 2))
    assert week.days == [date(2025, 2, 24) + timedelta(days=n) for n in range(7)]
    assert week.parts == [Period(DAY, day) for day in week.days]


def test_a_week_counts_the_words_of_the_week_before_too() -> None:
    assert Period(WEEK, date(2025, 3, 9)).counted_days == [date(2025, 2, 24) + timedelta(days=n) for n in range(14)]
    for period in (Period(DAY, date(2025, 3, 9)), Period(MONTH, date(2025, 3, 31))):
        assert period.counted_days == period.days


def test_a_month_is_made_of_the_weeks_that_end_in_it() -> None:
    """The last day of March 2025 is a Monday: it is the first of a week that belongs to April."""
    march, april = Period(MONTH, date(2025, 3, 31)), Period(MONTH, date(2025, 4, 30))
    assert [part.last.day for part in march.parts] == [2, 9, 16, 23, 30]
    assert (march.days[0], march.days[-1]) == (date(2025, 2, 24), date(2025, 3, 30))
    assert (april.days[0], april.days[-1]) == (date(2025, 3, 31), date(2025, 4, 27))


def test_every_day_is_in_one_week_and_one_month() -> None:
    weeks = [day for last in TWO_YEARS for p in ending_with(last) if p.level == WEEK for day in p.days]
    months = [day for last in TWO_YEARS for p in ending_with(last) if p.level == MONTH for day in p.days]
    for found in (weeks, months):
        assert len(found) == len(set(found))
        assert set(TWO_YEARS[:-31]) <= set(found)


def test_the_last_days_touched_by_a_day_are_those_of_the_periods_that_have_it() -> None:
    periods = [p for day in [*TWO_YEARS, date(2026, 1, 31)] for p in ending_with(day)]
    for day in TWO_YEARS[:-31:7] + TWO_YEARS[5:-31:11]:
        assert last_days_touched_by(day) == sorted({p.last for p in periods if day in p.days})


def test_a_period_says_what_it_is() -> None:
    assert f"{Period(WEEK, date(2025, 3, 9))}" == "the week that ends on 2025-03-09"
