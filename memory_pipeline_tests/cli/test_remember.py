"""`memory remember`: what a user says is offered for review, and where a run is at work it waits for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import DAY, proposal, put, workspace

RULE = "Never fire the kiln above cone six."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    put(lake, "sessions", {"day": DAY, "session_id": "s1", "project": "Kiln"})
    put(lake, "proposals", proposal(1, "Bricks are red."))
    return made


def env_of(settings: Settings) -> dict[str, str]:
    return {"MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC"}


def test_it_is_in_the_review_at_once_with_an_id_that_why_knows(settings: Settings, tmp_path: Path) -> None:
    env = env_of(settings)
    found = memory(tmp_path, "remember", RULE, "--project", "kiln", "--section", "patterns", env=env)
    first, text, where = found.stdout.splitlines()
    own = first.split()[0]
    assert first == f"{own} Patterns (project: Kiln)"
    assert text == f"  {RULE}"
    assert str(settings.review_file) in where
    assert f"- [ ] `{own}` {RULE}" in settings.review_file.read_text()
    assert "you, with `memory remember` · project: Kiln" in settings.review_file.read_text()
    assert own in [row["proposal_id"] for row in memory_json(tmp_path, "review", env=env)["pending"]]
    assert RULE in memory(tmp_path, "why", own, env=env).stdout
    assert not settings.memory_file.exists()

    again = memory(tmp_path, "remember", RULE.lower(), "--project", "Kiln", env=env)
    assert (again.stdout, again.returncode) == (f"Not added, because it is already pending ({own}): {RULE}\n", 0)


def test_while_a_run_writes_the_review_it_is_stored_all_the_same(settings: Settings, tmp_path: Path) -> None:
    settings.backups.mkdir(exist_ok=True)
    with FileLock(settings.backups / "proposals.lock"):
        found = memory_json(tmp_path, "remember", RULE, env=env_of(settings))
    assert found["is_in_review"] is False
    assert found["proposal_id"] in ProposalLog(Lake(settings.lake_dir)).status


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["…"], "There is no text to remember: give a sentence."),
        ([RULE, "--section", "Laws"], "There is no section 'Laws'"),
        ([RULE, "--project", "oven"], "No session of a project 'oven' was read; known are Kiln."),
    ],
)
def test_what_cannot_be_a_line_is_told(settings: Settings, tmp_path: Path, args: list[str], told: str) -> None:
    found = memory(tmp_path, "remember", *args, env=env_of(settings))
    assert (found.stdout, found.returncode) == ("", 2)
    assert told in found.stderr


def test_without_a_workspace_it_says_how_to_make_one(tmp_path: Path) -> None:
    found = memory(tmp_path, "remember", RULE)
    assert (found.stdout, found.returncode) == ("", 1)
    assert "There is no workspace yet" in found.stderr
    assert not (tmp_path / ".memory-pipeline").exists()
