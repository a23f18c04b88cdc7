"""The check: every proposal has one end, and every approved one its line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import APPROVED, REJECTED
from memory_pipeline.proposals.integrity import ProposalIntegrity
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.workspace import Workspace
from memory_pipeline_tests.rows import DAY, at, decision, proposal, put, workspace

UV, FRIDAY, TABS = (f"p-20250305-00{n}" for n in (1, 2, 3))


@pytest.fixture
def made(tmp_path: Path) -> tuple[Settings, Lake]:
    """One approved and promoted, one rejected, one pending."""
    settings, lake = workspace(tmp_path)
    put(lake, "proposals", proposal(1, "Use uv."), proposal(2, "Never deploy on a Friday."), proposal(3, "Use tabs."))
    decide(Workspace(settings, lake), {UV: APPROVED, FRIDAY: REJECTED}, at("18:00"))
    reconcile(Workspace(settings, lake), at("18:00"))
    return settings, lake


def offenders(settings: Settings, lake: Lake) -> list[str]:
    return ProposalIntegrity.from_lake(lake, settings.memory_file).judge().offenders


def test_numbers_of_a_day_that_is_right(made: tuple[Settings, Lake]) -> None:
    settings, lake = made
    verdict = ProposalIntegrity.from_lake(lake, settings.memory_file).judge()
    assert verdict.passed
    assert verdict.numbers == {
        "proposals": 3,
        "pending": 1,
        "promoted": 1,
        "removed_by_hand": 0,
        "approved": 1,
        "rejected": 1,
    }


def test_a_person_may_remove_a_line(made: tuple[Settings, Lake]) -> None:
    settings, lake = made
    settings.memory_file.write_text("# Memory\n", "utf-8")
    verdict = ProposalIntegrity.from_lake(lake, settings.memory_file).judge()
    assert verdict.passed
    assert verdict.numbers["removed_by_hand"] == 1


def _twice(settings: Settings, lake: Lake) -> None:
    put(lake, "decisions", decision(UV, REJECTED))


def _unknown(settings: Settings, lake: Lake) -> None:
    put(lake, "decisions", decision(TABS, "perhaps"))


def _without_line(settings: Settings, lake: Lake) -> None:
    put(lake, "decisions", decision(TABS, APPROVED))


def _promoted(settings: Settings, lake: Lake) -> None:
    row = lake.read("promotions").to_dicts()[0]
    put(lake, "promotions", row | {"proposal_id": FRIDAY})


def _made_twice(settings: Settings, lake: Lake) -> None:
    put(lake, "proposals", proposal(3, "Another text."))


def _lost(settings: Settings, lake: Lake) -> None:
    settings.memory_file.unlink()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_twice, f"{UV} has 2 decisions"),
        (_unknown, f"{TABS} has the unknown decision 'perhaps'"),
        (_without_line, f"{TABS} is approved and was not promoted"),
        (_promoted, f"{FRIDAY} was promoted and never approved"),
        (_made_twice, f"{TABS} was made twice"),
        (_lost, "MEMORY.md has none of the 1 lines that were promoted"),
    ],
)
def test_what_is_wrong_is_named(made: tuple[Settings, Lake], harm: Callable[[Settings, Lake], None], said: str) -> None:
    harm(*made)
    assert [offender.removeprefix(f"{DAY}: ") for offender in offenders(*made)] == [said]
