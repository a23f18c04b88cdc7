"""REVIEW.md over time: damaged, saved from an older copy, saved while we write, and longer than its limit."""

from pathlib import Path

import pytest

from memory_pipeline.markdown.safe_write import ChangedMeanwhileError
from memory_pipeline.proposals import review
from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.proposals.test_review import FRIDAY, LINT, NOW, TABS, TEXTS, UTC, UV, Story
from memory_pipeline_tests.rows import bytes_of, workspace


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),  # deleted by accident
        lambda path: path.write_bytes(b""),  # a full disk
        lambda path: path.write_text("x] something else entirely"),
        lambda path: path.write_bytes(path.read_bytes()[:150]),  # cut off
    ],
)
def test_a_damaged_review_file_takes_no_decision_and_comes_back(story: Story, damage: object) -> None:
    story.mark(UV, "x")
    damage(story.review)  # type: ignore[operator]
    left = story.review.read_bytes() if story.review.exists() else b""
    settled = story.run()
    assert settled.damaged
    assert story.status() == dict.fromkeys(TEXTS, "pending")
    assert story.shown() == list(TEXTS)
    kept = [p.read_bytes() for p in story.settings.backups.glob("REVIEW.md.2*")]
    assert not left or left in kept  # what was there is not lost
    assert story.run(2).damaged is None


def test_only_so_many_are_shown_and_the_queue_moves_up(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=2)
    assert story.shown() == [UV, FRIDAY]
    story.mark(UV, "x")
    story.run()
    assert story.shown() == [FRIDAY, TABS]  # what was shown stays, the next one moves up
    story.mark(FRIDAY, "-")
    story.mark(TABS, "-")
    story.run(2)
    assert story.shown() == [UTC, LINT]
    assert story.status()[LINT] == "pending"


def test_without_proposals_no_file_is_made(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    reconcile(Workspace(settings, lake), NOW)
    assert reconcile(Workspace(settings, lake), NOW).promoted == []
    assert bytes_of(tmp_path) == {}


def test_a_save_while_we_write_is_read_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person saves between our reading and our writing: their second mark counts too."""
    story.mark(UV, "x")
    saved: list[bool] = []

    def save_meanwhile(settings: Settings, text: str) -> None:
        if not saved:
            saved.append(True)
            story.mark(FRIDAY, "x")

    monkeypatch.setattr("memory_pipeline.proposals.review._write_shown", save_meanwhile)
    story.run()
    assert story.settled.approved == [UV, FRIDAY]
    assert story.status()[FRIDAY] == APPROVED


def test_three_hands_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run writes, the person saves a copy that they opened before the run before: with marks, with a note of
    theirs and without a line that was deleted. Their marks and words count, what they never saw is not rejected."""
    story = Story(tmp_path, pending_limit=3)
    opened = story.review.read_text("utf-8")
    decide(Workspace(story.settings, story.lake), {TABS: APPROVED}, NOW)
    story.run()  # TABS goes, UTC comes
    mine = opened.replace(f"- [ ] `{UV}`", f"- [x] `{UV}`").replace(
        "## Proposed for: Hard Rules\n", "## Proposed for: Hard Rules\n\nAsk Ann.\n\n"
    )
    write, saves = review._write_shown, [mine.encode()]

    def saved_meanwhile(settings: Settings, text: str) -> None:
        write(settings, text)
        if saves:
            story.review.write_bytes(saves.pop())

    monkeypatch.setattr(review, "_write_shown", saved_meanwhile)
    story.mark(FRIDAY, "-")  # what the file has when the run begins
    settled = story.run(2)
    assert (settled.approved, settled.rejected) == ([UV], [FRIDAY])
    assert story.status() == {UV: APPROVED, FRIDAY: "rejected", TABS: APPROVED, UTC: "pending", LINT: "pending"}
    text = story.review.read_text("utf-8")
    assert "\nAsk Ann.\n" in text
    assert story.shown() == [UTC, LINT]
    assert mine.encode() in [path.read_bytes() for path in story.settings.backups.glob("REVIEW.md.2*")]


def test_a_writer_in_another_process_is_noticed_up_to_the_last_look(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attempt meets another save: nothing is written, and the person's last copy is what stays."""
    story.mark(UV, "x")
    write, count = review._write_shown, iter(range(100))

    def saved_always(settings: Settings, text: str) -> None:
        write(settings, text)
        story.review.write_text(story.review.read_text("utf-8") + f"\nnote {next(count)}\n", "utf-8")

    monkeypatch.setattr(review, "_write_shown", saved_always)
    with pytest.raises(ChangedMeanwhileError):
        story.run()
    monkeypatch.undo()
    assert "note 0\n" in story.review.read_text("utf-8")
    story.run(2)
    assert "Use uv" in story.remembered()
    assert "note 0\n" in story.review.read_text("utf-8")
