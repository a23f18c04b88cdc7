"""Active and ended patterns, read from the rows of `friction_clusters`, the reasons why there are none, and the check
of their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import FrictionRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

KINDS = {
    "repeated_correction": "repeated correction",
    "recurring_failure": "recurring failure",
    "tool_misuse": "tool misuse",
    "configuration_drift": "configuration drift",
    "missing_skill": "missing skill",
    "stale_memory": "stale memory",
    "rule_violated": "rule exists, still violated",
}
"""The stored kinds of patterns, and their names for users."""
_BARS = "▁▂▃▄▅▆▇█"
MAX_WEEKS = 12
"""Number of latest weeks for which counts are shown."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A friction pattern, described by its newest row."""

    row: FrictionRow
    ended_on: date | None
    """The day on which the pattern ended; None while it is active. If no row closes it, the day on which the lookback
    passed without an event."""

    @property
    def kind(self) -> str:
        """The name of the kind for users."""
        return KINDS.get(self.row["kind"], self.row["kind"].replace("_", " "))

    @property
    def first_day(self) -> date:
        return self.row["first_day"] or self.row["day"]

    @property
    def last_day(self) -> date:
        """The day of the last event."""
        return self.row["last_day"] or self.row["day"]

    def weeks(self, until: date) -> list[tuple[date, int]]:
        """The Mondays of the last weeks of the pattern with the number of events in each, including weeks without
        one."""
        counted = {week["week"]: week["occurrences"] for week in self.row["by_week"] or ()}
        if not counted:
            return []
        last = self.ended_on or until
        end = max(*counted, last - timedelta(days=last.weekday()))
        first = max(min(counted), end - timedelta(weeks=MAX_WEEKS - 1))
        weeks = (first + timedelta(weeks=n) for n in range((end - first).days // 7 + 1))
        return [(week, counted.get(week, 0)) for week in weeks]


def last_day_looked_at(lake: Lake) -> date | None:
    """The newest day that was searched for friction; None before the first one."""
    return next(reversed(lake.days("friction_clusters")), None)


def active_patterns(lake: Lake, day: date, lookback_days: int) -> list[Pattern]:
    """The patterns that had not ended on this day, most severe first."""
    rows = typed_rows(lake.read("friction_clusters", lookback(day, lookback_days)), FrictionRow)
    return [pattern for pattern in patterns_on(day, rows, lookback_days) if pattern.ended_on is None]


def ended(lake: Lake, day: date, lookback_days: int) -> list[Pattern]:
    """The patterns that had ended by this day, latest end first."""
    days = [one for one in lake.days("friction_clusters") if one <= day]
    rows = typed_rows(lake.read("friction_clusters", days), FrictionRow)
    over = [(p.ended_on, p) for p in patterns_on(day, rows, lookback_days) if p.ended_on is not None]
    return [pattern for _, pattern in sorted(over, key=lambda each: each[0], reverse=True)]


def why_none(workspace: Workspace, day: date | None = None) -> str:
    """The reason why no pattern is active, in one sentence: on the day, or on the newest day that was searched."""
    last = last_day_looked_at(workspace.lake)
    if last is None:
        return "No day has been searched yet; `memory run` does that."
    if day is not None and day not in workspace.lake.days("friction_clusters"):
        return f"{day} has not been searched yet; `memory run` does that."
    days = lookback(day or last, workspace.settings.lookback_days)
    looked_at, needed = f"in the last {len(days)} days (to {day or last})", workspace.settings.friction_min_points
    points = points_in(workspace.lake, days)
    if points < needed:
        return f"Not enough yet: {points} of {needed} indexed texts {looked_at}."
    return f"Nothing recurs {looked_at}."


def sparkline(counts: Iterable[int]) -> str:
    """A bar for each number, scaled to the greatest."""
    numbers = list(counts)
    most = max(numbers, default=0)
    return "".join(_BARS[round(number / most * (len(_BARS) - 1))] if most else _BARS[0] for number in numbers)


def points_in(lake: Lake, days: Sequence[date]) -> int:
    """The number of observations and messages of users in these days, before they are in the index."""
    messages = lake.read("messages", days, ["role", "voided"])
    said = messages.filter((pl.col("role") == "user") & ~pl.col("voided").fill_null(False))
    return lake.read("observations", days, ["day"]).height + said.height


def patterns_on(day: date, rows: Iterable[FrictionRow], lookback_days: int) -> list[Pattern]:
    """The patterns of these rows in their state on the day, most severe first."""
    newest: dict[str, FrictionRow] = {}
    for row in rows:
        if (old := newest.get(row["pattern_id"])) is None or old["day"] < row["day"]:
            newest[row["pattern_id"]] = row
    found = [Pattern(row, row["ended_on"] or _end_without_row(row, day, lookback_days)) for row in newest.values()]
    return sorted(found, key=lambda pattern: (-pattern.row["severity"], pattern.row["pattern_id"]))


def _end_without_row(row: FrictionRow, day: date, lookback_days: int) -> date | None:
    """The day on which a pattern without a closing row ended: that day was never run, or was run by an older
    version."""
    over = (row["last_day"] or row["day"]) + timedelta(days=lookback_days)
    return over if over <= day else None


def judge_evidence(workspace: Workspace, day: date) -> Verdict:
    """Every evidence span of a pattern of the day lies in a stored message.

    Fails when a message in which a pattern occurred is gone or shorter: rows were changed after they were written.
    """
    lake, days = workspace.lake, lookback(day, workspace.settings.lookback_days)
    lengths: dict[str, int | None] = {}
    for each in days:
        messages = lake.read("messages", [each], ["message_id", "text"])
        whole = not lake.is_retired("messages", each)  # otherwise their texts are no longer stored
        lengths |= {i: len(text) if whole else None for i, text in messages.iter_rows()}
    rows = [row for row in typed_rows(lake.read("friction_clusters", [day]), FrictionRow) if row["ended_on"] is None]
    offenders = [f"{row['pattern_id']}: {why}" for row in rows if (why := _missing(row, lengths))]
    return Verdict(not offenders, {"checked": len(rows)}, offenders, f"{len(rows)} patterns and their occurrences")


def _missing(row: FrictionRow, lengths: Mapping[str, int | None]) -> str | None:
    for span in row["evidence"] or ():
        if span["message_id"] not in lengths:
            return f"message {span['message_id']} does not exist"
        length = lengths[span["message_id"]]
        if length is not None and not 0 <= span["start"] <= span["end"] <= length:
            return f"span {span['start']}-{span['end']} is outside of message {span['message_id']}"
    return None
