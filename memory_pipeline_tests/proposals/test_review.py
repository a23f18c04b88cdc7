"""The life of proposals, as a story: offered, marked by a person, promoted once, and never taken back."""

from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.proposals.events import APPROVED, REJECTED, ProposalLog
from memory_pipeline.proposals.review import Reconciled, UnknownProposalError, decide, not_understood, reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, at, bytes_of, day_after, decision, events, proposal, put, workspace

NOW = at("18:00")
UV, FRIDAY, TABS, UTC, LINT = (f"p-20250305-00{n}" for n in range(1, 6))
TEXTS = {
    UV: "Use uv for Python.",
    FRIDAY: "Never deploy on a Friday.",
    TABS: "Indent Makefiles with tabs.",
    UTC: "Store every time in UTC.",
    LINT: "Run ruff before each commit.",
}


class Story:
    """A workspace with five proposals in REVIEW.md, and the few things that happen to it."""

    def __init__(self, folder: Path, **settings: int) -> None:
        self.settings, self.lake = workspace(folder, **settings)
        self.workspace = Workspace(self.settings, self.lake)
        self.review, self.memory = self.settings.review_file, self.settings.memory_file
        put(self.lake, "proposals", *(proposal(n, text) for n, text in enumerate(TEXTS.values(), 1)))
        self.settled, self.last_run = reconcile(self.workspace, NOW), 0

    def edit(self, old: str, new: str) -> None:
        """A person edits REVIEW.md."""
        text = self.review.read_text("utf-8")
        assert old in text
        self.review.write_text(text.replace(old, new), "utf-8")

    def mark(self, proposal_id: str, mark: str) -> None:
        self.edit(f"- [ ] `{proposal_id}`", f"- [{mark}] `{proposal_id}`")

    def run(self, minutes: int = 1) -> Reconciled:
        """What the sensor's job does."""
        now = NOW + timedelta(minutes=minutes)
        self.settled, self.last_run = reconcile(self.workspace, now), minutes
        return self.settled

    def run_daily(self, minutes: int) -> Reconciled:
        """The same on each day from the last run on."""
        for passed in range(60 * 24, minutes, 60 * 24):
            if passed > self.last_run:
                self.run(passed)
        return self.run(minutes)

    def status(self) -> dict[str, str]:
        return dict(ProposalLog(self.lake).frame.select("proposal_id", "status").iter_rows())

    def remembered(self) -> str:
        return self.memory.read_text("utf-8") if self.memory.exists() else ""

    def shown(self) -> list[str]:
        text = self.review.read_text("utf-8")
        return [p for p in TEXTS if f"] `{p}`" in text]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_what_a_person_marks_is_done_once(story: Story) -> None:
    story.mark(UV, "x")
    story.mark(FRIDAY, "x")
    story.edit("Never deploy on a Friday.", "Deploy from Monday to Thursday only.")
    story.mark(TABS, "-")
    story.edit(f"- [ ] `{UTC}` {TEXTS[UTC]}\n", "")
    settled = story.run()
    assert (settled.approved, settled.rejected, settled.ignored, settled.damaged) == (
        [UV, FRIDAY],
        [TABS, UTC],
        [],
        None,
    )
    assert story.status() == {UV: APPROVED, FRIDAY: APPROVED, TABS: REJECTED, UTC: REJECTED, LINT: "pending"}
    assert story.shown() == [LINT]
    assert story.remembered().count("Use uv for Python.") == 1
    assert "Deploy from Monday to Thursday only." in story.remembered()  # as edited
    assert "Never deploy on a Friday." not in story.remembered()
    assert events(story.lake, "decided").height == 4
    assert events(story.lake, "promoted")["proposal_id"].to_list() == [UV, FRIDAY]


def test_a_place_that_a_decision_frees_is_the_best_ones(tmp_path: Path) -> None:
    story = Story(tmp_path, pending_limit=3)
    shown = [p for p in TEXTS if p in story.review.read_text("utf-8")]
    story.mark(shown[0], "x")
    put(story.lake, "proposals", proposal(6, "Said again and again.") | {"worth": 9.0})
    settled = reconcile(story.workspace, NOW + timedelta(minutes=1))
    assert settled.approved == settled.promoted == [shown[0]]
    assert [p for p in TEXTS if p in story.review.read_text("utf-8")] == shown[1:]
    assert "Said again and again." in story.review.read_text("utf-8")


def test_a_decision_keeps_the_words_that_were_decided_on(story: Story) -> None:
    story.mark(UV, "x")
    story.edit(TEXTS[UV], "Use uv, always.")
    story.mark(FRIDAY, "-")
    story.run()
    texts = dict(events(story.lake, "decided").select("proposal_id", "text").iter_rows())
    assert texts == {UV: "Use uv, always.", FRIDAY: TEXTS[FRIDAY]}
    assert set(events(story.lake, "decided")["surface"]) == {"REVIEW.md"}


def test_decisions_stand_in_the_log_of_their_day_beside_the_persons_own_words(story: Story) -> None:
    log = story.settings.daily_log(DAY)
    log.parent.mkdir()
    log.write_text("# 2025-03-05\n\nBought milk.\n", "utf-8")
    story.mark(UV, "x")
    story.run()
    text = log.read_text("utf-8")
    assert text.startswith("# 2025-03-05\n\nBought milk.\n")
    assert f"* 18:01 approved `{UV}` Use uv for Python." in text


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ({"p-20250305-099": APPROVED}, "no proposal p-20250305-099"),  # never made
        ({UV: REJECTED}, f"{UV} is already approved"),  # a decision is final
        ({FRIDAY: APPROVED, UV: REJECTED}, f"{UV} is already approved"),  # all or none
    ],
)
def test_a_wrong_decision_is_refused_before_anything_is_recorded(
    story: Story, decisions: dict[str, str], said: str
) -> None:
    decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW)
    before = events(story.lake, "decided")
    with pytest.raises(UnknownProposalError, match=said):
        decide(Workspace(story.settings, story.lake), decisions, NOW)
    assert events(story.lake, "decided").equals(before)


