"""A week with planted friction: every harness reads it, the pipeline finds what tools did, and the score is right."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from benchmarks.friction import IN_MEMORY
from benchmarks.planted_friction.bank import TUNING, bank_of
from benchmarks.planted_friction.model import (
    CONFIGURATION_DRIFT,
    HARNESSES,
    KINDS,
    MISSING_SKILL,
    RECURRING_FAILURE,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    TOOL_MISUSE,
    Occurrence,
    Place,
    Plant,
    Week,
)
from benchmarks.planted_friction.running import Ran, run
from benchmarks.planted_friction.scoring import MIXED, ORDINARY, Found, score, wrongly_taken
from benchmarks.planted_friction.weeks import DAYS, make_week
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each


@pytest.fixture(scope="module")
def ran() -> Iterator[tuple[Week, Ran]]:
    """A week that the pipeline has run over, in a folder where the index is opened within milliseconds."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        week = make_week(1, bank_of(TUNING), Path(folder))
        yield week, run(week)


def test_every_harness_reads_its_files_and_the_truth_lies_in_their_messages(ran: tuple[Week, Ran]) -> None:
    week, _ = ran
    read = {path: parse_file(path) for path in week.files}
    assert {session.harness for session in read.values()} == set(HARNESSES)
    assert [(p, s.problems, s.unknown_records) for p, s in read.items() if s.problems or s.unknown_records] == []
    for plant in week.plants:
        for occurrence in plant.occurrences:
            path, session = next((p, s) for p, s in read.items() if s.session_id == occurrence.session_id)
            there = [m for m in session.messages if (f"{path}", m.line) in occurrence.places]
            unsaid = [text for text in occurrence.texts if not any(text in message.text for message in there)]
            assert unsaid == [], plant.name


def test_the_pipeline_runs_over_a_week_and_its_evidence_has_places(ran: tuple[Week, Ran]) -> None:
    week, came = ran
    assert came.points >= 100
    assert set(came.observations["day"]) == set(DAYS)
    assert {row["kind"] for row in came.rows} <= set(KINDS)
    assert [pattern.name for pattern in came.patterns] == [row["pattern_id"] for row in came.rows]
    files = {f"{path}" for path in week.files}
    assert all(pattern.places and {file for file, _ in pattern.places} <= files for pattern in came.patterns)


def test_what_tools_did_is_found_and_what_users_said_in_other_words_is_not(ran: tuple[Week, Ran]) -> None:
    week, came = ran
    scored = score(came.patterns, week.plants)
    by_tools = [plant for plant in week.friction if plant.kind in (RECURRING_FAILURE, TOOL_MISUSE, CONFIGURATION_DRIFT)]
    assert by_tools and all(plant.kind in scored.kinds_found[plant.name] for plant in by_tools)
    assert {each.found.kind for each in scored.judged if not each.hit} <= {MISSING_SKILL, STALE_MEMORY}
    assert {row["kind"] for row in came.rows}.isdisjoint({REPEATED_CORRECTION, RULE_VIOLATED})


def places(session: str, *lines: int) -> frozenset[Place]:
    return frozenset((session, line) for line in lines)


def plant(name: str, kind: str, *sessions: str, sort: str = "") -> Plant:
    """It happens in these sessions, in their lines 1 to 3."""
    occurrences = [Occurrence(session, date(2026, 3, 2), places(session, 1, 2, 3), ()) for session in sessions]
    return Plant(name, kind, sort or kind, "" if kind else "for a reason", occurrences)


PLANTS = (
    plant("uv", REPEATED_CORRECTION, "a", "b"),
    plant("lock", RECURRING_FAILURE, "c", "d"),
    plant("thanks", "", "e", "f", sort="politeness"),
)
UV, LOCK = places("a", 2) | places("b", 1, 2), places("c", 1) | places("d", 1)


@each(
    ("found", "counts", "wrong"),
    [
        ([(REPEATED_CORRECTION, UV), (RECURRING_FAILURE, LOCK)], (1, 1, 1, 1), ""),
        ([], (1, 0, 0, 0), ""),
        ([(TOOL_MISUSE, UV)], (1, 0, 0, 0), "really repeated_correction"),
        ([(REPEATED_CORRECTION, places("e", 1) | places("f", 1))], (1, 0, 1, 0), "politeness"),
        ([(REPEATED_CORRECTION, places("z", 1, 2))], (1, 0, 1, 0), ORDINARY),
        ([(REPEATED_CORRECTION, places("a", 1) | places("e", 1))], (1, 0, 1, 0), MIXED),
        ([(REPEATED_CORRECTION, places("a", 1, 2))], (1, 0, 1, 0), "one session of repeated_correction"),
        ([(REPEATED_CORRECTION, frozenset())], (1, 0, 1, 0), "no evidence"),
        ([(REPEATED_CORRECTION, UV), (REPEATED_CORRECTION, UV)], (1, 1, 2, 1), "found before"),
    ],
)
def test_the_score_counts_what_was_found_and_names_what_was_wrong(
    found: list[tuple[str, frozenset[Place]]], counts: tuple[int, int, int, int], wrong: str
) -> None:
    scored = score([Found(f"f-{n}", kind, lies) for n, (kind, lies) in enumerate(found)], PLANTS)
    tally = scored.count(REPEATED_CORRECTION)
    assert (tally.planted, tally.recalled, tally.found, tally.right) == counts
    assert wrongly_taken([scored]) == ({wrong: Counter({found[-1][0]: 1})} if wrong else {})
