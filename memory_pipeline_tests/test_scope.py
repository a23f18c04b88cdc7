"""The projects of a line: what may end it, and how they are told."""

from collections.abc import Sequence

from memory_pipeline.scope import are_apart, describe_projects, may_end, only, with_note, without_note
from memory_pipeline_tests.cases import each


@each(
    ("newer", "older", "ends"),
    [
        (["kiln"], ["kiln"], True),
        (["kiln"], ["cli"], False),
        (["kiln"], ["cli", "kiln"], False),  # in cli it still holds
        (["cli", "kiln"], ["kiln"], True),
        ([], ["kiln"], True),  # said of no project: everywhere
        (["kiln"], [], True),  # from before projects were known
        (None, None, True),
    ],
)
def test_what_holds_in_a_project_is_ended_there(newer: list[str] | None, older: list[str] | None, ends: bool) -> None:
    assert may_end(newer, older) is ends


def test_only_known_projects_are_apart() -> None:
    assert are_apart(["kiln"], ["cli"])
    assert not are_apart(["kiln"], ["cli", "kiln"])
    assert not are_apart([], ["kiln"])
    assert not are_apart(["kiln"], None)


@each(
    ("projects", "note"),
    [
        (None, ""),
        ([], ""),
        (["kiln"], "project: kiln"),
        (["cli", "kiln"], "general, from cli, kiln"),
        (["a", "b", "c", "d", "e"], "general, from a, b, c and 2 more"),
        (["work/api"], "project: work/api"),
        (["x) <!-- `p`\n# y"], "project: x &lt;!-- p # y"),  # a folder may have any name
        (["()"], ""),
    ],
)
def test_projects_are_told_behind_a_line_and_taken_off_again(projects: Sequence[str] | None, note: str) -> None:
    line = with_note("Use uv (not pip)", projects)
    assert describe_projects(projects) == note
    assert line == f"Use uv (not pip) ({note})" if note else "Use uv (not pip)"
    assert with_note(line, ["other"]) == (line if note else "Use uv (not pip) (project: other)")
    assert without_note(line) == "Use uv (not pip)"


def test_the_one_project() -> None:
    assert [only(projects) for projects in (["kiln"], ["cli", "kiln"], [], None)] == ["kiln", None, None, None]
