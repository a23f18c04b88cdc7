"""Local calendar days: the unit of everything. A day has 23, 24 or 25 hours."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo


def day_of(moment: datetime, zone: ZoneInfo) -> date:
    """The local calendar day of an aware moment."""
    return moment.astimezone(zone).date()


def today(zone: ZoneInfo) -> date:
    return day_of(datetime.now(UTC), zone)


def lookback(day: date, days: int) -> list[date]:
    """The `days` days that end with `day`, oldest first."""
    return [day - timedelta(days=back) for back in range(days - 1, -1, -1)]


def days_named(paths: Iterable[Path]) -> list[date]:
    """The days that these files are named after, oldest first; other names are left out."""
    found = set()
    for path in paths:
        with suppress(ValueError):
            found.add(date.fromisoformat(path.stem))
    return sorted(found)


def parse_day(text: str) -> date:
    """A day as written by a user; raises ValueError with a sentence that says what was expected."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a day; write it as YYYY-MM-DD.") from None


def date_ranges(days: Iterable[date]) -> list[tuple[date, date]]:
    """The ranges of consecutive days, each as its first and last day."""
    found: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if found and (day - found[-1][1]).days == 1:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found
