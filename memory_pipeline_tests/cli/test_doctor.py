"""`memory doctor`: what it prints, how it ends, what it mends."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline_tests.cli.command import memory, memory_json


def test_a_workspace_that_is_not_made_yet_is_no_problem(tmp_path: Path) -> None:
    found = memory(tmp_path, "doctor")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "does not exist yet" in found.stdout
    assert "fix: memory run" in found.stdout
    assert not (tmp_path / ".memory-pipeline").exists()  # looking makes nothing


@pytest.mark.slow
def test_a_run_leaves_nothing_to_mend_and_what_is_broken_is_told(tmp_path: Path) -> None:
    assert memory(tmp_path, "run").returncode == 0  # the examples
    workspace = tmp_path / ".memory-pipeline/examples"
    found = memory_json(tmp_path, "doctor")["findings"]
    assert {f["about"] for f in found if f["level"] != "ok"} == {"daemon"}
    assert {f["said"].split()[0] for f in found if f["about"] == "stages"} >= {"sessions", "observations", "proposals"}

    (workspace / "REVIEW.md").chmod(0o644)
    broken = next((workspace / "lake/proposals").glob("*.parquet"))
    for path in (broken, *(workspace / "backups/lake/proposals").glob(f"{broken.name}.*")):
        path.write_bytes(b"no table")
    told = memory(tmp_path, "doctor", "--fix")
    assert told.returncode == 1, told.stdout
    assert "fixed    permissions" in told.stdout
    assert f"problem  tables: {broken}" in told.stdout
    assert (workspace / "REVIEW.md").stat().st_mode & 0o777 == 0o600
