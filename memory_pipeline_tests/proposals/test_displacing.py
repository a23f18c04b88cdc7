"""Better lines take the places of lines in REVIEW.md that nobody has touched; these wait, and come back."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.proposals.events import APPROVED, COMMAND_SURFACE, EXPIRED, PENDING, REJECTED, ProposalLog
from memory_pipeline.proposals.history import history
from memory_pipeline.proposals.review import on_display
from memory_pipeline.proposals.review_file import offered_in
from memory_pipeline_tests.proposals.test_review import FRIDAY, NOW, TABS, UTC, UV, Story
from memory_pipeline_tests.rows import proposal, put, record_showings, without_events

BETTER = "p-20250305-101"
RULE = "Never push to main without a review."
DAY_IN_MINUTES = 60 * 24


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Three of five lines are shown: uv, Friday and tabs, the last of them the weakest."""
    return Story(tmp_path, pending_limit=3)


def say_better(story: Story) -> None:
    """A rule that stands above all lines that are shown, from sessions of today."""
    put(story.lake, "proposals", proposal(101, RULE, support=5, sessions=4))


def text_of(story: Story) -> str:
    return story.review.read_text("utf-8")


def in_review(story: Story) -> list[str]:
    return [p for p in (UV, FRIDAY, TABS, UTC, BETTER) if f"] `{p}`" in text_of(story)]


def moments(story: Story, proposal_id: str) -> list[tuple[str, int]]:
    """What is told of it, with the minutes since it was first shown."""
    told = [e for e in history(story.workspace, proposal_id) if e["event"] in ("shown", "displaced")]
    return [(e["event"], round((e["moment"] - NOW).total_seconds() / 60)) for e in told]


def test_the_second_best_of_156_is_in_review(tmp_path: Path) -> None:
    """As an audit found it: twenty weaker lines, shown before, held all the places."""
    story = Story(tmp_path)
    more = [proposal(n, f"Prefer tool number {n} to all the others.", priority="medium") for n in range(10, 160)]
    put(story.lake, "proposals", *more[:20])
    story.run(10)
    assert BETTER not in text_of(story)
    put(story.lake, "proposals", *more[20:], proposal(2000, "Best of all.", support=9, sessions=9))
    put(story.lake, "proposals", proposal(2001, RULE, support=5, sessions=4))
    story.run(20)
    ranked = [row["proposal_id"] for row in ProposalLog(story.lake).pending()]
    assert ranked.index("p-20250305-2001") == 1 and len(ranked) == 157
    assert RULE in text_of(story)
    assert {p for p in ranked if f"] `{p}`" in text_of(story)} == set(ranked[:20])
    assert "_The best 20 of 157 pending proposals are shown here; the other 137 wait. `memory review`" in text_of(story)
    assert text_of(story).splitlines()[-1].endswith(" | 20 shown of 157 proposals pending_")


def test_what_was_said_lately_has_places_beside_the_lines_of_a_backfilled_year(tmp_path: Path) -> None:
    """Half of them: a hundred better lines of months ago leave room for what is new, and that for the best of them."""
    story, month = Story(tmp_path), 30 * DAY_IN_MINUTES
    said = {"day": (NOW + timedelta(days=29)).date(), "last_seen": NOW + timedelta(days=29), "priority": "medium"}
    new = [proposal(n, f"Prefer tool number {n} to all the others.", **said) for n in range(400, 415)]
    old = [proposal(n, f"{RULE} {n}", support=9, sessions=9) for n in range(200, 300)]
    put(story.lake, "proposals", *old, *new[:3])
    story.run(month)
    there = set(offered_in(text_of(story)))
    assert len(there) == 20 and {row["proposal_id"] for row in new[:3]} < there
    put(story.lake, "proposals", *new[3:])
    story.run(month + 1)
    there = set(offered_in(text_of(story)))
    assert len(there) == 20 and len({row["proposal_id"] for row in new} & there) == 10


