"""A MEMORY.md that somebody deleted is named by what looks at it, and comes back with the next approved line."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.markdown.safe_write import copies_of
from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.conftest import conversation, write_session
from memory_pipeline_tests.rows import at, proposal, put, workspace

UV, TABS = "p-20250305-001", "p-20250305-002"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """One line is approved, one waits."""
    write_session(tmp_path / "sessions" / "one.jsonl", *conversation("2025-03-04T09:00:00"))
    made, lake = workspace(tmp_path / "ws")
    put(lake, "proposals", proposal(1, "Use uv."), proposal(2, "Indent Makefiles with tabs."))
    decide(Workspace(made, lake), {UV: APPROVED}, at("18:00"))
    reconcile(Workspace(made, lake), at("18:00"))
    return made


@pytest.mark.slow
def test_it_is_told_by_status_and_run_and_put_back_by_review(settings: Settings, tmp_path: Path) -> None:
    env = {
        "MEMORY_WORKSPACE": str(settings.workspace),
        "MEMORY_TIMEZONE": "UTC",
        "MEMORY_SESSION_DIRS": str(tmp_path / "sessions"),
    }
    path = settings.memory_file
    assert memory_json(tmp_path, "status", env=env)["problems"] == []
    written = path.read_text("utf-8")
    (copy,) = copies_of(path, settings.backups)
    path.unlink()

    said = f"{path} is missing, although lines were approved: `cp {copy} {path}` restores it"
    assert [found[: len(said)] for found in memory_json(tmp_path, "status", env=env)["problems"]] == [said]
    assert said in memory(tmp_path, "status", env=env).stdout.replace("\n", "")
    run = memory(tmp_path, "run", env=env)
    assert run.returncode == 1
    assert said in run.stdout and f"Problems: {said}" in run.stderr

    review = memory(tmp_path, "review", "--approve", TABS, env=env)
    assert f"{path} was missing; it was restored from {copy}" in review.stderr
    now = path.read_text("utf-8")
    assert "".join(line for line in now.splitlines(keepends=True) if TABS not in line) == written
    assert TABS in now
    assert memory_json(tmp_path, "status", env=env)["problems"] == []


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_that_puts_it_back_says_so(settings: Settings, tmp_path: Path) -> None:
    env = {
        "MEMORY_WORKSPACE": str(settings.workspace),
        "MEMORY_TIMEZONE": "UTC",
        "MEMORY_SESSION_DIRS": str(tmp_path / "sessions"),
    }
    settings.memory_file.unlink()
    text = settings.review_file.read_text("utf-8")
    settings.review_file.write_text(text.replace(f"- [ ] `{TABS}`", f"- [x] `{TABS}`"), "utf-8")
    run = memory(tmp_path, "run", env=env)
    assert f"{settings.memory_file} was missing; it was restored from {settings.backups}" in run.stderr
    assert run.returncode == 0
    assert settings.memory_file.read_text("utf-8").count("<!-- p-") == 2
