"""`memory doctor`: what it prints, how it ends, what it mends."""

from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.settings.marks import keep_zone
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.command import called, memory, memory_json
from memory_pipeline_tests.cli.test_examples import demo  # noqa: F401 - a fixture
from memory_pipeline_tests.operations.test_migrations import EARLIER, unpacked
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.rows import workspace


def test_a_workspace_that_is_not_made_yet_is_no_problem(tmp_path: Path) -> None:
    found = memory(tmp_path, "doctor")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "does not exist yet" in found.stdout
    assert "fix: memory run" in found.stdout
    assert not (tmp_path / ".memory-pipeline").exists()  # looking makes nothing


@pytest.mark.slow
def test_a_run_leaves_nothing_to_mend_and_what_is_broken_is_told(
    demo: tuple[Path, str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    found = memory_json(demo[0], "doctor")["findings"]
    assert {f["about"] for f in found if f["level"] != "ok"} == {"daemon"}
    assert {f["said"].split()[0] for f in found if f["about"] == "stages"} >= {"sessions", "observations", "proposals"}

    home = copied(demo[0], tmp_path / "home")
    made = home / ".memory-pipeline/examples"
    (made / "REVIEW.md").chmod(0o644)
    broken = next((made / "lake/proposals").glob("*.parquet"))
    for path in (broken, *(made / "backups/lake/proposals").glob(f"{broken.name}.*")):
        path.write_bytes(b"no table")
    told = memory(home, "doctor", "--fix")
    assert told.returncode == 1, told.stdout
    assert "fixed    permissions" in told.stdout
    assert f"problem  tables: {broken}" in told.stdout
    assert (made / "REVIEW.md").stat().st_mode & 0o777 == 0o600


def _moved(home: Path, _: pytest.MonkeyPatch) -> None:
    """An agent's folder was read and is gone."""
    own = {"path": f"{home}/.claude/projects/kiln/one.jsonl", "harness": "claude_code"}
    lake = workspace(home / ".memory-pipeline")[1]
    lake.replace_all("files", pl.DataFrame([own], schema=lake.read("files").schema))


def _full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(home / ".memory-pipeline")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12, 10**6))


def _elsewhere(home: Path, _: pytest.MonkeyPatch) -> None:
    """The first run was in another zone."""
    workspace(home / ".memory-pipeline")
    keep_zone(home / ".memory-pipeline", "Pacific/Kiritimati")


@each(
    ("broken", "cause", "cure"),
    [
        (lambda *_: None, "no folder of a coding agent was found", "memory settings set session_dirs DIR"),
        (
            _moved,
            ".claude/projects is gone; what was read from it stays in the memory",
            "memory settings set session_dirs DIR",
        ),
        (_full, "0.0 GB are free", "free some space; du -xh "),
        (_elsewhere, "days are those of Pacific/Kiritimati", "MEMORY_WORKSPACE=DIR memory run"),
        (
            lambda home, _: unpacked(EARLIER[-1], home / ".memory-pipeline"),
            "This workspace of an earlier version was converted; copies are in",
            "memory run --all",
        ),
    ],
    ids=["no agent", "moved folder", "full disk", "time zone", "old workspace"],
)
def test_a_broken_set_up_is_named_with_its_cure(
    broken: Callable[[Path, pytest.MonkeyPatch], object],
    cause: str,
    cure: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(tmp_path, monkeypatch)
    found = called(tmp_path, "doctor")
    assert cause in found.stdout + found.stderr, found.stdout + found.stderr
    assert f"fix: {cure}" in found.stdout or f", or {cure}" in found.stdout or f"; else {cure}" in found.stdout
