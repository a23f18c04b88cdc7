"""At the moment of approval a proposal is looked at once more: what no longer holds is refused with a reason."""

from pathlib import Path

import pytest

from memory_pipeline.proposals.events import APPROVED, INVALID
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.proposals.test_review import FRIDAY, NOW, TEXTS, UV, Story
from memory_pipeline_tests.rows import events, put, say


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def approve(story: Story, proposal_id: str = UV, text: str | None = None) -> str | None:
    """Why it was refused, if it was."""
    texts = {proposal_id: text} if text else None
    reasons = decide(Workspace(story.settings, story.lake), {proposal_id: APPROVED}, NOW, texts=texts)
    reconcile(Workspace(story.settings, story.lake), NOW)
    return reasons.get(proposal_id)


def remember(story: Story, *lines: str) -> bytes:
    text = "# Memory\n\n## Hard Rules\n" + "".join(f"- {line}\n" for line in lines)
    story.memory.write_text(text, "utf-8")
    return story.memory.read_bytes()


def test_with_nothing_against_it_it_is_promoted(story: Story) -> None:
    assert approve(story) is None
    assert "Use uv for Python." in story.remembered()


@pytest.mark.parametrize("line", ["Use uv for Python", "(2025-01-01) use uv for Python.", "For python use uv!"])
def test_what_memory_says_already_is_not_said_twice(story: Story, line: str) -> None:
    before = remember(story, "Be kind", line)
    assert approve(story) == "MEMORY.md already says this, in line 5"
    assert story.memory.read_bytes() == before
    assert story.status()[UV] == INVALID
    assert events(story.lake, "promoted").height == 0


def test_the_reason_is_kept_and_told_in_the_log(story: Story) -> None:
    remember(story, "Use uv for Python")
    story.mark(UV, "x")
    settled = story.run()
    assert settled.approved == []
    assert settled.invalid == {UV: "MEMORY.md already says this, in line 4"}
    assert events(story.lake, "decided")["reason"].to_list() == ["MEMORY.md already says this, in line 4"]
    assert f"invalid `{UV}` Use uv for Python. (MEMORY.md already says this" in story.settings.daily_log(
        NOW.date()
    ).read_text("utf-8")
    assert UV not in story.shown()


def test_an_edited_text_is_refused_only_when_it_is_the_same(story: Story) -> None:
    remember(story, "Never deploy on a Friday afternoon")
    assert approve(story, FRIDAY, "Never deploy on a Friday evening") is None
    assert "evening" in story.remembered()


def test_a_struck_line_says_nothing(story: Story) -> None:
    remember(story, "~~Use uv for Python~~ (superseded by p-20250101-001, 2025-01-02)")
    assert approve(story) is None


def test_words_that_were_taken_back_are_not_remembered(story: Story) -> None:
    (message, *_) = say(story.lake, "s1", "user: Use uv for Python.", "assistant: Done.")
    put(story.lake, "messages")
    frame = story.lake.read("messages")
    assert approve(story, FRIDAY) is None  # said in the same message
    story.lake.replace("messages", frame.filter(frame["message_id"] != message["message_id"]), [message["day"]])
    assert approve(story) == "its source was withdrawn, made private or deleted"


def test_a_message_that_was_voided_was_taken_back(story: Story) -> None:
    say(story.lake, "s1", "user: Use uv for Python.")
    frame = story.lake.read("messages")
    story.lake.replace("messages", frame.with_columns(voided=True), [frame["day"][0]])
    assert approve(story) == "its source was withdrawn, made private or deleted"


def test_a_text_of_hidden_characters_is_no_line(story: Story) -> None:
    story.mark(UV, "x")
    story.edit(TEXTS[UV], "\u200b\u2060")
    story.run()
    assert story.settled.invalid == {UV: "none of its text is visible"}
    reconcile(Workspace(story.settings, story.lake), NOW)
    assert not story.memory.exists()
