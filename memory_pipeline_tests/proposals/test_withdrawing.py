"""A fix whose pattern has ended before anybody decided on it is withdrawn, and that is told with the day."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import PENDING, WITHDRAWN, ProposalLog
from memory_pipeline.proposals.history import history
from memory_pipeline_tests.proposals.test_fixes import ONE, RULE, TWO, Work
from memory_pipeline_tests.rows import DAY, Row, bytes_of, day_after, fixable, proposal, put, rule_pattern

OWN = "p-20250305-001"
ENDED = day_after(7)


def over(row: Row) -> Row:
    """The row of the day that closes it."""
    return {**row, "day": ENDED, "ended_on": ENDED}


@pytest.fixture
def slow() -> Row:
    return fixable(1, "Slow tests")


def test_it_is_withdrawn_when_its_pattern_is_closed(tmp_path: Path, slow: Row) -> None:
    work = Work(tmp_path, slow)
    assert work.run().withdrawn == {}
    put(work.lake, "friction_clusters", over(slow))
    settled = work.run()
    assert settled.withdrawn == {ONE: f"its pattern ended on {ENDED}; it last happened on {DAY}"}
    assert (settled.expired, work.status()) == ([], {ONE: WITHDRAWN})
    assert f"- [ ] `{ONE}`" not in work.text()
    before = bytes_of(tmp_path)
    assert work.run(0).withdrawn == {}
    assert bytes_of(tmp_path) == before
    assert judge_integrity(work.lake, work.memory).passed
    log = work.settings.daily_log(DAY).read_text("utf-8")
    assert "### Memory proposals that ended without a decision" in log and f"its pattern ended on {ENDED}" in log
    assert [e["event"] for e in history(work.workspace, ONE)][-1] == WITHDRAWN


def test_it_is_withdrawn_too_where_nobody_closed_it_and_friction_was_looked_for_later(
    tmp_path: Path, slow: Row
) -> None:
    work = Work(tmp_path, slow)
    work.run()
    put(work.lake, "friction_clusters", slow, fixable(2, "Another", day=day_after(6)))
    assert work.run().withdrawn == {}
    put(work.lake, "friction_clusters", fixable(3, "Another", day=day_after(7)))
    assert list(work.run().withdrawn) == [ONE]


def test_what_goes_on_or_was_decided_stays(tmp_path: Path) -> None:
    goes_on, decided = fixable(1, "Slow tests"), fixable(2, "Cold oven")
    work = Work(tmp_path, goes_on, decided)
    work.run()
    work.mark(TWO, "x")
    later = {**goes_on, "day": ENDED, "last_day": ENDED}
    put(work.lake, "friction_clusters", later, over(decided))
    settled = work.run()  # the mark comes first
    assert (settled.withdrawn, settled.approved) == ({}, [TWO])
    assert work.status()[ONE] == PENDING


def test_a_review_file_that_cannot_be_read_may_hold_the_decision(tmp_path: Path, slow: Row) -> None:
    work = Work(tmp_path, slow)
    work.run()
    put(work.lake, "friction_clusters", over(slow))
    work.review.write_text("no lines of memory_pipeline", "utf-8")
    assert (work.run().withdrawn, work.status()) == ({}, {ONE: PENDING})
    assert list(work.run().withdrawn) == [ONE]


def test_a_fix_whose_line_is_a_proposal_already_is_not_offered(tmp_path: Path) -> None:
    work = Work(tmp_path)
    put(work.lake, "proposals", proposal(1, RULE))
    work.run()
    put(work.lake, "friction_clusters", rule_pattern(1, RULE))
    assert work.run().offered == []
    assert work.status() == {OWN: PENDING}


def test_what_comes_back_is_a_new_pattern_and_is_offered_anew(tmp_path: Path) -> None:
    first = rule_pattern(1, RULE)
    work = Work(tmp_path, first)
    work.run()
    put(work.lake, "friction_clusters", over(first))
    work.run()
    put(work.lake, "friction_clusters", over(first), rule_pattern(2, RULE, day=day_after(9)))
    settled = work.run()
    assert len(settled.offered) == 1 and settled.offered[0] != ONE


def test_nothing_is_read_where_no_fix_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(tmp_path)
    put(work.lake, "proposals", proposal(1, RULE))
    monkeypatch.setattr("memory_pipeline.proposals.outcomes.patterns_on", lambda *_: pytest.fail("it was read"))
    assert work.run().withdrawn == {}
    assert ProposalLog(work.lake).status == {OWN: PENDING}
