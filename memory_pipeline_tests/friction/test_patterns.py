"""What a pattern says of itself."""

from dataclasses import replace
from datetime import date

import pytest

from memory_pipeline.friction.patterns import MAX_TITLE, FrictionEvent, Pattern
from memory_pipeline.friction.stage import each_once
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event


def costing(session: str, minutes: float, *, turns: int = 2, ago: int = 0) -> FrictionEvent:
    return replace(event("no", session, ago=ago), turns=turns, minutes=minutes)


def pattern(*members: FrictionEvent, **other: object) -> Pattern:
    return replace(Pattern("tool_misuse", "A title", "AGENTS.md", members, note="do it"), **other)


def test_severity_is_sessions_times_the_minutes_of_one_occurrence() -> None:
    made = pattern(costing("s1", 3.0), costing("s1", 6.0), costing("s2", 3.0))
    assert (made.sessions, made.turns, made.minutes) == (2, 6, 12.0)
    assert made.severity == 2 * 12.0 / 3


def test_an_occurrence_costs_half_a_minute_at_least() -> None:
    assert pattern(costing("s1", 0.0), costing("s2", 0.1)).minutes == 1.0


@each(("sessions", "sure", "confidence"), [(2, 1.0, 0.5), (3, 1.0, 2 / 3), (10, 1.0, 0.9), (2, 0.8, 0.4)])
def test_confidence_grows_with_sessions(sessions: int, sure: float, confidence: float) -> None:
    assert pattern(*(costing(f"s{i}", 1) for i in range(sessions)), sure=sure).confidence == pytest.approx(confidence)


def test_occurrences_by_week_begin_on_mondays() -> None:
    made = pattern(
        costing("s1", 1, ago=5), costing("s2", 1, ago=2), costing("s3", 1)
    )  # a Friday, a Monday, a Wednesday
    assert made.by_week == [(date(2025, 2, 24), 1), (date(2025, 3, 3), 2)]


@each(
    ("parts", "change"),
    [
        ({"adds": "Use uv."}, "Add to AGENTS.md: “Use uv.” (do it)"),
        ({"adds": "Use uv.", "section": "Hard Rules", "note": ""}, "Add to AGENTS.md, Hard Rules: “Use uv.”"),
        ({"adds": "Use uv.", "replaces": "Use pip."}, "In AGENTS.md, replace “Use pip.” with “Use uv.”"),
        ({"replaces": "Use pip."}, "Remove from AGENTS.md: “Use pip.”"),
        ({}, "AGENTS.md: do it"),
    ],
)
def test_the_change_says_what_to_do(parts: dict[str, str], change: str) -> None:
    assert pattern(costing("s1", 1), **parts).change == change


def test_a_title_is_no_longer_than_a_line() -> None:
    assert len(pattern(costing("s1", 1), title="word " * 200).with_short_title().title) <= MAX_TITLE


@each("kind", ["repeated_correction", "rule_violated"])
def test_a_task_for_which_something_is_looked_up_is_no_objection_too(kind: str) -> None:
    """What was asked for is in the evidence of one, and among the requests of the other."""
    asked = pattern(costing("s1", 1), costing("s2", 1), kind=kind)
    skill = pattern(costing("s3", 1, ago=1), kind="missing_skill", requests=asked.messages)
    assert each_once([asked, skill]) == [skill]
    other = replace(skill, requests=frozenset())
    assert {p.kind for p in each_once([asked, other])} == {kind, "missing_skill"}
