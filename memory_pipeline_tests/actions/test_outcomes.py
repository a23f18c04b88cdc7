"""What became of a line that was shown at a tool call."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.actions.outcomes import Outcome, describe, outcomes, unheeded
from memory_pipeline.agents.hooks import actions_dir
from memory_pipeline.friction.shown import shown_lines
from memory_pipeline.proposals.shown_to_agents import approved_rules
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import at, say, workspace

RULE, HINT = "p-20250301-001", "f-20250301-001"
PUSH, TEST = "tool: Bash(command=git push --force)", "tool: Bash(command=npm test)"
OTHER, DONE, FAILED = "tool: Bash(command=git status)", "tool: done", "tool!: no tests"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, _ = workspace(tmp_path / "workspace")
    folder = actions_dir(made)
    folder.mkdir(parents=True)
    made.memory_file.write_text(f"## Hard Rules\n\n- Never run `git push --force`. <!-- {RULE} -->\n")
    hint = {"id": HINT, "words": ["npm", "test"], "line": "`npm test` fails", "evidence": "2 sessions"}
    (folder / "p-1.json").write_text(json.dumps({"rules": [], "before": [hint], "after": {}}))
    return made


def show(settings: Settings, line_id: str, minute: int, shown_as: str = "hint", event: str = "before") -> None:
    moment = at() + timedelta(minutes=minute)
    entry = {"at": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "agent": "pi", "session": "s1", "id": line_id, "as": shown_as}
    entry["event"] = event
    with (actions_dir(settings) / "shown.jsonl").open("a") as file:
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
    assert describe(found) == "3 shown: 3 contradicted"
    assert len(list(shown_lines(settings))) == 4


def test_damaged_entries_are_skipped(settings: Settings) -> None:
    (actions_dir(settings) / "shown.jsonl").write_bytes(b"\xff\n{}\n[]\n")
    show(settings, HINT, 1)
    assert outcomes_of(settings) == ["open"]
