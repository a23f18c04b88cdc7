"""Lines of several projects: what is the same supports one line, what is opposed ends nothing elsewhere."""

from pathlib import Path
from typing import Any

from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.pool import observed_of
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.reflections.types import Observation, ReflectionLine
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.reflections.test_extractive import said
from memory_pipeline_tests.rows import DAY, FakeEncoder, observation, observation_id, put, workspace

PIP, UV = "Install packages with pip.", "We use uv instead of pip for packages."
ALWAYS, NEVER = "Always squash the commits of a branch.", "Never squash the commits of a branch."


def reflect(*observed: Observation) -> list[ReflectionLine]:
    return list(ExtractiveReflector().reflect(DAY, observed, {}).lines)


@each(
    ("projects", "is_ended"),
    [(("kiln", "kiln"), True), (("kiln", "cli"), False), (("", "cli"), True), (("kiln", ""), True), (("", ""), True)],
)
def test_a_rule_ends_those_of_its_project_only(projects: tuple[str, str], is_ended: bool) -> None:
    older, newer = (tuple(filter(None, [project])) for project in projects)
    lines = reflect(said(PIP, ago=1, projects=older), said(UV, session="s2", projects=newer))
    assert ([line.text for line in lines] == [UV]) is is_ended
    assert (PIP in {line.text for line in lines}) is not is_ended


def test_the_same_rule_of_two_projects_is_one_line() -> None:
    (line,) = reflect(said(ALWAYS, projects=("kiln",)), said(ALWAYS, session="s2", projects=("cli",)))
    assert line.sessions == 2


@each(("project", "lines"), [("cli", [ALWAYS, NEVER]), ("kiln", None)])
def test_what_one_project_refuses_and_another_does_are_two_rules(project: str, lines: list[str] | None) -> None:
    found = reflect(said(ALWAYS, projects=("kiln",)), said(NEVER, session="s2", projects=(project,)))
    if lines:
        assert sorted(line.text for line in found) == lines
    else:
        assert len(found) == 1  # of one project the newer word counts, as before


def test_a_row_has_the_folders_and_projects_of_all_that_it_came_from(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    kiln: dict[str, Any] = {"cwd": "/src/kiln", "project": "kiln"}
    put(lake, "observations", observation(ALWAYS, **kiln), observation(ALWAYS, session="s2", project="cli", cwd="/cli"))
    put(lake, "observations", observation("Deploy on Mondays."))
    encoder = FakeEncoder("squash", "deploy")
    opened = Workspace(settings, lake)
    bring_up_to_date(EmbeddingsStage(opened, encoder), lake, DAY)
    bring_up_to_date(ReflectionsStage(opened, ExtractiveReflector(), encoder), lake, DAY)
    rows = {row["text"]: row for row in lake.read("reflections").iter_rows(named=True)}
    both, none = rows[ALWAYS], rows["Deploy on Mondays."]
    assert (both["projects"], both["cwds"], both["owner"]) == (["cli", "kiln"], ["/cli", "/src/kiln"], "me")
    assert set(both["sources"]) == {observation_id(ALWAYS), observation_id(ALWAYS, session="s2")}
    assert (none["projects"], none["cwds"]) == ([], [])
    pooled: Any = observed_of(both, settings)  # type: ignore[arg-type]
    assert (pooled.projects, pooled.cwds) == (("cli", "kiln"), ("/cli", "/src/kiln"))
