"""`memory context`: whatever is the matter, a session begins; the pack; the summary of a compaction, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.usage import uses
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.conftest import conversation, user, write_session
from memory_pipeline_tests.rows import observation, proposal, put, read_from, workspace


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


# --- the pack ---


def test_a_pack_says_when_it_is_rebuilt(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path / "ws")
    put(lake, "observations", observation("Keep bricks dry."))
    env = {"MEMORY_WORKSPACE": str(settings.workspace)}
    kiln = tmp_path / "kiln"
    kiln.mkdir()
    first, second, third = (
        memory(tmp_path, "context", "--pack", "--project", str(kiln), *options, env=env)
        for options in ([], [], ["--rebuild"])
    )
    assert "Keep bricks dry." in first.stdout
    assert first.stdout == second.stdout == third.stdout
    assert [found.stderr for found in (first, second, third)] == [
        "Rebuilt: there was none.\n",
        "",
        "Rebuilt: requested.\n",
    ]
    assert [use["kind"] for _, use in uses(settings)] == ["pack", "pack"]
    assert memory_json(tmp_path, "context", "--pack", "--project", str(kiln), env=env)["rebuilt"] is None


def test_wrong_calls_of_a_pack(tmp_path: Path) -> None:
    empty = memory(tmp_path, "context", "--pack")
    assert (empty.stdout, empty.returncode) == ("", 0)
    assert "Nothing is remembered yet" in empty.stderr
    unknown = memory(tmp_path, "context", "--pack", "--session", "nowhere")
    assert unknown.returncode == 1
    assert "'nowhere' is neither a file" in unknown.stderr


# --- the summary of a compaction ---


def test_a_summary_is_as_pi_wants_it(tmp_path: Path) -> None:
    rule = user("2025-03-05T08:00:00", "Never use npm here, always use pnpm for the web client.", "first")
    path = write_session(tmp_path / "s" / "one.jsonl", rule, *conversation("2025-03-05T09:00:00"))
    options = ("--first-kept", "the parcel service 4 asked", "--tokens-before", "777", "--seconds", "60", "--json")
    found = memory(tmp_path / "home", "context", "--compaction", str(path), *options)
    made = json.loads(found.stdout)
    assert found.returncode == 0
    assert {"summary", "firstKeptEntryId", "tokensBefore", "details"} == set(made)
    assert (made["firstKeptEntryId"], made["tokensBefore"]) == ("the parcel service 4 asked", 777)
    assert "Never use npm here" in made["summary"]
    assert "part 4" not in made["summary"]
    plain = memory(tmp_path / "home", "context", "--compaction", str(path), "--seconds", "60")
    assert "Never use npm here" in plain.stdout


def test_a_summary_fails_open(tmp_path: Path) -> None:
    for session in ("nowhere", str(tmp_path)):
        found = memory(tmp_path / "home", "context", "--compaction", session)
        assert (found.stdout, found.returncode) == ("", 0)
        assert found.stderr.startswith("No summary: ")
    wrong = memory(tmp_path / "home", "context", "--compaction", "x", env={"MEMORY_BRIEF_TOKENS": "many"})
    assert (wrong.stdout, wrong.returncode) == ("", 0)
    assert "MEMORY_BRIEF_TOKENS='many'" in wrong.stderr
