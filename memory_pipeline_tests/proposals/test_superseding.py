"""What holds now takes the place of what held before, and only when a person says so."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.proposals.events import APPROVED, PENDING, SUPERSEDED, ProposalLog
from memory_pipeline.proposals.memory_file import lines_of, strike_lines
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.relation import REPLACES, differs, relation
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, at, day_after, observation, observation_id, put, reflection, workspace

NPM, PNPM = "Use npm for installs.", "Use pnpm instead of npm."
OLD, NEW = "p-20250305-001", "p-20250307-001"
LATER = day_after(2)


@each(
    ("text", "older", "expected"),
    [
        (PNPM, NPM, True),
        ("Use pnpm, not npm.", NPM, True),
        ("We switched from npm to pnpm.", "Run npm.", True),
        ("We replaced Jest with Vitest in all packages.", "Use Jest for tests.", True),
        ("We no longer use Redis.", "Redis runs in the cluster.", True),
        ("Use npm instead of pnpm.", PNPM, True),  # and back again
        (PNPM, PNPM, False),
        (PNPM, "Never use npm.", False),  # says the same
        (PNPM, "Use pnpm, not npm.", False),
        (PNPM, "Commit the lock file that npm writes with every upgrade of packages.", False),  # is about more
        (NPM, PNPM, False),
        ("Use pnpm.", NPM, False),  # names nothing that is over
        ("Write tests rather than hoping that it will work out in production.", "Deploy to production.", False),
    ],
)
def test_which_words_take_the_place_of_which(text: str, older: str, expected: bool) -> None:
    assert (relation(text, older) == REPLACES) is expected


@each(
    ("text", "older", "expected"),
    [
        ("No longer tag images with the git sha.", "Images get tagged with the git sha, never latest.", True),
        ("Dates are ISO 8601 from now on, not 4 Mar 2026.", "Dates on the page look like 4 Mar 2026.", True),
        (PNPM, NPM, True),
        (NPM, PNPM, True),  # holds on to what the other gives up
        ("Use uv, not pip.", "Always use uv, never pip install.", False),  # both refuse it
        ("Use uv instead of pip.", "Don't run pip install, use uv add.", False),
        ("Deploy on Mondays, not on Fridays.", "Never deploy on a Friday.", False),
        (PNPM, "Commit the lock file.", False),
    ],
)
def test_which_words_break_with_which(text: str, older: str, expected: bool) -> None:
    assert differs(text, older) is expected


class Change:
    """A rule on one day, and what replaces it two days later."""

    def __init__(self, folder: Path) -> None:
        self.settings, self.lake = workspace(folder)
        self.workspace = Workspace(self.settings, self.lake)
        self.reflect(NPM)

    def reflect(self, text: str, day: date = DAY, **other: Any) -> None:
        put(self.lake, "observations", observation(text, day=day, clock="09:00"))
        put(self.lake, "reflections", reflection(text, day=day, **other))
        bring_up_to_date(ProposalsStage(self.workspace), self.lake, day)
        self.settle(day)

    def settle(self, day: date) -> None:
        reconcile(self.workspace, at("18:00", day))

    def approve(self, proposal_id: str, day: date) -> None:
        decide(self.workspace, {proposal_id: APPROVED}, at("19:00", day))
        self.settle(day)

    def status(self) -> dict[str, str]:
        return dict(ProposalLog(self.lake).frame.select("proposal_id", "status").iter_rows())


@pytest.fixture
def change(tmp_path: Path) -> Change:
    return Change(tmp_path)


def test_a_pending_proposal_gives_way_to_the_newer_one(change: Change) -> None:
    change.reflect(PNPM, LATER)
    assert change.status() == {OLD: SUPERSEDED, NEW: PENDING}
    text = change.settings.review_file.read_text("utf-8")
    assert OLD not in text
    assert PNPM in text
    assert f"superseded `{OLD}`" in change.settings.daily_log(LATER).read_text("utf-8")


def test_nothing_is_struck_before_a_person_approves(change: Change) -> None:
    change.approve(OLD, day_after(0))
    before = change.settings.memory_file.read_bytes()
    change.reflect(PNPM, LATER)
    assert change.settings.memory_file.read_bytes() == before
    change.approve(NEW, LATER)
    text = change.settings.memory_file.read_text("utf-8")
    assert f"- ~~(2025-03-05) {NPM}~~ (superseded by {NEW}, 2025-03-07) <!-- {OLD} -->\n" in text
    assert f"- (2025-03-07) {PNPM} <!-- {NEW} -->" in text
    change.settle(day_after(3))
    assert change.settings.memory_file.read_text("utf-8") == text


def test_the_reflectors_word_counts_too(change: Change) -> None:
    """It names the observations that are over; the words need not."""
    change.reflect("All packages come from the mirror now.", LATER, superseded=[observation_id(NPM)])
    assert change.status() == {OLD: SUPERSEDED, NEW: PENDING}


def test_a_state_that_changed_is_offered_when_it_replaces_a_line(change: Change) -> None:
    change.reflect("We moved from npm to pnpm.", LATER, kind="state_change", section="System Architecture")
    assert change.status() == {OLD: SUPERSEDED, NEW: PENDING}


def test_an_old_day_that_is_read_late_does_not_bring_back_what_is_over(tmp_path: Path) -> None:
    change = Change(tmp_path)
    change.reflect("Use poetry instead of pip.", LATER)
    change.reflect("Use pip.", day_after(1), last_seen=at(day=day_after(1)))
    assert "Use pip." not in change.lake.read("proposals")["text"].to_list()


MEMORY = f"# Memory\r\n\r\n## Mine\r\n* (2025-03-05) Use npm\r\n  for installs. <!-- {OLD} -->\r\n1. other"


def test_striking_changes_the_line_and_no_other_byte() -> None:
    struck = strike_lines(MEMORY.encode(), {OLD: (NEW, LATER)}).decode()
    assert struck == MEMORY.replace("(2025-03-05) Use npm", "~~(2025-03-05) Use npm~~").replace(
        "for installs.", f"~~for installs.~~ (superseded by {NEW}, 2025-03-07)"
    )
    assert strike_lines(struck.encode(), {OLD: (NEW, LATER)}).decode() == struck
    (line, _) = lines_of(struck.encode())
    assert line.is_struck
    assert line.proposal_id == OLD


@each("text", ["", "# Memory\n- another <!-- p-20250305-0011 -->\n", f"```\n- code <!-- {OLD} -->\n```\n"])
def test_what_is_not_there_is_not_struck(text: str) -> None:
    assert strike_lines(text.encode(), {OLD: (NEW, LATER)}).decode() == text
