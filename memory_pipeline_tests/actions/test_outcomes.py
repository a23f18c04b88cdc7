"""What became of a line that was shown at a tool call."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.actions.outcomes import (
    Outcome,
    by_line,
    describe,
    outcomes,
    stored_times,
    unheeded,
)
from memory_pipeline.friction.observed import shown_lines
from memory_pipeline.proposals.shown_to_agents import approved_rules, write_hints
from memory_pipeline.quality.page import rendered
from memory_pipeline.quality.report import as_json, make_report
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import at, pattern, put, read_from, say, workspace

RULE, HINT = "p-20250301-001", "f-20250301-001"
PUSH, TEST = "tool: Bash(command=git push --force)", "tool: Bash(command=npm test)"
OTHER, DONE, FAILED = "tool: Bash(command=git status)", "tool: done", "tool!: no tests"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "workspace")
    made.actions_dir.mkdir(parents=True)
    made.memory_file.write_text(f"## Hard Rules\n\n- Never run `git push --force`. <!-- {RULE} -->\n")
    misuse = {"kind": "tool_misuse", "adds": "`npm test` fails here with “no tests”; use `pnpm test`."}
    put(lake, "friction_clusters", pattern(1, "npm test", **misuse, pattern_id=HINT))
    return made


def show(settings: Settings, line_id: str, minute: float, shown_as: str = "hint", event: str = "before") -> None:
    moment = at() + timedelta(minutes=minute)
    entry = {"at": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "agent": "pi", "session": "s1", "id": line_id, "as": shown_as}
    entry["event"] = event
    with (settings.actions_dir / "shown.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def outcomes_of(settings: Settings, *turns: str) -> list[Outcome]:
    _, lake = workspace(settings.workspace)
    if turns:
        say(lake, "s1", "user: Go.", *turns)
    return [seen.outcome for seen in outcomes(settings, lake, approved_rules(settings, lake))]


@pytest.mark.parametrize(
    ("line_id", "turns", "outcome"),
    [
        (RULE, (PUSH, DONE, OTHER, DONE), "followed"),
        (RULE, (PUSH, DONE, PUSH, DONE), "ignored"),
        (RULE, (), "open"),
        (HINT, (TEST, FAILED, OTHER, DONE), "followed"),
        (HINT, (TEST, FAILED, TEST, FAILED), "ignored"),
        (HINT, (TEST, FAILED, TEST, DONE), "followed"),
        (HINT, (TEST, DONE), "contradicted"),
        (HINT, (OTHER, DONE), "followed"),
        ("f-20240101-001", (TEST, DONE), "open"),
    ],
)
def test_what_became_of_a_line(settings: Settings, line_id: str, turns: tuple[str, ...], outcome: str) -> None:
    show(settings, line_id, 1)
    assert outcomes_of(settings, *turns) == [outcome]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ((PUSH, DONE, "user: git push --force is fine on this branch."), "contradicted"),
        ((PUSH, DONE, "user: No, git push --force is right here."), "contradicted"),
        ((PUSH, DONE, "user: Is git push --force fine?"), "followed"),
        ((PUSH, DONE, "user: Never run `git push --force`, I said!"), "followed"),
        ((PUSH, DONE, "user: Now add the tests.", "user: git push --force is fine."), "followed"),
    ],
)
def test_an_objection_of_the_user_to_a_rule_contradicts_it(
    turns: tuple[str, ...], outcome: str, settings: Settings
) -> None:
    show(settings, RULE, 1)
    assert outcomes_of(settings, *turns) == [outcome]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ((PUSH, DONE), "contradicted"),
        ((PUSH, FAILED, PUSH, DONE), "contradicted"),
        ((PUSH, FAILED, OTHER, DONE), "followed"),
        ((PUSH,), "followed"),
    ],
)
def test_a_call_that_the_user_allowed_when_asked_contradicts_the_rule(
    turns: tuple[str, ...], outcome: str, settings: Settings
) -> None:
    for minute in (1, 3):
        show(settings, RULE, minute, "ask")
    assert outcomes_of(settings, *turns) == [outcome]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ((TEST, FAILED, TEST, DONE), "followed"),
        ((TEST, FAILED, TEST, FAILED), "ignored"),
        ((TEST, FAILED, OTHER, DONE), "followed"),
    ],
)
def test_what_became_of_a_cure(settings: Settings, turns: tuple[str, ...], outcome: str) -> None:
    """It is shown with the result, a minute after the call."""
    show(settings, HINT, 2, event="after")
    assert outcomes_of(settings, *turns) == [outcome]


def test_only_calls_after_the_line_count(settings: Settings) -> None:
    show(settings, RULE, 3)
    assert outcomes_of(settings, PUSH, DONE, PUSH, DONE) == ["followed"]


def test_a_line_that_is_never_heeded_deserves_another_look(settings: Settings) -> None:
    for _ in range(3):
        show(settings, HINT, 1)
    show(settings, RULE, 1, "observe")
    _, lake = workspace(settings.workspace)
    say(lake, "s1", "user: Go.", TEST, DONE)
    found = outcomes(settings, lake, [])
    assert list(unheeded(found)) == [HINT] and len(unheeded(found)[HINT]) == 3
    assert by_line(found) == {HINT: {"contradicted": 3}}
    assert describe(by_line(found)[HINT]) == "3 shown: 3 contradicted"
    assert len(list(shown_lines(settings))) == 4


@pytest.mark.parametrize("times", [2, 3])
def test_a_pattern_that_calls_contradict_becomes_silent(settings: Settings, times: int) -> None:
    _, lake = workspace(settings.workspace)
    say(lake, "s1", "user: Go.", TEST, DONE)
    read_from(lake, "/kiln.jsonl", "kiln", "/src/kiln")
    for _ in range(times):
        show(settings, HINT, 1)
    for _ in range(2):  # and stays so
        write_hints(settings, lake)
        (path,) = settings.actions_dir.glob("p-*.json")
        assert [hint["id"] for hint in json.loads(path.read_bytes())["before"]] == [HINT] * (times < 3)
        assert stored_times(settings) == {"contradicted": times}


def test_damaged_entries_are_skipped(settings: Settings) -> None:
    (settings.actions_dir / "shown.jsonl").write_bytes(b"\xff\n{}\n[]\n")
    show(settings, HINT, 1)
    assert outcomes_of(settings) == ["open"]


def test_outcomes_are_stored_for_the_brief_the_status_and_the_report(settings: Settings) -> None:
    _, lake = workspace(settings.workspace)
    say(lake, "s1", "user: Go.", PUSH, DONE, OTHER, DONE)
    show(settings, RULE, 1)
    assert stored_times(settings) == {}
    write_hints(settings, lake)
    assert stored_times(settings) == {"followed": 1}
    report = make_report(Workspace(settings, lake), [], {}, at())
    assert "Hints on tool calls: 1 shown: 1 followed." in rendered(report) and as_json(report)["hints"] == {
        "followed": 1
    }
    home = settings.workspace.parent
    env = {"MEMORY_WORKSPACE": f"{settings.workspace}", "MEMORY_TIMEZONE": "UTC"}
    assert memory(home, "status", env=env).stdout.count("1 shown: 1 followed") == 1
    settings.outcomes_file.write_text("[]")
    assert stored_times(settings) == {}
