"""A run with nothing to do starts no run of Dagster, and still reads what a user wrote."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.conftest import conversation, user, write_session

DAY = datetime.now(UTC) - timedelta(days=1)


def run(folder: Path, *options: str) -> dict[str, Any]:
    env = {"MEMORY_TIMEZONE": "UTC"}
    done = memory(folder / "home", "run", "--json", *options, "--sessions", f"{folder}/sessions", env=env)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def dagster_runs(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "home/.memory-pipeline/dagster/history/runs.db")) as runs:
        return int(runs.execute("SELECT count(*) FROM runs").fetchone()[0])


@pytest.mark.slow
def test_a_run_with_nothing_to_do_leaves_dagster_alone(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    rule = user(DAY + timedelta(minutes=30), "Never deploy on a Friday, because nobody is there to watch it.")
    write_session(tmp_path / "sessions/one.jsonl", *conversation(DAY, topic="the cellar door"), rule)
    first = run(tmp_path)
    done = dagster_runs(tmp_path)
    assert done > 0 and first["checks"]["passed"] > 0
    assert (tmp_path / "home/.memory-pipeline/dagster/status.json").exists()  # `memory status` need not load Dagster
    assert run(tmp_path) == first | {"checks": None}

    review = tmp_path / "home/.memory-pipeline/REVIEW.md"
    review.write_text(review.read_text("utf-8").replace("[ ]", "[x]"), "utf-8")
    second = run(tmp_path)
    assert second["review"]["approved"]
    assert dagster_runs(tmp_path) == done

    write_session(tmp_path / "sessions/two.jsonl", *conversation(DAY, topic="the attic stairs"))
    assert run(tmp_path)["sessions"] == 2
    assert dagster_runs(tmp_path) >= done + 2
