"""`memory context`: whatever is the matter, a session begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.usage import uses
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import proposal, put, read_from, workspace


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    put(lake, "proposals", proposal(1, "Bricks are red."))
    made.memory_file.write_text("- Fire at noon.\n")
    return made


def env_of(settings: Settings, **other: str) -> dict[str, str]:
    return {"MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC", **other}


def folder(tmp_path: Path) -> str:
    path = tmp_path / "kiln"
    path.mkdir(exist_ok=True)
    return str(path)


def test_it_prints_the_same_twice_and_logs_what_it_showed(settings: Settings, tmp_path: Path) -> None:
    first, second = (memory(tmp_path, "context", "--project", folder(tmp_path), env=env_of(settings)) for _ in range(2))
    assert first.stdout == second.stdout
    assert "- Fire at noon. [MEMORY.md:1]" in first.stdout
    assert (first.stderr, first.returncode) == ("", 0)
    logged = [use for _, use in uses(settings)]
    assert [(use["kind"], use["project"], use["shown"]) for use in logged] == [
        ("brief", "kiln", ["MEMORY.md:1", "p-20250305-001"])
    ] * 2


def test_as_json(settings: Settings, tmp_path: Path) -> None:
    found = memory_json(tmp_path, "context", "--project", folder(tmp_path), env=env_of(settings))
    assert found["project"] == "kiln"
    assert found["tokens"] <= found["budget"] == 2000
    assert [section["reviewed"] for section in found["sections"]] == [True, False]
    assert found["sections"][0]["lines"][0] == {"id": "MEMORY.md:1", "day": None, "text": "Fire at noon.", "note": ""}


def test_a_project_is_asked_for_by_its_name_too(settings: Settings, tmp_path: Path) -> None:
    read_from(Lake(settings.lake_dir), "/s/one.jsonl", "sloop", "/home/ada/sloop")
    assert memory_json(tmp_path, "context", "--project", "sloop", env=env_of(settings))["project"] == "sloop"
    unknown = memory(tmp_path, "context", "--project", "cli", env=env_of(settings))
    assert (unknown.stdout, unknown.returncode) == ("", 0)
    assert unknown.stderr == (
        "No briefing: There is no folder 'cli'. No session of a project 'cli' was read; known are sloop.\n"
    )


def test_of_an_empty_workspace_a_hook_gets_nothing(tmp_path: Path) -> None:
    found = memory(tmp_path, "context")
    assert (found.stdout, found.returncode) == ("", 0)
    assert found.stderr == "Nothing is remembered yet; `memory run` reads your sessions.\n"


def test_a_wrong_setting_keeps_no_session_from_starting(settings: Settings, tmp_path: Path) -> None:
    found = memory(tmp_path, "context", env=env_of(settings, MEMORY_BRIEF_TOKENS="many"))
    assert (found.stdout, found.returncode) == ("", 0)
    assert "MEMORY_BRIEF_TOKENS='many'" in found.stderr
    assert memory(tmp_path, "context", "--no-such-option", env=env_of(settings)).returncode == 2


def test_locks_of_a_run_are_not_waited_for(settings: Settings, tmp_path: Path) -> None:
    settings.backups.mkdir(exist_ok=True)
    with FileLock(settings.backups / "proposals.lock"), FileLock(settings.backups / "MEMORY.md.lock"):
        found = memory(tmp_path, "context", env=env_of(settings))
    assert "Fire at noon." in found.stdout


def test_an_approved_line_is_kept_for_the_next_session(settings: Settings, tmp_path: Path) -> None:
    """A review renders it, so that a hook need not."""
    env = env_of(settings)
    memory(tmp_path, "context", "--project", folder(tmp_path), env=env)
    memory(tmp_path, "context", "--project", folder(tmp_path), env=env)
    file = next((settings.workspace / "briefings").glob("*.json"))
    before = file.read_text()
    assert memory(tmp_path, "review", "--approve", "p-20250305-001", env=env).returncode == 0
    assert "What the user approved" in file.read_text() != before
    assert "- (2025-03-05) Bricks are red. [p-20250305-001]" in json.loads(file.read_text())["briefing"]["text"]
