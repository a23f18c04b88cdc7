"""Where rows of proposals are lost, no decision becomes one on another line, and nothing decided is asked again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memory_pipeline.proposals.events import APPROVED, PENDING, REJECTED, ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline_tests.proposals.test_stage import FRIDAY, TABS, UV, Work
from memory_pipeline_tests.rows import DAY, at, day_after, decision, proposal, put, workspace

NOON = at("12:00", day_after(1))
P1, P2 = "p-20250305-001", "p-20250305-002"


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path))


def lose(work: Work, table: str) -> None:
    """The rows of the day, with all versions of them."""
    work.lake.path(table, DAY).unlink()
    shutil.rmtree(work.settings.backups / "lake" / table)


def test_numbers_are_never_used_again(work: Work) -> None:
    work.reflect(UV)
    work.reflect(FRIDAY)
    assert sorted(work.run()) == [P1, P2]
    decide(work.workspace, {P1: REJECTED, P2: APPROVED}, NOON)
    reconcile(work.workspace, NOON)
    lose(work, "proposals")
    work.reflect(TABS)
    assert work.run() == {"p-20250305-003": TABS}
    assert ProposalLog(work.lake).status == {"p-20250305-003": PENDING}


def test_nor_those_that_only_memory_knows(work: Work) -> None:
    work.reflect(UV)
    work.run()
    decide(work.workspace, {P1: APPROVED}, NOON)
    reconcile(work.workspace, NOON)
    shutil.rmtree(work.settings.backups / "lake")
    for table in ("proposals", "events"):
        shutil.rmtree(work.lake.root / table, ignore_errors=True)
    work.reflect(TABS)
    assert work.run() == {P2: TABS}


def test_an_id_that_a_user_made_up_in_memory_stops_nothing(work: Work) -> None:
    work.settings.memory_file.parent.mkdir(parents=True, exist_ok=True)
    work.settings.memory_file.write_text("## Patterns\n- (2026-01-01) Mine. <!-- p-20269999-001 -->\n", "utf-8")
    work.reflect(TABS)
    assert work.run() == {P1: TABS}


def test_the_rows_come_back_where_there_is_a_version_of_them(work: Work) -> None:
    work.reflect(UV)
    work.run()
    decide(work.workspace, {P1: REJECTED}, NOON)
    work.lake.path("proposals", DAY).write_bytes(b"")
    fresh = Work(*workspace(work.settings.workspace))
    assert ProposalLog(fresh.lake).status == {P1: REJECTED}
    fresh.reflect(TABS)
    assert fresh.run() == {P1: UV, P2: TABS}


def test_a_decision_counts_for_the_line_that_it_was_taken_on(work: Work) -> None:
    work.reflect(UV)
    work.run()
    decide(work.workspace, {P1: REJECTED}, NOON)
    lose(work, "proposals")
    put(work.lake, "proposals", proposal(1, TABS) | {"content_hash": "another"})
    assert ProposalLog(work.lake).status == {P1: PENDING}


def test_one_of_before_that_was_kept_counts_by_its_id(work: Work) -> None:
    put(work.lake, "proposals", proposal(1, TABS))
    put(work.lake, "events", decision(P1, REJECTED) | {"content_hash": None})
    assert ProposalLog(work.lake).status == {P1: REJECTED}
