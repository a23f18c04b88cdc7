"""Low-risk fixes without asking: off by default, a dry run first, in the workspace only, and taken back by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.auto_fix import HOW_TO_UNDO, report
from memory_pipeline.proposals.auto_promotion import standings
from memory_pipeline.proposals.events import APPROVED, PENDING, REJECTED, ProposalLog
from memory_pipeline.proposals.review import UnknownProposalError, decide
from memory_pipeline_tests.proposals.test_fixes import NOW, ONE, RULE, TWO, Work
from memory_pipeline_tests.rows import events, fixable, proposal, put, rule_pattern

DAY_LONG = 24 * 60
STALE = "Fire at noon."


def reported(work: Work) -> list[str]:
    return report(work.workspace, ProposalLog(work.lake), NOW + timedelta(minutes=work.minutes))


@pytest.fixture
def on(tmp_path: Path) -> Work:
    return Work(tmp_path, rule_pattern(1, RULE, low_risk=True), auto_fix=True)


def test_it_is_off_and_says_what_it_would_do(tmp_path: Path) -> None:
    work = Work(tmp_path, rule_pattern(1, RULE, low_risk=True))
    for _ in range(5):
        assert work.run(DAY_LONG).automatic == []
    assert work.status() == {ONE: PENDING}
    assert events(work.lake, "would_apply").is_empty()
    assert reported(work) == [
        f"off (MEMORY_AUTO_FIX=true switches it on): would apply {ONE} in MEMORY.md, Hard Rules: “{RULE}”"
    ]


def test_a_day_long_it_only_says_what_it_would_do(on: Work) -> None:
    for _ in range(3):
        assert on.run().automatic == []
    assert reported(on) == [f"dry run until 2025-03-06 18:01: would apply {ONE} in MEMORY.md, Hard Rules: “{RULE}”"]
    assert not on.memory.exists()
    assert on.run(DAY_LONG).automatic == [ONE]
    assert RULE in on.remembered()
    assert events(on.lake, "would_apply")["proposal_id"].to_list() == [ONE]
    assert reported(on) == [f"applied {ONE}; `memory why ID` shows what, undo it in the file to revert it"]


def test_what_comes_after_the_dry_run_is_applied_at_once_and_announced_for_a_week(on: Work) -> None:
    on.run()
    on.run(DAY_LONG)
    on.memory.write_text(on.remembered() + f"\n## Notes\n- {STALE}\n")
    put(on.lake, "friction_clusters", fixable(2, "noon", target_file="MEMORY.md", replaces=STALE, low_risk=True))
    settled = on.run()
    assert (settled.automatic, settled.applied) == ([TWO], [TWO])
    assert f"~~{STALE}~~ (superseded by {TWO}, 2025-03-06)" in on.remembered()
    notice = f"_Fixed automatically: `{ONE}`, `{TWO}`. To take one back, undo its change in the file; "
    assert notice in on.text()
    on.run()
    assert on.text().count(notice) == 1
    assert on.judge() == []
    on.run(8 * DAY_LONG)
    assert "Fixed automatically" not in on.text()


def test_what_a_person_undoes_stays_undone(on: Work) -> None:
    on.run()
    on.run(DAY_LONG)
    on.memory.write_text("# Memory\n")
    settled = on.run()
    assert settled.promoted == settled.automatic == []
    assert on.remembered() == "# Memory\n"
    assert "Fixed automatically" not in on.text()
    with pytest.raises(UnknownProposalError, match=HOW_TO_UNDO):
        decide(on.workspace, {ONE: REJECTED}, NOW + timedelta(days=3))


def test_a_mark_that_comes_too_late_is_told(on: Work) -> None:
    on.run()
    old = on.text()
    on.run(DAY_LONG)
    on.review.write_text(old.replace(f"- [ ] `{ONE}`", f"- [-] `{ONE}`"))
    assert on.run().too_late == [ONE]
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


def test_a_clock_that_was_wrong_ends_no_dry_run(on: Work) -> None:
    on.run(-100 * DAY_LONG)
    assert on.run(100 * DAY_LONG).automatic == [ONE]  # noted long ago
    other = Work(on.settings.workspace / "other", rule_pattern(1, RULE, low_risk=True), auto_fix=True)
    other.run(100 * DAY_LONG)  # in the future
    assert other.run(-100 * DAY_LONG).automatic == []
    assert other.run(DAY_LONG).automatic == []


def test_automatic_fixes_earn_a_section_no_trust(on: Work) -> None:
    put(on.lake, "proposals", proposal(1, "Fire at cone six."))
    on.run()
    on.run(DAY_LONG, **{"p_20250305_001": APPROVED})
    (standing,) = standings(on.workspace, ProposalLog(on.lake)).values()
    assert standing.acceptance.counted == 1
