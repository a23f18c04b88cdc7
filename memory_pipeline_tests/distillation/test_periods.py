"""Days, weeks and months: which end with a day, and what each is made of."""

from datetime import date, timedelta
from typing import Any

from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, WEEK, Period, consecutive, periods_of
from memory_pipeline_tests.cases import each

MONDAY = date(2025, 3, 3)
TWO_YEARS = [date(2024, 1, 1) + timedelta(days=n) for n in range(731)]


@each(
    ("day", "week", "month"),
    [
        (date(2025, 3, 5), date(2025, 3, 9), date(2025, 3, 31)),
        (date(2025, 3, 9), date(2025, 3, 9), date(2025, 3, 31)),  # a Sunday
        (date(2025, 3, 31), date(2025, 4, 6), date(2025, 4, 30)),  # a Monday
        (date(2025, 8, 31), date(2025, 8, 31), date(2025, 8, 31)),  # a Sunday
        (date(2024, 2, 25), date(2024, 2, 25), date(2024, 2, 29)),
        (date(2024, 2, 29), date(2024, 3, 3), date(2024, 3, 31)),
    ],
)
def test_the_last_days_of_the_periods_that_a_day_is_in(day: date, week: date, month: date) -> None:
    assert [Period.containing(day, level) for level in LEVELS] == [
        Period(DAY, day),
        Period(WEEK, week),
        Period(MONTH, month),
    ]


def test_a_partition_is_named_by_the_first_day_of_the_calendars_week_or_month() -> None:
    """The month of which 30 March is the last day that counts has the partition of 1 March, though 24 February is its
    first such day."""
    assert [Period.containing(date(2025, 3, 26), level).key for level in LEVELS] == [
        date(2025, 3, 26),
        date(2025, 3, 24),
        date(2025, 3, 1),
    ]
    for level in LEVELS:
        for period in periods_of(level, TWO_YEARS):
            assert Period.from_key(level, period.key) == period


def test_periods_between_which_some_are_missing_are_in_groups_of_their_own() -> None:
    for level in LEVELS:
        first, second, third, *_, last = periods_of(level, TWO_YEARS)
        assert first.next == second
        assert consecutive([last, third, second, first]) == [[first, second, third], [last]]
        assert consecutive([]) == []


def test_a_week_is_made_of_its_seven_days() -> None:
    week = Period(WEEK, date(2025, 3, 2))
    assert week.days == [date(2025, 2, 24) + timedelta(days=n) for n in range(7)]
    assert week.parts == [Period(DAY, day) for day in week.days]


def test_a_month_is_made_of_the_weeks_that_end_in_it() -> None:
    """The last day of March 2025 is a Monday: it is the first of a week that belongs to April."""
    march, april = Period(MONTH, date(2025, 3, 31)), Period(MONTH, date(2025, 4, 30))
    assert [part.last.day for part in march.parts] == [2, 9, 16, 23, 30]
    assert (march.days[0], march.days[-1]) == (date(2025, 2, 24), date(2025, 3, 30))
    assert (april.days[0], april.days[-1]) == (date(2025, 3, 31), date(2025, 4, 27))


def test_every_day_is_in_one_week_and_one_month() -> None:
    for level in LEVELS:
        found = [day for period in periods_of(level, TWO_YEARS) for day in period.days]
        assert len(found) == len(set(found))
        assert set(TWO_YEARS) <= set(found)
        assert all(day in Period.containing(day, level).days for day in TWO_YEARS)


def test_the_periods_of_some_days_end_by_the_newest() -> None:
    sunday, month_end = MONDAY + timedelta(days=6), date(2025, 3, 31)
    next_monday, next_sunday = MONDAY + timedelta(days=7), MONDAY + timedelta(days=13)

    def last_days(level: int, *arguments: Any) -> list[date]:
        return [period.last for period in periods_of(level, *arguments)]

    assert last_days(DAY, [MONDAY], sunday - timedelta(days=1)) == [MONDAY]
    assert last_days(WEEK, [MONDAY], sunday - timedelta(days=1)) == []
    assert last_days(WEEK, [next_monday, MONDAY, sunday], month_end) == [sunday, next_sunday]
    assert last_days(MONTH, [next_monday, MONDAY], month_end) == [month_end]
    assert last_days(DAY, [MONDAY], MONDAY - timedelta(days=1)) == []


def test_a_period_says_what_it_is() -> None:
    assert f"{Period(WEEK, date(2025, 3, 9))}" == "the week that ends on 2025-03-09"
