"""The check: every proposal has one end, and every approved one its line."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import APPROVED, REJECTED
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.lake.folders import FarFolder
from memory_pipeline_tests.rows import DAY, at, day_after, decision, events, proposal, put, workspace

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
    return judge_integrity(lake, settings.memory_file).offenders


def test_numbers_of_a_day_that_is_right(made: tuple[Settings, Lake]) -> None:
    settings, lake = made
    verdict = judge_integrity(lake, settings.memory_file)
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
    verdict = judge_integrity(lake, settings.memory_file)
    assert verdict.passed
    assert verdict.numbers["removed_by_hand"] == 1


def _twice(settings: Settings, lake: Lake) -> None:
    put(lake, "events", decision(UV, REJECTED))


def _unknown(settings: Settings, lake: Lake) -> None:
    put(lake, "events", decision(TABS, "perhaps"))


def _without_line(settings: Settings, lake: Lake) -> None:
    put(lake, "events", decision(TABS, APPROVED))


def _promoted(settings: Settings, lake: Lake) -> None:
    row = events(lake, "promoted").to_dicts()[0]
    put(lake, "events", row | {"proposal_id": FRIDAY})


def _made_twice(settings: Settings, lake: Lake) -> None:
    put(lake, "proposals", proposal(3, "Another text."))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_twice, f"{UV} has 2 decisions"),
        (_unknown, f"{TABS} has the unknown decision 'perhaps'"),
        (_without_line, f"{TABS} was approved but not promoted"),
        (_promoted, f"{FRIDAY} was promoted but never approved"),
        (_made_twice, f"{TABS} was created twice"),
    ],
)
def test_what_is_wrong_is_named(made: tuple[Settings, Lake], harm: Callable[[Settings, Lake], None], said: str) -> None:
    harm(*made)
    assert [offender.removeprefix(f"{DAY}: ") for offender in offenders(*made)] == [said]


@pytest.mark.parametrize("left", [None, b"", b" \n", bytes(40)])
def test_a_memory_that_is_gone_or_empty_is_named_with_the_way_back(
    made: tuple[Settings, Lake], left: bytes | None
) -> None:
    settings, lake = made
    path, written = settings.memory_file, settings.memory_file.read_bytes()
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    (said,) = offenders(settings, lake)
    assert said.startswith(f"{path} is {'missing' if left is None else 'empty'}, although lines were approved: ")
    _, command, _, _, _ = said.split("`")
    subprocess.run(command, shell=True, check=True)
    assert path.read_bytes() == written
    assert offenders(settings, lake) == []


def test_of_lines_that_a_person_had_removed_before_nothing_is_missed(made: tuple[Settings, Lake]) -> None:
    settings, lake = made
    settings.memory_file.write_text("# Memory\n", "utf-8")
    reconcile(Workspace(settings, lake), at("18:01"))
    settings.memory_file.unlink()
    assert offenders(settings, lake) == []


def test_on_a_server_whose_user_reviews_elsewhere_no_line_is_missed(
    made: tuple[Settings, Lake], tmp_path: Path
) -> None:
    settings, lake = made
    ids = [f"p-20250306-00{number}" for number in range(6)]
    put(lake, "proposals", *(proposal(int(i[-1]), f"Use tool {i}.", day=day_after(1)) for i in ids))
    decide(Workspace(settings, lake), dict.fromkeys(ids, APPROVED), at("19:00"))
    reconcile(Workspace(settings, lake), at("19:00"))
    far, server = Lake(FarFolder(lake.root)), tmp_path / "server" / "MEMORY.md"
    verdict = judge_integrity(far, server)
    assert verdict.passed and verdict.numbers["promoted"] == 7 and verdict.numbers["removed_by_hand"] == 0
    settings.memory_file.unlink()  # of who reviews, it is missed
    (said,) = judge_integrity(far, settings.memory_file).offenders
    assert said.startswith(f"{settings.memory_file} is missing, although lines were approved")
