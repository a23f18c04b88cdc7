"""Each thing that can be wrong with a workspace is found, with what to do; what is safe is mended."""

from __future__ import annotations

import os
import shutil
import time
from collections import namedtuple
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from memory_pipeline.lake.store import Lake
from memory_pipeline.operations import doctor
from memory_pipeline.operations.doctor import OK, PROBLEM, WARNING, Automation, Finding, examine, mend
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import observation, put, workspace

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
WELL = Automation(is_on=True, switches={"session_sensor": True}, succeeded={"sessions": NOW})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "workspace")
    put(lake, "observations", observation("we use uv"))
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    made.workspace.chmod(0o700)
    for path in made.workspace.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return made.model_copy(update={"session_dirs": (sessions,), "default_session_dirs": False})


def looked(settings: Settings, automation: Automation | None = WELL) -> list[Finding]:
    return examine(settings, lambda: automation, lambda: None)


def of(settings: Settings, about: str, automation: Automation | None = WELL) -> list[Finding]:
    return [finding for finding in looked(settings, automation) if finding.about == about]


def test_a_sound_workspace_has_no_problem(settings: Settings) -> None:
    found = looked(settings)
    assert [f for f in found if f.level == PROBLEM] == []
    assert {f.about for f in found} >= {
        *("workspace", "settings", "permissions", "disk", "time zone", "session files", "locks", "tables", "index"),
        *("language model", "agents", "schedules and sensors", "daemon", "stages"),
    }
    assert all(f.fix for f in found if f.level != OK)


def test_files_that_others_may_read_are_found_and_mended(settings: Settings) -> None:
    path = settings.workspace / "MEMORY.md"
    path.write_text("# Memory\n", "utf-8")
    path.chmod(0o644)
    (found,) = of(settings, "permissions")
    assert found.level == WARNING
    assert str(path) in found.said
    assert mend(looked(settings)) == [found]
    assert path.stat().st_mode & 0o777 == 0o600
    assert of(settings, "permissions")[0].level == OK


def test_a_lock_in_use_is_named(settings: Settings) -> None:
    assert "none is held" in of(settings, "locks")[0].said
    settings.backups.mkdir(exist_ok=True)
    with FileLock(settings.backups / "proposals.lock"):
        (found,) = of(settings, "locks")
    assert found.level == OK
    assert "proposals.lock by " in found.said
    if Path("/proc/locks").exists():
        assert f"process {os.getpid()}" in found.said


def test_a_table_that_cannot_be_made_again_is_a_problem(settings: Settings) -> None:
    path = settings.lake_dir / "events" / "2026-03-05.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no parquet")
    (found,) = of(settings, "tables")
    assert found.level == PROBLEM
    assert str(path) in found.said
    assert found.fix


def test_a_damaged_table_of_sessions_is_set_aside_and_told(settings: Settings) -> None:
    lake = Lake(settings.lake_dir)
    (day,) = lake.days("observations")
    lake.path("observations", day).write_bytes(b"no parquet")
    (found,) = of(settings, "quarantined")
    assert found.level == WARNING
    assert "broken-1" in found.said


def test_session_directories_are_explained(settings: Settings, tmp_path: Path) -> None:
    assert "is empty" in of(settings, "session files")[0].said
    (tmp_path / "sessions" / "one.jsonl").write_text("{}", "utf-8")
    assert of(settings, "session files")[0].fix == "memory run"
    gone = settings.model_copy(update={"session_dirs": (tmp_path / "nowhere",)})
    (found,) = of(gone, "session files")
    assert found.level == PROBLEM
    assert "nowhere" in found.said
    none = settings.model_copy(update={"session_dirs": ()})
    assert of(none, "session files")[-1].level == WARNING


def test_a_database_that_a_variable_names_needs_no_right_to_enter(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "any.sqlite"
    database.write_bytes(b"not read here")
    database.chmod(0o600)
    monkeypatch.setenv("OPENCODE_DB", str(database))
    (found,) = of(settings.model_copy(update={"session_dirs": (), "default_session_dirs": True}), "session files")[:1]
    assert found.said == f"{database}: nothing in it was read yet"


@pytest.mark.parametrize(
    ("model", "level", "said"),
    [
        ("no-such-command-here -p {prompt}", PROBLEM, "no-such-command-here"),
        ("sh -c true", OK, "sh is installed"),
        ("openai:gpt-5-mini", PROBLEM, "OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_asked_is_a_problem(
    settings: Settings, model: str, level: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    observer = settings.observer.model_copy(update={"model": model})
    (found,) = of(settings.model_copy(update={"observer": observer}), "language model")
    assert (found.level, said in found.said) == (level, True), found
    if "OPENAI" in said:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        assert of(settings.model_copy(update={"observer": observer}), "language model")[0].level == OK


def test_a_full_disk_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    for free, level in ((10**6, PROBLEM), (5 * 10**8, WARNING), (10**11, OK)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(10**12, 0, free))
        assert of(settings, "disk")[0].level == level


def test_what_was_begun_and_left_is_told(settings: Settings) -> None:
    stray = settings.workspace / f".memory-{'0' * 16}.tmp"
    stray.write_text("x", "utf-8")
    stray.chmod(0o600)
    assert of(settings, "temporary files") == []
    long_ago = time.time() - 7200
    os.utime(stray, (long_ago, long_ago))
    (found,) = of(settings, "temporary files")
    mend([found])
    assert not stray.exists()
    (settings.workspace / "forgetting.json").write_text('{"what": "text", "name": "x"}', "utf-8")
    (begun,) = of(settings, "forgetting")
    assert (begun.level, begun.fix) == (PROBLEM, "memory forget")


def test_dagster_is_told(settings: Settings) -> None:
    late = NOW - timedelta(days=9)
    sick = replace(
        WELL,
        is_on=False,
        switches={"session_sensor": False, "reflect_at_six": True},
        succeeded={"sessions": NOW, "observations": late, "proposals": None},
        dead=["day_job"],
    )
    found = {f.said: f for f in looked(settings, sick) if f.level != OK}
    said = " ".join(found)
    assert "off: session_sensor" in said
    assert "reflect_at_six" not in said
    assert "observations was last built on 2026-02-24" in said
    assert "proposals was never built" in said
    assert "day_job" in said
    assert "it is not running" in said
    assert all(f.level == WARNING and f.fix for f in found.values())


@pytest.mark.parametrize(
    ("beat", "made", "level"),
    [(None, 40, WARNING), (30, 2, WARNING), (2, 40, WARNING), (30, 40, PROBLEM)],
    ids=["it never ran", "runs by hand", "for two hours", "all has stopped"],
)
def test_a_daemon_that_stopped_is_a_problem_where_nobody_runs_by_hand(
    settings: Settings, beat: int | None, made: int, level: str
) -> None:
    now = datetime.now(UTC)
    known = replace(
        WELL,
        is_on=False,
        last_beat=now - timedelta(hours=beat) if beat else None,
        succeeded={"sessions": now - timedelta(hours=made)},
    )
    (found,) = of(settings, "daemon", known)
    assert found.level == level and found.fix
    assert ("nothing has been updated since" in found.said) is (level == PROBLEM)


def test_agents_that_lost_the_memory_are_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(_: Any) -> dict[str, str]:
        return {"claude": "connected, but its lines are missing from /x/CLAUDE.md", "codex": "connected"}

    monkeypatch.setattr(doctor, "describe_connections", told)
    lost, well = of(settings, "agents")
    assert (lost.level, lost.fix, well.level) == (PROBLEM, "memory agents connect claude", OK)
