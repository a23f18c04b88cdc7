"""What `memory run` says of REVIEW.md when it is done: what was decided there since it began, and nothing else."""

from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.cli.summary import outcomes_since, print_outcomes
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import at, fixable, proposal, put, rule_pattern, workspace

BEGAN = at("18:00")
A, B, C, D, E = (f"p-20250305-00{n}" for n in range(1, 6))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Five proposals in a REVIEW.md in which nothing is marked yet."""
    settings, lake = workspace(tmp_path)
    put(lake, "proposals", *(proposal(n, f"Rule number {n} holds.") for n in range(1, 6)))
    reconcile(Workspace(settings, lake), BEGAN - timedelta(hours=1))
    return settings


def mark(settings: Settings, **marks: str) -> None:
    text = settings.review_file.read_text("utf-8")
    for name, mark in marks.items():
        text = text.replace(f"- [ ] `{globals()[name]}`", f"- [{mark}] `{globals()[name]}`")
    settings.review_file.write_text(text.replace("Rule number 2 holds", "Rule number 2 always holds"), "utf-8")


def told(settings: Settings, capsys: pytest.CaptureFixture[str], *, minutes: int = 1) -> str:
    _, lake = workspace(settings.workspace)
    reconcile(Workspace(settings, lake), BEGAN + timedelta(minutes=minutes))
    print_outcomes(outcomes_since(settings, BEGAN))
    return capsys.readouterr().out


def test_nothing_is_said_when_nothing_was_decided(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(settings, capsys) == ""


def test_what_was_marked_is_counted_and_what_was_not_understood_is_named(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    mark(settings, A="x", B="x", C="-", D="?")
    assert told(settings, capsys) == (f"REVIEW.md: 2 approved, 1 rejected, not understood: {D}\n")
    found = outcomes_since(settings, BEGAN)
    assert (found["approved"], found["rejected"]) == ([A, B], [C])
    assert (found["not_understood"], found["invalid"]) == ([D], {})


def test_what_was_decided_before_the_run_is_not_said_again(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    mark(settings, A="x")
    assert told(settings, capsys, minutes=-1) == ""


def test_what_ended_without_a_person_is_said(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(1, 7):
        told(settings, capsys, minutes=60 * 24 * day)
    mark(settings, E="x")
    out = told(settings, capsys, minutes=60 * 24 * 8)
    assert out == "REVIEW.md: 1 approved\nAutomatically: 4 expired\n"


def test_of_a_fix_that_a_person_makes_it_says_what_there_is_to_do(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lake = workspace(settings.workspace)
    put(lake, "friction_clusters", fixable(1, "Slow tests", change="+pytest -x"), rule_pattern(2, "Fire at cone six."))
    reconcile(Workspace(settings, lake), BEGAN - timedelta(hours=1))
    text = settings.review_file.read_text("utf-8")
    settings.review_file.write_text(text.replace("- [ ] `f-", "- [x] `f-"), "utf-8")
    assert told(settings, capsys) == (
        "REVIEW.md: 2 approved\n"
        "f-20250305-001: make this change in AGENTS.md, or have your agent make it:\n  +pytest -x\n"
    )
