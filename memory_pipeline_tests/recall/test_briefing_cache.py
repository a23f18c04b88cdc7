from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_pipeline.recall import briefing, briefing_cache
from memory_pipeline.recall.briefing_cache import briefing_for, refresh_kept
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.sessions.projects import Place
from memory_pipeline.settings import Settings
from memory_pipeline.settings.marks import FORMAT, keep_format
from memory_pipeline_tests.rows import DAY, proposal, put, workspace


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    put(lake, "proposals", proposal(1, "Bricks are red."))
    made.memory_file.write_text("- Fire at noon.\n")
    settle(made)
    return made


def settle(settings: Settings) -> None:
    """As if nothing was written for a minute."""
    for path in [settings.workspace, *settings.workspace.rglob("*")]:
        os.utime(path, ns=(0, path.stat().st_mtime_ns - 60_000_000_000))


def kept(settings: Settings) -> list[Path]:
    return sorted((settings.workspace / "briefings").glob("*.json"))


def test_it_is_rendered_once_and_then_read(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    first = briefing_for(settings, Path("/src/kiln"))
    assert "Fire at noon." in first.text
    monkeypatch.setattr("memory_pipeline.recall.briefing.brief_at", None)
    assert briefing_for(settings, Path("/src/kiln")) == first
    assert len(kept(settings)) == 1


@pytest.mark.parametrize("change", ["memory", "table", "gone", "setting", "damaged", "outcomes"])
def test_what_it_came_from_changes(settings: Settings, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[Place] = []
    brief_at = briefing.brief_at
    monkeypatch.setattr(briefing, "brief_at", lambda s, place: rendered.append(place) or brief_at(s, place))
    briefing_for(settings, Path("/src/kiln"))
    if change == "memory":
        settings.memory_file.write_text("- Fire at dawn.\n")
    elif change == "table":
        put(workspace(settings.workspace)[1], "proposals", proposal(2, "Sails."))
    elif change == "gone":
        settings.memory_file.unlink()
    elif change == "outcomes":
        settings.actions_dir.mkdir(parents=True)
        settings.outcomes_file.write_text("{}")
    elif change == "setting":
        settings, _ = workspace(settings.workspace, brief_tokens=201)
    else:
        kept(settings)[0].write_text('{"state": 1')
    text = briefing_for(settings, Path("/src/kiln")).text
    assert len(rendered) == 2
    assert ("noon" in text) == (change not in ("memory", "gone"))
    assert ("Sails." in text) == (change == "table")


def test_what_was_written_just_now_is_not_kept(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(briefing_cache, "SETTLED_SECONDS", 60.0)
    settings.memory_file.write_text("- Fire at dawn.\n")
    assert "dawn" in briefing_for(settings, Path("/src/kiln")).text
    assert kept(settings) == []


def test_a_kept_briefing_loads_no_table_library(settings: Settings, tmp_path: Path) -> None:
    kiln = tmp_path / "kiln"
    kiln.mkdir()
    briefing_for(settings, kiln)
    keep_format(settings.workspace, FORMAT)
    code = (
        f"import sys; sys.argv = ['memory', 'context', '--project', {str(kiln)!r}]\n"
        "from memory_pipeline.cli.main import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print(sorted({'polars', 'duckdb', 'dagster', 'torch', 'numpy', 'requests'} & set(sys.modules)))"
    )
    environment = {**os.environ, "MEMORY_WORKSPACE": str(settings.workspace)}
    environment["MEMORY_TIMEZONE"] = "UTC"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "Fire at noon." in done.stdout
    assert done.stdout.rstrip().endswith("[]")


SLOW = """
import sys, time, types
from pathlib import Path
fake = types.ModuleType("memory_pipeline.recall.briefing")
def brief_at(settings, place):
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
    return types.SimpleNamespace(
        text="new\\n", project=None, tokens=1, shown=[], sections=[], left_out=0, problems=[]
    )
fake.brief_at = brief_at
sys.modules[fake.__name__] = fake
from memory_pipeline.recall.briefing_cache import (briefing_for, refresh_kept)
from memory_pipeline.settings import load_settings
print(briefing_for(load_settings(), Path("/src/kiln")).text)
"""


def test_what_takes_too_long_is_there_the_next_time(settings: Settings, tmp_path: Path) -> None:
    before = briefing_for(settings, Path("/src/kiln")).text
    settings.memory_file.write_text("- Fire at dawn.\n")
    settle(settings)
    environment = {**os.environ, "MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC"}
    command = [sys.executable, "-c", SLOW, str(tmp_path / "go")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # ends before the other
    assert done.stdout == before + "\n"
    (tmp_path / "go").touch()
    while json.loads(kept(settings)[0].read_text())["briefing"]["text"] != "new\n":
        time.sleep(0.01)


def test_without_one_of_before_it_is_waited_for(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    environment = {**os.environ, "MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC"}
    command = [sys.executable, "-c", SLOW, str(tmp_path / "go")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "new\n\n"


def test_a_run_renders_the_kept_ones_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    briefing_for(settings, Path("/src/kiln"))
    settings.memory_file.write_text("- Fire at dawn.\n")
    refresh_kept(settings)
    monkeypatch.setattr(briefing, "brief_at", None)
    assert "dawn" in briefing_for(settings, Path("/src/kiln")).text


def test_the_project_of_a_folder_is_that_of_its_sessions(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path / "ws")
    top = tmp_path / "src" / "api"
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (top / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:ada/kiln.git\n')
    (top / "deep" / "down").mkdir(parents=True)
    worktree = tmp_path / "elsewhere"
    worktree.mkdir()
    (top / ".git" / "worktrees" / "e").mkdir(parents=True)
    (top / ".git" / "worktrees" / "e" / "HEAD").write_text("ref: refs/heads/feature\n")
    (worktree / ".git").write_text(f"gitdir: {top}/.git/worktrees/e\n")
    for folder in (top, top / "deep" / "down", worktree):
        assert project_of_place(lake, place_of_folder(folder)) == "kiln"
    assert place_of_folder(worktree).branch == "feature"
    assert place_of_folder(top / "deep").cwd == str(top)


def test_another_folder_of_a_name_that_is_taken_is_another_project(tmp_path: Path) -> None:
    from memory_pipeline_tests.conftest import conversation, write_session

    settings, lake = workspace(tmp_path / "ws")
    write_session(tmp_path / "s" / "one.jsonl", *conversation(f"{DAY}T09:00:00"), cwd="/home/ada/code/api")
    from memory_pipeline.harnesses.model import source_of
    from memory_pipeline.sessions.catalogue import Catalogue

    Catalogue(lake, settings).refresh([source_of(tmp_path / "s" / "one.jsonl")])
    assert project_of_place(lake, place_of_folder(Path("/home/ada/code/api"))) == "api"
    assert project_of_place(lake, place_of_folder(Path("/home/ada/play/api"))) == "play/api"
    assert project_of_place(lake, place_of_folder(Path("/home/ada"))) is None


def test_the_kept_file_is_the_owners_alone(settings: Settings) -> None:
    briefing_for(settings, Path("/src/kiln"))
    assert kept(settings)[0].stat().st_mode & 0o077 == 0
    assert json.loads(kept(settings)[0].read_text())["briefing"]["text"]


@pytest.mark.parametrize("closed", ["lake", "proposals", "nothing"])
def test_what_may_not_be_read_is_left_out(open_tmp: Path, as_nobody: None, closed: str) -> None:
    settings, lake = workspace(open_tmp / "ws")
    put(lake, "proposals", proposal(1, "Bricks are red."))
    settings.memory_file.write_text("- Fire at noon.\n")
    shut = {"lake": lake.root, "proposals": lake.root / "proposals"}
    if closed in shut:
        shut[closed].chmod(0)
    settings.workspace.chmod(0o500)  # nor written, as on a disk that is full
    found = briefing_for(settings, Path("/src/kiln"))
    assert "Fire at noon." in found.text
    assert ("Bricks are red." in found.text) == (closed == "nothing")
