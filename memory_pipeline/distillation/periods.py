"""Periods of distillation: the days, weeks and months that end with a day, and their parts.

A week begins on Monday and ends on Sunday. A month consists of the weeks that end in it, so the days after its last
Sunday belong to the next month: no week is cut, and every week belongs to just one month.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

from memory_pipeline.days import lookback

DAY, WEEK, MONTH = 1, 2, 3
LEVELS = (DAY, WEEK, MONTH)
NAMES = {DAY: "day", WEEK: "week", MONTH: "month"}
TABLE_OF = {level: f"{name}_distillations" for level, name in NAMES.items()}
LEVEL_OF = {table: level for level, table in TABLE_OF.items()}
DAYS_OF_WEEK = 7


@dataclass(frozen=True)
class Period:
    """A day, week or month; `last` is the `day` of its rows."""

    level: int
    last: date

    @classmethod
    def containing(cls, day: date, level: int) -> Self:
        """The period of the level that contains this day."""
        if level == DAY:
            return cls(level, day)
        week = day + timedelta(days=DAYS_OF_WEEK - day.isoweekday())
        return cls(level, week if level == WEEK else end_of_month(week))

    @classmethod
    def from_key(cls, level: int, key: date) -> Self:
        """The period of this partition."""
        return cls(level, end_of_month(key)) if level == MONTH else cls.containing(key, level)

    @property
    def key(self) -> date:
        """The first day of the calendar day, week or month, which is the partition key. For a month it need not be one
        of its `days`."""
        if self.level == MONTH:
            return self.last.replace(day=1)
        return self.days[0]

    @property
    def next(self) -> Period:
        """The period of the same level that follows it."""
        return Period.from_key(self.level, self.last + timedelta(days=1))

    def __str__(self) -> str:
        return f"the {NAMES[self.level]} that ends on {self.last}"

    @property
    def table(self) -> str:
        return TABLE_OF[self.level]

    @property
    def days(self) -> list[date]:
        """The days whose facts belong to the period."""
        if self.level == MONTH:
            return [day for part in self.parts for day in part.days]
        return lookback(self.last, 1 if self.level == DAY else DAYS_OF_WEEK)

    @property
    def parts(self) -> list[Period]:
        """The periods of the level below that make up this one; a day has none."""
        if self.level == DAY:
            return []
        if self.level == WEEK:
            return [Period(DAY, day) for day in self.days]
        month = lookback(self.last, self.last.day)
        return [Period(WEEK, day) for day in month if day.isoweekday() == DAYS_OF_WEEK]


def periods_of(level: int, days: Iterable[date], newest: date = date.max) -> list[Period]:
    """The periods of a level that contain any of these days and end by `newest`, oldest first."""
    found = {Period.containing(day, level) for day in days if day <= newest}
    return sorted((period for period in found if period.last <= newest), key=lambda period: period.last)


def consecutive(periods: Iterable[Period]) -> list[list[Period]]:
    """The periods of one level, oldest first, in groups of consecutive ones."""
    groups: list[list[Period]] = []
    for period in sorted(periods, key=lambda period: period.last):
        if groups and period == groups[-1][-1].next:
            groups[-1].append(period)
        else:
            groups.append([period])
    return groups


def end_of_month(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])
