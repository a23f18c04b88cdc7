"""What was shown for a week without a decision ends; what nobody could see does not."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.events import APPROVED, EXPIRED, PENDING
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.workspace import Workspace
from memory_pipeline_tests.proposals.test_review import FRIDAY, LINT, NOW, TABS, TEXTS, UTC, UV, Story
from memory_pipeline_tests.rows import bytes_of, record_showings

DAY_IN_MINUTES = 60 * 24


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def first_shown(story: Story, surface: str = "REVIEW.md") -> dict[str, datetime]:
    rows = story.lake.read("showings").to_dicts()
    return {r["proposal_id"]: r["shown_at"] for r in rows if r["surface"] == surface}


def test_what_stands_in_review_was_shown_from_then_on(story: Story) -> None:
    assert first_shown(story) == dict.fromkeys(TEXTS, NOW)
    story.run(60)
    assert first_shown(story) == dict.fromkeys(TEXTS, NOW)  # the first time counts


def test_what_waits_in_the_queue_was_not_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=2)
    story.mark(UV, "x")
    story.run(5)
    assert first_shown(story) == {UV: NOW, FRIDAY: NOW, TABS: NOW + timedelta(minutes=5)}


@pytest.mark.parametrize(
    ("days", "told", "state"),
    [
        (4.9, False, PENDING),
        (5, True, PENDING),
        (6.9, True, PENDING),
        (7, False, EXPIRED),
    ],
)
def test_a_week_from_the_showing_and_a_warning_before(story: Story, days: float, told: bool, state: str) -> None:
    settled = story.run(round(days * DAY_IN_MINUTES))
    assert set(story.status().values()) == {state}
    assert ("· expires on 2025-03-12_" in story.review.read_text("utf-8")) is told
    assert settled.expired == (list(TEXTS) if state == EXPIRED else [])
    assert story.shown() == ([] if state == EXPIRED else list(TEXTS))


def test_the_days_can_be_set(tmp_path: Path) -> None:
    story = Story(tmp_path, proposal_expiry_days=2)
    story.run(DAY_IN_MINUTES)
    assert "expires on 2025-03-07" in story.review.read_text("utf-8")
    story.run(2 * DAY_IN_MINUTES)
    assert set(story.status().values()) == {EXPIRED}


def test_the_queue_moves_up_and_its_time_begins_then(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=3)
    story.run(7 * DAY_IN_MINUTES)
    assert story.shown() == [UTC, LINT]
    story.run(13 * DAY_IN_MINUTES)
    assert story.status()[LINT] == PENDING
    story.run(14 * DAY_IN_MINUTES)
    assert story.status()[LINT] == EXPIRED


def test_the_last_decision_counts_before_the_expiry(story: Story) -> None:
    story.mark(UV, "x")
    story.run(8 * DAY_IN_MINUTES)
    assert story.status()[UV] == APPROVED
    assert "Use uv" in story.remembered()
    assert story.status()[FRIDAY] == EXPIRED


def test_a_copy_that_comes_too_late_is_told(story: Story) -> None:
    open_in_an_editor = story.review.read_text("utf-8").replace(f"- [ ] `{UV}`", f"- [x] `{UV}`")
    story.run(7 * DAY_IN_MINUTES)
    story.review.write_text(open_in_an_editor, "utf-8")
    settled = story.run(7 * DAY_IN_MINUTES + 1)
    assert settled.late == dict.fromkeys(TEXTS, EXPIRED)
    assert settled.ignored == []
    assert story.status()[UV] == EXPIRED
    assert story.remembered() == ""


def test_a_review_file_that_cannot_be_read_may_hold_the_decision(story: Story) -> None:
    story.review.unlink()
    settled = story.run(7 * DAY_IN_MINUTES)
    assert settled.damaged
    assert set(story.status().values()) == {PENDING}
    assert set(story.run(7 * DAY_IN_MINUTES + 1).expired) == set(TEXTS)


def test_expiries_stand_in_the_log_apart_from_decisions(story: Story) -> None:
    story.mark(UV, "-")
    story.run(7 * DAY_IN_MINUTES)
    text = story.settings.daily_log(datetime(2025, 3, 12).date()).read_text("utf-8")
    taken, ended = text.split("<!-- /memory:decisions -->")
    assert f"rejected `{UV}`" in taken
    assert "expired" not in taken
    assert ended.count("18:00 expired `p-") == 4


def test_an_expired_line_leaves_nothing_to_do(story: Story, tmp_path: Path) -> None:
    story.run(7 * DAY_IN_MINUTES)
    before = bytes_of(tmp_path)
    assert story.run(30 * DAY_IN_MINUTES).expired == []
    assert bytes_of(tmp_path) == before


def test_a_warning_is_written_once(story: Story, tmp_path: Path) -> None:
    story.run(5 * DAY_IN_MINUTES)
    before = bytes_of(tmp_path)
    story.run(6 * DAY_IN_MINUTES)
    assert bytes_of(tmp_path) == before


def test_the_first_surface_that_shows_it_starts_the_time(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=1)
    record_showings(Workspace(story.settings, story.lake), {TABS: "task-7"}, NOW, surface="todoist")
    record_showings(Workspace(story.settings, story.lake), {TABS: "task-8"}, NOW + timedelta(days=3), surface="todoist")
    (row,) = [r for r in story.lake.read("showings").to_dicts() if r["surface"] == "todoist"]
    assert (row["external_id"], row["shown_at"]) == ("task-7", NOW)
    story.run(7 * DAY_IN_MINUTES)
    assert [story.status()[p] for p in (UV, TABS, FRIDAY)] == [EXPIRED, EXPIRED, PENDING]


def test_what_is_a_task_expires_only_once_the_tasks_are_read(tmp_path: Path) -> None:
    """It may be completed there already, and nobody has looked yet."""
    story = Story(tmp_path, todoist=True)
    record_showings(Workspace(story.settings, story.lake), {UV: "task 1"}, NOW, surface="todoist")
    story.run(8 * DAY_IN_MINUTES)
    assert story.status()[UV] == PENDING and story.status()[TABS] == EXPIRED
    later = NOW + timedelta(days=9)
    assert reconcile(Workspace(story.settings, story.lake), later, tasks_are_read=True).expired == [UV]
