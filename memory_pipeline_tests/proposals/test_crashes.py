"""A process that dies between any two of its writes costs nothing but the next run.

Every file that is written (tables, REVIEW.md, MEMORY.md, the log, backups) is put in place by a rename. So a crash is
tried before and after each rename of a whole story; the run after it must end where one without a crash ends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.proposals import events as proposal_events
from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.examples import part
from memory_pipeline_tests.proposals.test_review import FRIDAY, LINT, NOW, TABS, UTC, UV, Story
from memory_pipeline_tests.rows import (
    DAY,
    Opened,
    at,
    bytes_of,
    day_after,
    events,
    observation,
    proposal,
    put,
    reflection,
    workspace,
)


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
    """All files, but for backups, of which a crash may leave more."""
    files = bytes_of(story.settings.workspace).items()
    kept: dict[str, object] = {k: v for k, v in files if not k.startswith("backups/")}
    return kept | {"shown": (story.settings.backups / "REVIEW.md.shown").read_bytes()}


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
    for number in part(range(1, len(seen) + 1), 3):
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
        story.run_daily(6 * 24 * 60)
        newer = proposal(9, "Indent with spaces.", day=day_after(1)) | {"supersedes": [UTC]}
        put(story.lake, "proposals", newer)
        story.mark(UV, "x")
        return story

    whole = week_later(tmp_path / "whole")
    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        whole.run(7 * 24 * 60)
    assert sorted(whole.status().values()) == ["approved", "expired", "expired", "pending", "pending", "superseded"]
    for number in part(range(1, len(seen) + 1), 3):
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
    decide(Workspace(whole.settings, whole.lake), {UV: APPROVED}, NOW)
    count = len(seen)
    whole.run()
    for number in range(1, count + 1):
        story = Story(tmp_path / f"{number}")
        with monkeypatch.context() as patch:
            die_at(patch, number, before=False)
            with pytest.raises(Killed):
                decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW)
        if story.status()[UV] == "pending":
            decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW)
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
    reconcile(Workspace(story.settings, story.lake), NOW)
    assert {story.status()[p] for p in (FRIDAY, TABS, UTC, LINT)} == {"pending"}
    assert story.status()[UV] == APPROVED


def _stop_at_review(rename: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(self: Path, target: Any) -> Any:
        if Path(target).name == "REVIEW.md":
            raise Killed
        return rename(self, target)

    return stopping


def test_a_decision_stands_in_the_log_of_its_day_alone_though_the_next_run_is_tomorrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, _ = renames(tmp_path / "whole", monkeypatch)
    for number in part(range(1, len(seen) + 1), 3):
        story = marked(tmp_path / f"{number}")
        with monkeypatch.context() as patch:
            die_at(patch, number, before=True)
            with pytest.raises(Killed):
                story.run()
        story.run(24 * 60)
        decided = events(story.lake, "decided").select("day", "proposal_id").rows()
        logs = {day: story.settings.daily_log(day) for day in (DAY, day_after(1))}
        told = {day: path.read_text("utf-8") if path.exists() else "" for day, path in logs.items()}
        listed = [(day, p) for day, text in told.items() for p in re.findall(r"(?:approved|rejected) `(.*?)`", text)]
        assert sorted(listed) == sorted(decided), seen[number - 1]


def test_a_log_that_its_owner_made_read_only_stops_nobody_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = marked(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(proposal_events, "write_decisions", _refuse)
        with pytest.raises(PermissionError):
            story.run()
        assert story.run().damaged is None
    assert story.status()[UV] == APPROVED
    assert "Use uv for Python." in story.remembered()


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise PermissionError("read-only")


@dataclass
class Days(Opened):
    """Days of which each has its reflections."""

    def reflect(self, text: str, day: date = DAY, clock: str = "09:00", session: str = "s1") -> None:
        source = observation(text, day=day, clock=clock, session=session)
        line = reflection(text, day=day, sources=[source["observation_id"]], last_seen=at(clock, day))
        put(self.lake, "observations", source)
        put(self.lake, "reflections", line)

    def propose(self, *days: date) -> None:
        stage = ProposalsStage(self.workspace)
        for day in days:
            bring_up_to_date(stage, self.lake, day)

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        return {table: self.lake.read(table).rows() for table in ("proposals", "supports")}


def test_what_a_dead_run_has_stored_of_a_day_does_not_change_what_the_day_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were said on one day, first what replaces a line, then the line again; `supports` is stored first."""

    def begun(folder: Path) -> Days:
        days = Days(*workspace(folder))
        days.reflect("Use uv for Python.")
        days.propose(DAY)
        days.reflect("Use uv for Python.", day_after(1), "15:00", "s2")
        days.reflect("Use poetry instead of uv.", day_after(1), "10:00", "s3")
        return days

    whole, killed = begun(tmp_path / "whole"), begun(tmp_path / "killed")
    whole.propose(day_after(1))
    with monkeypatch.context() as patch:
        die_at(patch, 2, before=False)  # the day's log, then its supports
        with pytest.raises(Killed):
            killed.propose(day_after(1))
    assert killed.lake.read("supports").height == 1
    assert killed.lake.read("proposals").height == 1
    killed.propose(day_after(1))
    assert killed.rows() == whole.rows()
    assert whole.lake.read("proposals")["supersedes"].to_list() == [[], ["p-20250305-001"]]


def test_a_range_that_is_taken_up_again_merges_into_the_same_line(tmp_path: Path) -> None:
    """A line is as like one of MEMORY.md as it is like one that was offered a day before."""

    def begun(folder: Path) -> Days:
        folder.mkdir()
        days = Days(*workspace(folder))
        days.settings.memory_file.write_text("## Hard Rules\n- alpha bravo golf\n", "utf-8")
        days.reflect("charlie delta echo")
        days.reflect("alpha bravo golf charlie delta echo", day_after(1))
        return days

    whole, killed = begun(tmp_path / "whole"), begun(tmp_path / "killed")
    whole.propose(DAY, day_after(1))
    killed.propose(DAY)
    killed.propose(DAY, day_after(1))
    assert killed.rows() == whole.rows()
    assert whole.lake.read("supports").height == 1
