"""What runs showed on seven days without a decision ends; what nobody could see does not."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.operations.migrations import (
    m003_offer_again_what_expired_unseen,
    m005_put_what_happened_to_proposals_into_events,
)
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import APPROVED, EXPIRED, EXPIRY_SURFACE, PENDING, Decision, ProposalLog
from memory_pipeline.proposals.history import history
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.proposals.test_review import FRIDAY, LINT, NOW, TABS, TEXTS, UTC, UV, Story
from memory_pipeline_tests.rows import (
    bytes_of,
    events,
    proposal,
    put,
    record_decisions,
    record_showings,
    store_as_before,
    without_events,
)

DAY_IN_MINUTES = 60 * 24


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def first_shown(story: Story, surface: str = "REVIEW.md") -> dict[str, datetime]:
    rows = events(story.lake, "shown").to_dicts()
    return {r["proposal_id"]: r["happened_at"] for r in rows if r["surface"] == surface}


def test_what_stands_in_review_was_shown_from_then_on(story: Story) -> None:
    assert first_shown(story) == dict.fromkeys(TEXTS, NOW)
    story.run(60)
    assert first_shown(story) == dict.fromkeys(TEXTS, NOW)  # the first time counts


def test_what_waits_in_the_queue_was_not_shown(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=2)
    story.mark(UV, "x")
    story.run(5)
    assert first_shown(story) == {UV: NOW, FRIDAY: NOW, TABS: NOW + timedelta(minutes=5)}


def test_a_week_from_the_showing_and_a_warning_before(story: Story) -> None:
    for days, told, state in ((4, False, PENDING), (5, True, PENDING), (6, True, PENDING), (7, False, EXPIRED)):
        settled = story.run_daily(days * DAY_IN_MINUTES)
        assert set(story.status().values()) == {state}
        assert ("· expires on 2025-03-12_" in story.review.read_text("utf-8")) is told, f"after {days} days"
        assert settled.expired == (list(TEXTS) if state == EXPIRED else [])
        assert story.shown() == ([] if state == EXPIRED else list(TEXTS))


def test_the_days_can_be_set(tmp_path: Path) -> None:
    story = Story(tmp_path, proposal_expiry_days=2)
    story.run_daily(DAY_IN_MINUTES)
    assert "expires on 2025-03-07" in story.review.read_text("utf-8")
    story.run_daily(2 * DAY_IN_MINUTES)
    assert set(story.status().values()) == {EXPIRED}


def test_the_last_decision_counts_before_the_expiry(story: Story) -> None:
    story.run_daily(6 * DAY_IN_MINUTES)
    story.mark(UV, "x")
    story.run(8 * DAY_IN_MINUTES)
    assert story.status()[UV] == APPROVED
    assert "Use uv" in story.remembered()
    assert story.status()[FRIDAY] == EXPIRED


def test_a_copy_that_comes_too_late_is_told(story: Story) -> None:
    open_in_an_editor = story.review.read_text("utf-8").replace(f"- [ ] `{UV}`", f"- [x] `{UV}`")
    story.run_daily(7 * DAY_IN_MINUTES)
    story.review.write_text(open_in_an_editor, "utf-8")
    settled = story.run_daily(7 * DAY_IN_MINUTES + 1)
    assert settled.already == dict.fromkeys(TEXTS, EXPIRED)
    assert settled.ignored == []
    assert story.status()[UV] == EXPIRED
    assert story.remembered() == ""


def test_a_review_file_that_cannot_be_read_may_hold_the_decision(story: Story) -> None:
    story.run_daily(6 * DAY_IN_MINUTES)
    story.review.unlink()
    settled = story.run(7 * DAY_IN_MINUTES)
    assert settled.damaged
    assert set(story.status().values()) == {PENDING}
    assert set(story.run_daily(7 * DAY_IN_MINUTES + 1).expired) == set(TEXTS)


def test_a_warning_is_written_once(story: Story, tmp_path: Path) -> None:
    story.run_daily(5 * DAY_IN_MINUTES)
    before = bytes_of(tmp_path)
    story.run_daily(6 * DAY_IN_MINUTES)
    after = bytes_of(tmp_path)
    assert {name for name in after if after[name] != before.get(name)} == {
        name
        for name in after
        if "events/2025-03-11" in name  # that it was shown on one more day
    }
    assert before.keys() <= after.keys()


def test_the_first_surface_that_shows_it_starts_the_time(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=1)
    record_showings(Workspace(story.settings, story.lake), {TABS: "task-7"}, NOW, surface="todoist")
    record_showings(Workspace(story.settings, story.lake), {TABS: "task-8"}, NOW + timedelta(days=3), surface="todoist")
    (row,) = [r for r in events(story.lake, "shown").to_dicts() if r["surface"] == "todoist"]
    assert (row["external_id"], row["happened_at"]) == ("task-7", NOW)
    story.run_daily(7 * DAY_IN_MINUTES)
    assert [story.status()[p] for p in (UV, TABS, FRIDAY)] == [EXPIRED, EXPIRED, PENDING]


def test_what_is_a_task_expires_only_once_the_tasks_are_read(tmp_path: Path) -> None:
    """It may be completed there already, and nobody has looked yet."""
    story = Story(tmp_path, todoist=True)
    record_showings(Workspace(story.settings, story.lake), {UV: "task 1"}, NOW, surface="todoist")
    story.run_daily(8 * DAY_IN_MINUTES)
    assert story.status()[UV] == PENDING and story.status()[TABS] == EXPIRED
    later = NOW + timedelta(days=9)
    assert reconcile(Workspace(story.settings, story.lake), later, tasks_are_read=True).expired == [UV]


# --- clocks and holidays ---

TEN_YEARS = 3652 * DAY_IN_MINUTES


def test_a_clock_that_jumps_ahead_and_back_ends_nothing(story: Story) -> None:
    story.run_daily(2 * DAY_IN_MINUTES)
    story.mark(UV, "x")
    assert story.run(TEN_YEARS).expired == []
    story.run(TEN_YEARS + 30)
    settled = story.run(3 * DAY_IN_MINUTES)
    assert (settled.expired, story.shown()) == ([], [FRIDAY, TABS, UTC, LINT])
    assert "expires on" not in story.review.read_text("utf-8")
    story.last_run = 3 * DAY_IN_MINUTES
    assert story.run_daily(6 * DAY_IN_MINUTES).expired == []  # seven days with that of the jump, but not a week yet
    assert set(story.run(7 * DAY_IN_MINUTES).expired) == {FRIDAY, TABS, UTC, LINT}


def test_three_weeks_without_a_run_end_nothing(story: Story) -> None:
    story.run_daily(2 * DAY_IN_MINUTES)
    assert story.run(23 * DAY_IN_MINUTES).expired == []
    assert story.status() == dict.fromkeys(TEXTS, PENDING)
    assert story.run_daily(26 * DAY_IN_MINUTES).expired == []  # days 0, 1, 2, 23, 24, 25
    assert "· expires on 2025-04-01_" in story.review.read_text("utf-8")
    assert set(story.run(27 * DAY_IN_MINUTES).expired) == set(TEXTS)


def test_what_came_while_the_clock_was_ahead_has_its_days(tmp_path: Path) -> None:
    story = Story(tmp_path, proposal_expiry_days=3)
    put(story.lake, "proposals", late := proposal(9, "Never commit on a full moon."))
    story.run(TEN_YEARS)
    for day in range(1, 3):
        assert late["proposal_id"] not in story.run(day * DAY_IN_MINUTES).expired
    assert story.run(3 * DAY_IN_MINUTES).expired == [*TEXTS, late["proposal_id"]]  # the jump was a day of showing too


# --- workspaces in which days were not counted yet ---


class Before(Story):
    """As an older version left it: shown once, ended by the clock, with no days on record."""

    def __init__(self, folder: Path, *, ran_on: int = 0, ended: int = 22 * DAY_IN_MINUTES) -> None:
        super().__init__(folder)
        without_events(self.lake, pl.col("kind") == "shown_day")
        for day in range(1, ran_on):
            record_showings(
                self.workspace, {f"p-20250305-9{day:02}": None}, NOW + timedelta(days=day), surface="REVIEW.md"
            )
        over = [Decision(p, EXPIRED, EXPIRY_SURFACE, text) for p, text in TEXTS.items()]
        record_decisions(self.workspace, over, NOW + timedelta(minutes=ended))

    def migrate(self) -> None:
        store_as_before(self.lake)
        m003_offer_again_what_expired_unseen(self.settings)
        m005_put_what_happened_to_proposals_into_events(self.settings)


@each(("ended", "now"), [(22, 23), (3652, 1), (3652, 3)])
def test_what_expired_unseen_is_offered_again_once(tmp_path: Path, ended: int, now: int) -> None:
    story = Before(tmp_path, ended=ended * DAY_IN_MINUTES)
    story.migrate()
    story.run(now * DAY_IN_MINUTES)
    assert story.shown() == list(TEXTS)
    assert story.status() == dict.fromkeys(TEXTS, PENDING)
    (again,) = [e for e in history(story.workspace, UV) if e["event"] == "offered again"]
    assert again["detail"].startswith("it is known to have been shown on ")
    expired = [e["moment"] for e in history(story.workspace, UV) if e["event"] == "expired"]
    assert expired == [NOW + timedelta(days=ended)]
    m003_offer_again_what_expired_unseen(story.settings)
    assert events(story.lake, "reoffered").height == len(TEXTS)
    decide(story.workspace, {UV: "approved"}, NOW + timedelta(days=now, hours=1))
    story.last_run = now * DAY_IN_MINUTES
    story.run_daily((now + 8) * DAY_IN_MINUTES)
    assert story.status() == {p: APPROVED if p == UV else EXPIRED for p in TEXTS}
    assert "Use uv" in story.remembered()
    assert judge_integrity(story.lake, story.memory).offenders == []
    log = ProposalLog(story.lake)
    assert log.events("decided").height == 2 * log.decisions.height == 10  # nothing on record is changed


def test_what_was_shown_on_half_of_the_days_was_seen(tmp_path: Path) -> None:
    for days, state in ((3, PENDING), (4, EXPIRED)):
        story = Before(tmp_path / f"{days}", ran_on=days, ended=8 * DAY_IN_MINUTES)
        story.migrate()
        assert story.status() == dict.fromkeys(TEXTS, state)


def test_what_is_settled_otherwise_is_not_offered_again(tmp_path: Path) -> None:
    story = Before(tmp_path)
    record_showings(story.workspace, {TABS: "task-7"}, NOW, surface="todoist")  # completing it there would approve it
    put(story.lake, "proposals", proposal(9, "Deploy on a Friday, with two people.", supersedes=[FRIDAY]))
    story.migrate()
    assert events(story.lake, "reoffered")["proposal_id"].to_list() == [UV, UTC, LINT]
