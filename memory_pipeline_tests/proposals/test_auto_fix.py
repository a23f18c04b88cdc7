"""Low-risk fixes without asking: off by default, after a day on display, in the workspace only."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.automatic import track_records
from memory_pipeline.proposals.events import APPROVED, PENDING, REJECTED, ProposalLog
from memory_pipeline.proposals.review import UnknownProposalError, decide
from memory_pipeline_tests.proposals.test_fixes import NOW, ONE, RULE, TWO, Work
from memory_pipeline_tests.rows import fixable, proposal, put, rule_pattern

DAY_LONG = 24 * 60
STALE = "Fire at noon."


@pytest.fixture
def on(tmp_path: Path) -> Work:
    return Work(tmp_path, rule_pattern(1, RULE, low_risk=True), auto_fix=True)


def test_it_is_off(tmp_path: Path) -> None:
    work = Work(tmp_path, rule_pattern(1, RULE, low_risk=True))
    for _ in range(5):
        assert work.run(DAY_LONG).automatic == []
    assert work.status() == {ONE: PENDING}


def test_it_is_applied_after_a_day_on_display_and_announced_for_a_week(on: Work) -> None:
    for _ in range(3):
        assert on.run().automatic == []
    assert not on.memory.exists()
    settled = on.run(DAY_LONG)
    assert (settled.automatic, settled.promoted) == ([ONE], [ONE])
    on.memory.write_text(on.remembered() + f"\n## Notes\n- {STALE}\n")
    put(on.lake, "friction_clusters", fixable(2, "noon", target_file="MEMORY.md", replaces=STALE, low_risk=True))
    assert on.run().automatic == []
    settled = on.run(DAY_LONG)
    assert (settled.automatic, settled.applied) == ([TWO], [TWO])
    assert f"~~{STALE}~~ (superseded by {TWO}, 2025-03-07)" in on.remembered()
    notice = f"_Approved automatically: `{ONE}`, `{TWO}`. To take one back, undo its change in the file; "
    assert notice in on.text()
    on.run()
    assert on.text().count(notice) == 1
    assert on.judge() == []
    on.run(8 * DAY_LONG)
    assert "Approved automatically" not in on.text()


def test_what_a_person_undoes_stays_undone(on: Work) -> None:
    on.run()
    on.run(DAY_LONG)
    on.memory.write_text("# Memory\n")
    settled = on.run()
    assert settled.promoted == settled.automatic == []
    assert on.remembered() == "# Memory\n"
    assert "Approved automatically" not in on.text()
    with pytest.raises(UnknownProposalError, match="is already approved"):
        decide(on.workspace, {ONE: REJECTED}, NOW + timedelta(days=3))


def test_a_mark_that_comes_too_late_is_told(on: Work) -> None:
    on.run()
    old = on.text()
    on.run(DAY_LONG)
    on.review.write_text(old.replace(f"- [ ] `{ONE}`", f"- [-] `{ONE}`"))
    assert on.run().already == {ONE: "approved automatically"}
    assert on.status() == {ONE: APPROVED}


def test_only_low_risk_in_the_workspace_qualifies_and_only_what_holds(tmp_path: Path) -> None:
    agents = tmp_path / "repository" / "AGENTS.md"
    agents.parent.mkdir()
    agents.write_text("# Agents\n")
    fixes = [
        rule_pattern(1, RULE),
        fixable(2, "outside", low_risk=True),
        fixable(3, "outside by its path", target_file=str(agents), section="Rules", adds=RULE, low_risk=True),
        rule_pattern(4, "Glaze on Mondays.", low_risk=True),  # MEMORY.md says so by the time
        fixable(5, "gone", target_file="MEMORY.md", replaces="Nobody wrote this.", low_risk=True),
        fixable(6, "in words", target_file="MEMORY.md", low_risk=True),
    ]
    work = Work(tmp_path / "workspace", *fixes, auto_fix=True)
    work.run()
    work.memory.write_text("## Hard Rules\n- Glaze on Mondays.\n")
    for _ in range(3):
        assert work.run(DAY_LONG).automatic == []
    assert work.remembered() == "## Hard Rules\n- Glaze on Mondays.\n"
    assert agents.read_text() == "# Agents\n"


def test_with_a_review_file_that_cannot_be_read_nothing_is_applied(on: Work) -> None:
    on.run()
    on.review.write_text("")
    assert on.run(DAY_LONG).automatic == []
    assert on.run().automatic == [ONE]


def test_automatic_fixes_earn_a_section_no_trust(on: Work) -> None:
    put(on.lake, "proposals", proposal(1, "Fire at cone six."))
    on.run()
    on.run(DAY_LONG, **{"p_20250305_001": APPROVED})
    (record,) = track_records(on.workspace, ProposalLog(on.lake)).values()
    assert record.acceptance.counted == 1