def test_the_weakest_makes_room_and_comes_back(story: Story) -> None:
    say_better(story)
    story.run(5)
    assert in_review(story) == [UV, FRIDAY, BETTER]
    assert story.status()[TABS] == PENDING
    story.mark(BETTER, "x")
    story.run(10)
    assert in_review(story) == [UV, FRIDAY, TABS]
    assert moments(story, TABS) == [("shown", 0), ("displaced", 5), ("shown", 10)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Indent Makefiles with tabs.", "Indent Makefiles with tabs, never spaces."),
        (f"- [ ] `{TABS}`", f"- [?] `{TABS}`"),  # which is not understood
        ("Indent Makefiles with tabs.\n", "Indent Makefiles with tabs.\n    and only these\n"),
        ("· said 1 times_\n", "· said 1 times_\n  What did we decide on this?\n"),
        ("· said 1 times_\n", "· said 1 times_\nNot indented: ask Ann.\n"),
        (f"- [ ] `{TABS}`", f"## Proposed for: Patterns\n- [ ] `{TABS}`"),  # moved
    ],
)
def test_what_a_user_touched_is_never_displaced(story: Story, old: str, new: str) -> None:
    head, tail = text_of(story).rsplit(old, 1) if "said" in old else text_of(story).split(old, 1)
    story.review.write_text(head + new + tail, "utf-8")
    story.run(3)  # what was touched stays so also once we have written the file again
    say_better(story)
    story.run(5)
    assert TABS in in_review(story) and BETTER in in_review(story)
    assert new in text_of(story)
    assert moments(story, TABS) == [("shown", 0)]


@pytest.mark.parametrize(("mark", "state"), [("x", APPROVED), ("-", REJECTED)])
def test_a_mark_in_a_copy_that_was_open_counts(story: Story, mark: str, state: str) -> None:
    """The line was displaced while a user had REVIEW.md open in an editor."""
    open_in_an_editor = text_of(story)
    say_better(story)
    story.run(5)
    story.review.write_text(open_in_an_editor.replace(f"- [ ] `{TABS}`", f"- [{mark}] `{TABS}`"), "utf-8")
    settled = story.run(6)
    assert story.status()[TABS] == state
    assert settled.ignored == [BETTER]  # which that copy never showed
    assert story.status()[BETTER] == PENDING
    assert BETTER in in_review(story)


def test_only_time_on_display_counts(story: Story) -> None:
    story.run_daily(5 * DAY_IN_MINUTES)
    assert "expires on 2025-03-12_" in text_of(story)
    say_better(story)
    story.mark(UV, "x")
    story.mark(FRIDAY, "x")
    story.run_daily(5 * DAY_IN_MINUTES + 1)
    assert in_review(story) == [TABS, UTC, BETTER]
    put(story.lake, "proposals", *(proposal(n, f"{RULE} {n}", support=5, sessions=4) for n in (102, 103)))
    story.run_daily(6 * DAY_IN_MINUTES)  # six days on display
    assert in_review(story) == [BETTER]
    story.run_daily(12 * DAY_IN_MINUTES)
    assert story.status()[TABS] == PENDING
    for n in (101, 102, 103):
        story.mark(f"p-20250305-{n}", "-")
    story.run_daily(12 * DAY_IN_MINUTES + 1)
    assert TABS in in_review(story)
    assert "expires on 2025-03-18_" in (as_it_came_back := text_of(story))  # it has the seventh day left
    story.run_daily(12 * DAY_IN_MINUTES + 2)
    assert text_of(story) == as_it_came_back
    story.run_daily(13 * DAY_IN_MINUTES)
    assert story.status()[TABS] == EXPIRED


def test_a_run_that_dies_before_it_is_on_record_is_made_up_for(story: Story) -> None:
    say_better(story)
    story.run(5)
    without_events(story.lake, pl.col("kind").is_in(["displaced", "shown"]) & (pl.col("happened_at") > NOW))
    story.run(6)
    assert moments(story, TABS) == [("shown", 0), ("displaced", 6)]
    assert moments(story, BETTER) == [("shown", 6)]


def test_the_command_shows_the_best_first_as_the_file_does(story: Story) -> None:
    say_better(story)
    story.run(5)
    assert [r["proposal_id"] for r in on_display(story.workspace, ProposalLog(story.lake))] == [BETTER, UV, FRIDAY]


def test_to_be_listed_by_the_command_starts_no_time(story: Story) -> None:
    record_showings(story.workspace, {UTC: None}, NOW, surface=COMMAND_SURFACE)
    story.run_daily(7 * DAY_IN_MINUTES)
    assert story.status()[UTC] == PENDING
    row = ProposalLog(story.lake).rows([UTC])[UTC]
    assert row["first_shown"] == NOW + timedelta(days=7)
