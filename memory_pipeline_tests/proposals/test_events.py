"""Rows are only ever added, and of each thing the first row is the one that counts."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from memory_pipeline.proposals.events import Decision
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, at, day_after, events, record_decisions, record_showings, workspace

UV, FRIDAY = "p-20250305-001", "p-20250305-002"


def test_two_who_decide_at_once_leave_one_decision(tmp_path: Path) -> None:
    """Each looked before the other wrote; the second comes after midnight."""
    settings, lake = workspace(tmp_path)
    approved = Decision(UV, "approved", "command", "Use uv.")
    record_decisions(Workspace(settings, lake), [approved], at("23:59"))
    record_decisions(Workspace(settings, lake), [replace(approved, decision="expired")], at("00:01", day_after(1)))
    other = [replace(approved, decision="rejected"), replace(approved, proposal_id=FRIDAY)]
    record_decisions(Workspace(settings, lake), other, at("23:59"))
    kept = events(lake, "decided").select("day", "proposal_id", "decision").sort("proposal_id").rows()
    assert kept == [(DAY, UV, "approved"), (DAY, FRIDAY, "approved")]


def test_a_surface_shows_a_proposal_once_and_another_one_too(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    record_showings(Workspace(settings, lake), {UV: None}, at("10:00"), surface="REVIEW.md")
    record_showings(Workspace(settings, lake), {UV: None, FRIDAY: None}, at("11:00"), surface="command")
    record_showings(Workspace(settings, lake), {UV: None}, at("12:00") + timedelta(days=2), surface="REVIEW.md")
    rows = (
        events(lake, "shown").sort("proposal_id", "happened_at").select("proposal_id", "surface", "happened_at").rows()
    )
    assert rows == [(UV, "REVIEW.md", at("10:00")), (UV, "command", at("11:00")), (FRIDAY, "command", at("11:00"))]