def test_an_older_copy_over_the_file_is_told_what_was_decided_and_nothing_is_pending_of_it(story: Story) -> None:
    older = story.review.read_text("utf-8")
    story.mark(UV, "x")
    story.mark(TABS, "-")
    story.run()
    story.review.write_text(older, "utf-8")
    settled = story.run(2)
    assert (settled.ignored, settled.already) == ([], {UV: APPROVED, TABS: REJECTED})
    assert story.shown() == [FRIDAY, UTC, LINT]
    assert (story.run(3).ignored, story.settled.already) == ([], {})  # told once


def test_an_older_copy_without_a_line_does_not_name_what_was_decided_elsewhere(story: Story) -> None:
    decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW)
    story.review.write_text(
        "".join(x for x in story.review.read_text("utf-8").splitlines(True) if UV not in x).replace("18:00", "17:00")
    )
    settled = story.run()
    assert (settled.ignored, settled.already) == ([], {})


def test_what_is_not_understood_is_pending_or_unknown(story: Story) -> None:
    assert not_understood(story.workspace) == []
    story.mark(UV, "?")
    story.edit("# Pending", "- [x] `p-20250305-099` mine\n\n# Pending")
    assert story.run().ignored == ["p-20250305-099", UV]
    assert not_understood(story.workspace) == ["p-20250305-099", UV]


@pytest.mark.parametrize(
    ("first", "then", "way_out"),
    [(APPROVED, REJECTED, "delete or strike out its line"), (REJECTED, APPROVED, "write the line into MEMORY.md")],
)
def test_who_changes_their_mind_is_told_the_way(story: Story, first: str, then: str, way_out: str) -> None:
    decide(Workspace(story.settings, story.lake), {UV: first}, NOW)
    with pytest.raises(UnknownProposalError, match=way_out):
        decide(Workspace(story.settings, story.lake), {UV: then}, NOW)


def test_running_again_changes_no_byte_of_any_file(story: Story, tmp_path: Path) -> None:
    story.mark(UV, "x")
    story.mark(TABS, "-")
    story.run()
    before = bytes_of(tmp_path)
    for minutes in (2, 3, 60 * 24 * 3):
        settled = story.run(minutes)
        assert (settled.approved, settled.rejected, settled.ignored) == ([], [], [])
        if minutes == 3:
            assert bytes_of(tmp_path) == before
    after = bytes_of(tmp_path)
    assert {name for name in after if after[name] != before.get(name)} == {
        name
        for name in after
        if "events/2025-03-08" in name  # that it was shown on another day
    }


def test_a_line_that_a_person_removed_from_memory_does_not_come_back(story: Story) -> None:
    story.mark(UV, "x")
    story.mark(FRIDAY, "x")
    story.run()
    lines = story.remembered().splitlines(keepends=True)
    story.memory.write_text("".join(line for line in lines if UV not in line), "utf-8")
    story.mark(LINT, "x")
    story.run(2)
    assert "Use uv" not in story.remembered()
    assert "Run ruff" in story.remembered()


def test_a_memory_that_is_a_link_is_written_where_it_lies(story: Story, tmp_path: Path) -> None:
    """A person keeps MEMORY.md with their identity files, and every harness finds it by a link."""
    theirs = tmp_path / "identity" / "MEMORY.md"
    theirs.parent.mkdir()
    theirs.write_text("# Mine\n", "utf-8")
    story.memory.symlink_to(theirs)
    story.mark(UV, "x")
    story.run()
    assert story.memory.is_symlink()
    assert theirs.read_text("utf-8").startswith("# Mine\n")
    assert "Use uv for Python." in theirs.read_text("utf-8")


def test_deciding_the_same_again_changes_nothing(story: Story, tmp_path: Path) -> None:
    """A command that was not heard to answer is given again."""
    decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW)
    story.run()
    before = bytes_of(tmp_path)
    assert decide(Workspace(story.settings, story.lake), {UV: APPROVED}, NOW) == {}
    story.run()
    assert bytes_of(tmp_path) == before


def test_of_two_decisions_on_one_proposal_the_first_counts(story: Story) -> None:
    """Two machines that share a workspace can both take one; the check `one_decision_each` tells of it."""
    late = at("09:00", day_after(1))
    put(story.lake, "events", decision(UV, REJECTED, day=day_after(1)) | {"happened_at": late})
    put(story.lake, "events", decision(UV, APPROVED))
    assert story.status() == dict.fromkeys(TEXTS, "pending") | {UV: APPROVED}


def test_a_line_that_a_person_moved_to_another_group_goes_to_that_section(story: Story) -> None:
    """Also to one that MEMORY.md does not have yet; and its words lead back to the same proposal."""
    review = story.review.read_text("utf-8")
    line = next(line for line in review.splitlines() if f"`{TABS}`" in line)
    moved = review.replace(f"{line}\n", "").replace(
        "\n_Last updated", f"\n## Proposed for: Makefiles\n{line.replace('[ ]', '[x]')}\n\n_Last updated"
    )
    story.review.write_text(moved, "utf-8")
    story.run()
    assert story.status()[TABS] == APPROVED
    assert f"## Makefiles\n- (2025-03-05) {TEXTS[TABS]} <!-- {TABS} -->" in story.remembered()
