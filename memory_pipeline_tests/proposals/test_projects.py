"""The project of a line on its way into MEMORY.md: offered with it, kept apart by it, written with it."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.proposals.events import PENDING, SUPERSEDED, ProposalLog
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline_tests.proposals.test_stage import FRIDAY, UV, Work
from memory_pipeline_tests.rows import day_after, observation, observation_id, proposal, put, reflection, workspace

P1, P2 = "p-20250305-001", "p-20250305-002"
NOW = datetime(2025, 3, 6, 9, tzinfo=UTC)
PIP, UV_NOW = "Install packages with pip.", "We use uv instead of pip for packages."
ALWAYS, NEVER = "Always squash the commits of a branch.", "Never squash the commits of a branch."


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path))


def reflected(work: Work, text: str, project: str | None, day: int = 0) -> None:
    """A rule that was said in the project and reflected on."""
    on, session = day_after(day), f"s{project}"
    put(work.lake, "observations", observation(text, day=on, session=session, project=project, cwd=f"/src/{project}"))
    projects = [project] if project else []
    sources = [observation_id(text, on, session)]
    put(work.lake, "reflections", reflection(text, day=on, sources=sources, projects=projects))


def states(work: Work) -> dict[str, str]:
    return dict(ProposalLog(work.lake).frame.select("text", "status").iter_rows())


def test_a_line_is_offered_with_its_project_and_approved_with_it(work: Work) -> None:
    reflected(work, UV, "kiln")
    work.run()
    assert [row["projects"] for row in work.rows()] == [["kiln"]]
    reconcile(work.workspace, NOW)
    assert " · project: kiln" in work.settings.review_file.read_text("utf-8")
    decide(work.workspace, {P1: "approved"}, NOW)
    reconcile(work.workspace, NOW)
    memory = work.settings.memory_file.read_text("utf-8")
    assert f"- (2025-03-05) {UV} (project: kiln) <!-- {P1} -->" in memory
    (line,) = [line for line in lines_of(memory.encode()) if line.proposal_id == P1]
    assert line.text == UV  # what is compared has no note


def test_what_is_said_in_several_projects_is_offered_as_general(work: Work) -> None:
    reflected(work, UV, "kiln")
    work.run()
    reflected(work, UV, "cli", day=1)
    assert work.run(day_after(1)) == {}
    (row,) = ProposalLog(work.lake).pending()
    assert (row["projects"], row["cwds"]) == (["cli", "kiln"], ["/src/cli"])
    reconcile(work.workspace, NOW)
    assert " · general, from cli, kiln" in work.settings.review_file.read_text("utf-8")
    decide(work.workspace, {P1: "approved"}, NOW)
    reconcile(work.workspace, NOW)
    assert f"{UV} (general, from cli, kiln) <!--" in work.settings.memory_file.read_text("utf-8")


@pytest.mark.parametrize(("project", "status"), [("kiln", SUPERSEDED), ("cli", PENDING)])
def test_a_line_takes_the_place_of_one_of_its_project_only(work: Work, project: str, status: str) -> None:
    reflected(work, PIP, "kiln")
    work.run()
    put(work.lake, "reflections", reflection("x", day=day_after(1), kind="progress"))
    reflected(work, UV_NOW, project, day=1)
    lines = work.lake.read("reflections", [day_after(1)])
    later = lines.with_columns(pl.col("last_seen").dt.offset_by("1d"))
    work.lake.replace("reflections", later, [day_after(1)])
    work.run(day_after(1))
    reconcile(work.workspace, NOW)
    assert states(work) == {PIP: status, UV_NOW: PENDING}


@pytest.mark.parametrize("project", ["cli", "kiln"])
def test_the_opposite_is_another_line(work: Work, project: str) -> None:
    reflected(work, ALWAYS, "kiln")
    work.run()
    reflected(work, NEVER, project, day=1)
    work.run(day_after(1))
    assert set(states(work)) == {ALWAYS, NEVER}


def test_what_fits_no_section_goes_under_a_heading_with_its_day(work: Work) -> None:
    put(work.lake, "proposals", proposal(1, UV, section="Reflected"), proposal(2, FRIDAY, section="Reflected"))
    reconcile(work.workspace, NOW)
    review = work.settings.review_file
    text = review.read_text("utf-8")
    assert "## Proposed for: Reflected\n" in text
    text = text.replace(f"[ ] `{P1}`", f"[x] `{P1}`")
    moved = next(line for line in text.splitlines(keepends=True) if P2 in line)
    text = text.replace(moved, "") + f"## Proposed for: Hard Rules\n{moved.replace('[ ]', '[x]')}"
    stamp = next(line for line in text.splitlines(keepends=True) if line.startswith("_Last updated"))
    review.write_text(text.replace(stamp, "") + stamp, "utf-8")
    reconcile(work.workspace, NOW)
    memory = work.settings.memory_file.read_text("utf-8")
    assert f"## Reflected (2025-03-05)\n- (2025-03-05) {UV} <!-- {P1} -->" in memory
    assert f"## Hard Rules\n- (2025-03-05) {FRIDAY} <!-- {P2} -->" in memory


def test_a_proposal_of_before_has_no_project_and_is_shown_all_the_same(work: Work) -> None:
    put(work.lake, "proposals", proposal(1, UV))
    assert work.lake.read("proposals")["projects"].to_list() == [None]
    decide(work.workspace, {P1: "approved"}, NOW)
    reconcile(work.workspace, NOW)
    assert f"- (2025-03-05) {UV} <!-- {P1} -->" in work.settings.memory_file.read_text("utf-8")
