"""Which patterns live on a day, which have ended, and what is said where there is none."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from memory_pipeline.days import lookback
from memory_pipeline.friction.active import active_patterns, ended, last_day_looked_at, points_in, sparkline, why_none
from memory_pipeline.lake.store import Lake
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, day_after, observation, pattern, put, workspace

WEEK = 7
MONDAY = day_after(-DAY.weekday())


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(*workspace(tmp_path))


@pytest.fixture
def lake(work: Workspace) -> Lake:
    return work.lake


def look(lake: Lake, days: int) -> None:
    """Days up to so many after `DAY` on which friction was looked for and nothing found."""
    for day in (day_after(n) for n in range(days + 1)):
        if day not in lake.days("friction_clusters"):
            lake.replace("friction_clusters", lake.read("friction_clusters", [day]), [day])


def ids(patterns: list) -> list[str]:  # type: ignore[type-arg]
    return [p.row["pattern_id"] for p in patterns]


def test_the_newest_row_of_a_pattern_is_what_it_is(lake: Lake) -> None:
    first = pattern(1, "Use uv.")
    put(lake, "friction_clusters", first, first | {"day": day_after(2), "sessions": 5, "last_day": day_after(2)})
    (found,) = active_patterns(lake, day_after(2), WEEK)
    assert (found.row["sessions"], found.last_day) == (5, day_after(2))
    (before,) = active_patterns(lake, day_after(1), WEEK)
    assert before.row["sessions"] == 2


def test_the_most_severe_come_first(lake: Lake) -> None:
    put(lake, "friction_clusters", *(pattern(n, "Use uv.", severity=s) for n, s in ((1, 2.0), (2, 9.0), (3, 9.0))))
    assert ids(active_patterns(lake, DAY, WEEK)) == ["f-20250305-002", "f-20250305-003", "f-20250305-001"]


def test_a_row_with_its_end_closes_the_pattern_and_a_later_one_opens_it_again(lake: Lake) -> None:
    row = pattern(1, "Use uv.")
    put(lake, "friction_clusters", row, row | {"day": day_after(7), "ended_on": day_after(7)})
    assert ids(active_patterns(lake, day_after(6), WEEK)) == ["f-20250305-001"]
    assert active_patterns(lake, day_after(7), WEEK) == []
    (over,) = ended(lake, day_after(9), WEEK)
    assert over.ended_on == day_after(7)
    put(lake, "friction_clusters", row | {"day": day_after(9), "last_day": day_after(9)})
    assert ids(active_patterns(lake, day_after(9), WEEK)) == ["f-20250305-001"]
    assert ended(lake, day_after(9), WEEK) == []


def test_one_that_nobody_closed_is_over_when_all_of_it_is_out_of_the_lookback(lake: Lake) -> None:
    """Its closing day was never run, or its rows are of an older version, which knew no end and no days."""
    put(lake, "friction_clusters", pattern(1, "Use uv."), pattern(2, "No npm.", first_day=None, last_day=None))
    look(lake, 8)
    assert len(active_patterns(lake, day_after(6), WEEK)) == 2
    assert active_patterns(lake, day_after(7), WEEK) == []
    assert [p.ended_on for p in ended(lake, day_after(8), WEEK)] == [day_after(7)] * 2


def test_those_that_ended_last_come_first(lake: Lake) -> None:
    rows = [pattern(n, "Use uv.", ended_on=day_after(n), last_day=day_after(n - 7)) for n in (1, 3, 2)]
    put(lake, "friction_clusters", *(row | {"day": row["ended_on"]} for row in rows))
    assert [p.ended_on for p in ended(lake, day_after(3), WEEK)] == [day_after(n) for n in (3, 2, 1)]


def test_weeks_without_it_count_as_none_and_old_ones_are_left_out(lake: Lake) -> None:
    counted = [{"week": MONDAY - timedelta(weeks=n), "occurrences": 10 - n} for n in (20, 3, 1)]
    put(lake, "friction_clusters", pattern(1, "Use uv.", by_week=counted))
    (found,) = active_patterns(lake, DAY, WEEK)
    weeks = found.weeks(DAY)
    assert weeks[-1] == (MONDAY, 0) and [n for _, n in weeks] == [0] * 8 + [7, 0, 9, 0]
    put(lake, "friction_clusters", pattern(2, "Of an older version.", by_week=None))
    assert [p.weeks(DAY) for p in active_patterns(lake, DAY, WEEK)][1] == []


@each(("numbers", "bars"), [((), ""), ((0, 0), "▁▁"), ((0, 1), "▁█"), ((2, 1, 4), "▅▃█"), ((3,), "█")])
def test_bars_are_as_high_as_the_numbers(numbers: tuple[int, ...], bars: str) -> None:
    assert sparkline(numbers) == bars


def points(lake: Lake, number: int, day: date = DAY) -> None:
    row = {"day": day, "session_id": "s1", "role": "user", "text": "Hello."}
    others = [row | {"role": "tool"}, row | {"role": "assistant"}, row | {"voided": True}]
    put(lake, "messages", *[row] * number, *others)


def test_why_there_is_none(work: Workspace) -> None:
    lake = work.lake
    assert last_day_looked_at(lake) is None
    assert why_none(work) == "No day has been searched yet; `memory run` does that."
    points(lake, 12)
    look(lake, 1)
    assert why_none(work) == "Not enough yet: 12 of 100 indexed texts in the last 7 days (to 2025-03-06)."
    put(lake, "observations", *(observation(f"Line {n}.", day=day_after(1)) for n in range(88)))
    assert why_none(work) == "Nothing recurs in the last 7 days (to 2025-03-06)."
    assert why_none(work, DAY) == "Not enough yet: 12 of 100 indexed texts in the last 7 days (to 2025-03-05)."
    assert why_none(work, day_after(2)) == "2025-03-07 has not been searched yet; `memory run` does that."


def test_points_outside_of_the_lookback_do_not_count(work: Workspace) -> None:
    for back in (0, 6, 7):
        points(work.lake, 10, day_after(-back))
    assert points_in(work.lake, lookback(DAY, WEEK)) == 20
