"""A process that dies between any two of its writes costs nothing but the next run.

Every file that is written (tables, REVIEW.md, MEMORY.md, the log, backups) is put in place by a rename. So a crash is
tried before and after each rename of a whole story; the run after it must end where one without a crash ends.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.proposals.lifecycle import APPROVED, decide, promote, settle_review
from memory_pipeline_tests.proposals.test_lifecycle import FRIDAY, LINT, NOW, TABS, UTC, UV, Story
from memory_pipeline_tests.rows import bytes_of, day_after, proposal, put


class Killed(BaseException):
    """Like a SIGKILL: nothing that we wrote catches it."""


def marked(folder: Path) -> Story:
    """Three proposals are shown, two wait; a person has decided on the three, and MEMORY.md has words of theirs."""
    story = Story(folder, pending_limit=3)
    story.memory.write_text("# Memory\n\nBy hand.\n\n## Hard Rules\n- Be kind\n", "utf-8")
    story.mark(UV, "x")
    story.edit("Never deploy on a Friday.", "Deploy from Monday to Thursday only.")
    story.mark(FRIDAY, "x")
    story.mark(TABS, "-")
    return story


def state(story: Story) -> dict[str, object]:
    """All files, but for backups, of which a crash may leave more, and whether a line was there already: after a
    crash behind MEMORY.md it was."""
    files = bytes_of(story.settings.workspace).items()
    kept = {k: v for k, v in files if not k.startswith(("backups/", "lake/promotions/"))}
    promotions = story.lake.read("promotions").drop("already_there").to_dicts()
    return kept | {"shown": (story.settings.backups / "REVIEW.md.shown").read_bytes(), "promotions": promotions}


def die_at(monkeypatch: pytest.MonkeyPatch, number: int, *, before: bool) -> list[str]:
    """Raise `Killed` around the rename of that number; returns the names that are put in place."""
    rename: Callable[..., Any] = Path.replace
    seen: list[str] = []

    def counted(self: Path, target: Any) -> Path:
        seen.append(Path(target).name)
        if len(seen) == number and before:
            raise Killed
        done: Path = rename(self, target)
        if len(seen) == number:
            raise Killed
        return done

    monkeypatch.setattr(Path, "replace", counted)
    return seen


def renames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], dict[str, object]]:
    """What a run without a crash puts in place, and where it ends."""
    story = marked(folder)
    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        story.run()
    return seen, state(story)


def test_a_crash_at_any_write_changes_nothing_about_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, wanted = renames(tmp_path / "whole", monkeypatch)
    assert {"2025-03-05.parquet", "2025-03-05.md", "REVIEW.md.shown", "REVIEW.md", "MEMORY.md"} <= set(seen)
    for number in range(1, len(seen) + 1):
        for before in (True, False):
            story = marked(tmp_path / f"{number}{before}")
            with monkeypatch.context() as patch:
                die_at(patch, number, before=before)
                with pytest.raises(Killed):
                    story.run()
            assert b"By hand." in story.memory.read_bytes()
            story.run()
            assert state(story) == wanted, f"killed {'before' if before else 'after'} {seen[number - 1]} ({number})"
            story.run()
            assert state(story) == wanted


def test_a_crash_while_proposals_end_by_themselves_changes_nothing_about_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A week later: what was shown expires, one gives way to a newer one, others come up, one is approved."""

    def week_later(folder: Path) -> Story:
        story = Story(folder, pending_limit=3)
        newer = proposal(9, "Indent with spaces.", day=day_after(1)) | {"supersedes": [UTC]}
        put(story.lake, "proposals", newer)
        story.mark(UV, "x")
        return story

    whole = week_later(tmp_path / "whole")
    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        whole.run(7 * 24 * 60)
    assert sorted(whole.status().values()) == ["approved", "expired", "expired", "pending", "pending", "superseded"]
    for number in range(1, len(seen) + 1):
        story = week_later(tmp_path / f"{number}")
        with monkeypatch.context() as patch:
            die_at(patch, number, before=False)
            with pytest.raises(Killed):
                story.run(7 * 24 * 60)
        story.run(7 * 24 * 60)
        assert state(story) == state(whole), seen[number - 1]


def test_a_crash_while_deciding_at_the_command_line_is_mended_by_deciding_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`memory review --approve` dies: the decision is recorded or not, and never half."""
    whole = Story(tmp_path / "whole")
    seen = die_at(monkeypatch, 0, before=True)
    decide(whole.settings, whole.lake, {UV: APPROVED}, NOW)
    count = len(seen)
    whole.run()
    for number in range(1, count + 1):
        story = Story(tmp_path / f"{number}")
        with monkeypatch.context() as patch:
            die_at(patch, number, before=False)
            with pytest.raises(Killed):
                decide(story.settings, story.lake, {UV: APPROVED}, NOW)
        if story.status()[UV] == "pending":
            decide(story.settings, story.lake, {UV: APPROVED}, NOW)
        story.run()
        assert state(story) == state(whole), seen[number - 1]


def test_what_was_never_seen_is_never_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dying just before REVIEW.md is written leaves proposals that we think are shown and nobody has seen."""
    story = Story(tmp_path, pending_limit=3)
    story.mark(UV, "x")
    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        monkeypatch.setattr(Path, "replace", _stop_at_review(Path.replace))
        with pytest.raises(Killed):
            story.run()
    assert "REVIEW.md.shown" in seen
    settle_review(story.settings, story.lake, NOW)
    promote(story.settings, story.lake, NOW)
    assert {story.status()[p] for p in (FRIDAY, TABS, UTC, LINT)} == {"pending"}
    assert story.status()[UV] == APPROVED


def _stop_at_review(rename: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(self: Path, target: Any) -> Any:
        if Path(target).name == "REVIEW.md":
            raise Killed
        return rename(self, target)

    return stopping
