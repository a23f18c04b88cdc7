"""Two weeks without a decision while something waits are told; what a user decides, or has not been shown, is not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.evaluation import judge_attention
from memory_pipeline.proposals.events import APPROVED, AUTO_SURFACE, EXPIRED, EXPIRY_SURFACE, Decision, ProposalLog
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import proposal, put, record_decisions, record_showings, workspace

NOW = datetime(2025, 4, 30, 12, tzinfo=UTC)
FIRST, SECOND = "p-20250305-001", "p-20250305-002"


@pytest.fixture
def made(tmp_path: Path) -> Workspace:
    made = Workspace(*workspace(tmp_path))
    put(made.lake, "proposals", proposal(1, "Use uv."), proposal(2, "Never deploy on a Friday."))
    return made


def show(made: Workspace, proposal_id: str, days_ago: int) -> None:
    record_showings(made, {proposal_id: None}, NOW - timedelta(days=days_ago), surface="REVIEW.md")


def decide(made: Workspace, proposal_id: str, days_ago: int, what: str = APPROVED, surface: str = "REVIEW.md") -> None:
    record_decisions(made, [Decision(proposal_id, what, surface, "x")], NOW - timedelta(days=days_ago))


def told(made: Workspace) -> str | None:
    verdict = judge_attention(ProposalLog(made.lake), NOW)
    return None if verdict.passed else verdict.sentence


def test_what_was_never_shown_waits_for_nobody(made: Workspace) -> None:
    assert told(made) is None


@pytest.mark.parametrize(("days", "is_told"), [(13, False), (14, True), (40, True)])
def test_it_counts_from_the_first_showing(made: Workspace, days: int, is_told: bool) -> None:
    show(made, FIRST, days)
    show(made, SECOND, 2)
    assert bool(told(made)) is is_told
    if is_told:
        since = NOW - timedelta(days=days)
        assert told(made) == (
            f"2 pending proposals: nobody has decided on any for {days} days, since {since:%Y-%m-%d}: "
            "`memory review` takes a minute."
        )


def test_a_decision_begins_it_anew_and_leaves_what_it_left(made: Workspace) -> None:
    show(made, FIRST, 40)
    show(made, SECOND, 40)
    decide(made, FIRST, 13)
    assert told(made) is None
    decide(made, FIRST, 20)
    assert told(made) is None  # the newest counts


def test_what_is_shown_after_long_quiet_is_new(made: Workspace) -> None:
    """Everything was decided on, weeks passed with nothing to decide, and yesterday something came."""
    show(made, FIRST, 60)
    decide(made, FIRST, 50)
    show(made, SECOND, 1)
    assert told(made) is None


@pytest.mark.parametrize("surface", [EXPIRY_SURFACE, AUTO_SURFACE])
def test_what_ended_without_a_user_was_not_looked_at(made: Workspace, surface: str) -> None:
    show(made, FIRST, 20)
    decide(made, FIRST, 12, EXPIRED if surface == EXPIRY_SURFACE else APPROVED, surface)
    show(made, SECOND, 10)
    assert "for 20 days" in f"{told(made)}"
