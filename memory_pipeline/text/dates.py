"""Days and times of day that a text mentions."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

DATE = re.compile(r"(?<![\d-])(20\d\d)-([01]\d)-([0-3]\d)(?![\d-])")
"""A day in ISO 8601."""
CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])")
"""A time of day."""
EARLY = 40
"""Number of lines of a session file that count as its beginning: about thirty messages."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RELATIVE = re.compile(
    r"\b(?:(?P<day>yesterday|tomorrow|(?:the )?day (?P<side>before yesterday|after tomorrow))"
    r"|(?P<count>\d{1,3}|an?|two|three|four|five|six|seven) (?P<unit>day|week)s? (?P<ago>ago|from now)"
    r"|in (?P<count2>\d{1,3}|two|three|four|five|six|seven) (?P<unit2>day|week)s?\b(?! of)"
    rf"|(?P<which>last|by|until|before) (?P<weekday>{'|'.join(_WEEKDAYS)}))\b",
    re.I,
)
_NUMBERS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


def day_spoken_of(text: str, said_on: date) -> date | None:
    """The first day that the text mentions, either as a date or relative to the day on which it was said.

    Only unambiguous English expressions: "tomorrow", "three days ago", "by Friday"; not "soon" or "next Friday".
    """
    found = [(match.start(), day) for match in DATE.finditer(text) if (day := _written(match))]
    found += [(match.start(), _counted(match, said_on)) for match in _RELATIVE.finditer(text)]
    # a written date takes precedence, wherever it is: "by Friday (meaning 2026-03-06)"
    written = [day for start, day in sorted(found) if DATE.match(text, start)]
    days = written or [day for _, day in sorted(found)]
    return days[0] if days else None


def instead_of_clock(line: int) -> str:
    """The text that replaces a clock time that was not recorded, by the message's line in the session file.

    It never says "end": that text would change when the session continues, and its messages would be observed again.
    """
    return "early in session" if line <= EARLY else "later in session"


def clock_of(moment: datetime, zone: ZoneInfo, untimed: str | None) -> str:
    """`14:03` in local time, or the replacement text if the time was not recorded."""
    return untimed or f"{moment.astimezone(zone):%H:%M}"


def clock_times(text: str) -> set[str]:
    """Clock times in the text as HH:MM."""
    return {f"{int(hour):02d}:{minute}" for hour, minute in CLOCK.findall(text)}


def _written(match: re.Match[str]) -> date | None:
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def _counted(match: re.Match[str], said_on: date) -> date:
    if match["day"]:
        days = 2 if match["side"] else 1
        return said_on + timedelta(days if match["day"].lower().endswith("tomorrow") else -days)
    if match["weekday"]:
        ahead = (_WEEKDAYS.index(match["weekday"].lower()) - said_on.weekday()) % 7
        if match["which"].lower() == "last":
            return said_on + timedelta(ahead - 7)
        return said_on + timedelta(ahead)
    count = (match["count"] or match["count2"]).lower()
    days = _NUMBERS.get(count) or int(count)
    days *= 7 if (match["unit"] or match["unit2"]).lower() == "week" else 1
    return said_on + timedelta(-days if (match["ago"] or "").lower() == "ago" else days)
