"""What the UI is told of a day's friction: numbers and a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.defs.friction import describe
from memory_pipeline_tests.rows import DAY, Opened, Row, day_after, observation, pattern, put, say, workspace

TOPICS = ("uv", "npm", "docker", "depot", "kiln")
U = "f-20250304-001"


@dataclass
class Work(Opened):
    def told(self) -> Mapping[str, Any]:
        return describe(self.workspace, DAY)


def spans(*messages: Row) -> list[Row]:
    return [{"message_id": m["message_id"], "start": 0, "end": len(m["text"])} for m in messages]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Two active patterns: a correction of two sessions, and a failure after it; and one that ends today."""
    work = Work(*workspace(tmp_path))
    evidence, failed = [], []
    for n, day in enumerate((day_after(-1), DAY)):
        said = say(work.lake, f"s{n}", "user: No, use uv, not pip.", "tool!: exit 1", day=day)
        row = observation("No, use uv, not pip.", day=day, session=f"s{n}")
        put(work.lake, "observations", row)
        evidence += spans(said[0])
        failed += spans(said[1])
    for n, topic in enumerate(TOPICS):
        put(work.lake, "observations", observation(f"The {topic} one.", session=f"t{n}", clock="08:00"))
    uv = pattern(1, "Use uv | not pip.", day=day_after(-1), evidence=evidence[:1], minutes=None)
    put(work.lake, "friction_clusters", uv)
    put(work.lake, "friction_clusters", uv | {"day": DAY, "evidence": evidence, "last_day": DAY, "severity": 8.0})
    put(work.lake, "friction_clusters", pattern(1, "exit 1", kind="recurring_failure", evidence=failed))
    old = pattern(4, "Old.", day=day_after(-7))
    put(work.lake, "friction_clusters", old, old | {"day": DAY, "ended_on": DAY})
    return work


def test_the_numbers_plot(work: Work) -> None:
    told = work.told()
    numbers = {k: v for k, v in told.items() if isinstance(v, (int, float))}
    assert numbers == {
        "points": 9,
        "active": 2,
        "new": 1,
        "ended": 1,
        "occurrences": 4,
        "minutes_lost": 6.0,
        "worst_severity": 8.0,
    }


def test_the_table_has_a_row_for_each_with_what_was_said_escaped(work: Work) -> None:
    table = work.told()["table"].value
    head, _, first, second = table.splitlines()
    assert head.startswith("| pattern | kind | title | project | times | sessions | minutes | severity |")
    assert "Use uv \\| not pip." in first and "f\\-" not in first and U in first.replace("\\", "")
    assert "recurring failure" in second


def test_a_day_without_patterns_says_why(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path))
    work.lake.replace("friction_clusters", work.lake.read("friction_clusters"), [DAY])
    told = work.told()
    assert told["table"] == "Not enough yet: 0 of 100 indexed texts in the last 7 days (to 2025-03-05)."
    assert (told["active"], told["worst_severity"]) == (0, 0.0)
