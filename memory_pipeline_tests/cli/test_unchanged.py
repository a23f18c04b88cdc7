"""A run that left nothing to do is not done again until something changes, and whatever changes is seen."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.cli import unchanged
from memory_pipeline.cli.unchanged import kept_outcome
from memory_pipeline.settings import Settings
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.conftest import conversation, write_session

DAY = datetime.now(UTC) - timedelta(days=1)


def run(folder: Path, *options: str) -> dict[str, Any]:
    done = memory(folder / "home", "run", "--json", *options, "--sessions", f"{folder}/sessions", env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


ENVIRONMENT = {"MEMORY_TIMEZONE": "UTC"}


def dagster_runs(folder: Path) -> int:
    with closing(sqlite3.connect(workspace(folder) / "dagster/history/runs.db")) as runs:
        return int(runs.execute("SELECT count(*) FROM runs").fetchone()[0])


def workspace(folder: Path) -> Path:
    return folder / "home/.memory-pipeline"


def test_a_run_with_nothing_to_do_says_the_same_and_leaves_dagster_alone(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    write_session(tmp_path / "sessions/one.jsonl", *conversation(DAY, topic="the cellar door"))
    first = run(tmp_path)
    done = dagster_runs(tmp_path)
    assert done > 0
    assert run(tmp_path) == first
    assert dagster_runs(tmp_path) == done

    (workspace(tmp_path) / "MEMORY.md").write_text("# Memory\n\n- A line of mine.\n", "utf-8")
    run(tmp_path)
    assert dagster_runs(tmp_path) == done + 1, "what a person wrote is read"

    write_session(tmp_path / "sessions/two.jsonl", *conversation(DAY, topic="the attic stairs"))
    assert run(tmp_path)["sessions"] == 2
    assert dagster_runs(tmp_path) >= done + 3
    before = dagster_runs(tmp_path)
    assert run(tmp_path, "--all")["sessions"] == 2
    assert dagster_runs(tmp_path) == before, "of one day, all days are the same days"


SUMMARY = {"problems": [], "set_aside": [], "days_unfinished": [], "days_by_words": [], "sessions": 3}


class NothingToDo:
    """A plan, and a catalogue, of a workspace in which all is up to date."""

    @classmethod
    def from_settings(cls, *_: object) -> NothingToDo:
        return cls()

    def runs_for(self, days: object) -> list[object]:
        return []


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(unchanged, "Stages", NothingToDo)
    monkeypatch.setattr(unchanged, "lexical_only", lambda settings: None)
    return Settings(workspace=tmp_path)


def keep(settings: Settings, **other: Any) -> None:
    unchanged.keep_outcome(settings, NothingToDo(), [DAY.date()], None, SUMMARY | other)  # type: ignore[arg-type]


def put(settings: Settings, name: str) -> None:
    path = settings.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[]")


@pytest.mark.parametrize(
    "name",
    [
        "MEMORY.md",
        "REVIEW.md",
        "memory/2026-03-02.md",
        "lake/observations/part.parquet",
        "index/memory_observations-x/segments/1/data",
        "dagster/history/runs/index.db",
        "dagster/history/runs/index.db-wal",
        "connections/connected.json",
    ],
)
def test_whatever_is_read_or_written_there_counts(settings: Settings, name: str) -> None:
    keep(settings)
    assert kept_outcome(settings, [DAY.date()]) == SUMMARY
    put(settings, name)
    assert kept_outcome(settings, [DAY.date()]) is None
    keep(settings)
    assert kept_outcome(settings, [DAY.date()]) == SUMMARY
    (settings.workspace / name).unlink()
    assert kept_outcome(settings, [DAY.date()]) is None


def test_other_days_settings_and_tomorrow_count(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(settings)
    assert kept_outcome(settings, []) is None
    assert kept_outcome(settings.model_copy(update={"lookback_days": 3}), [DAY.date()]) is None
    assert kept_outcome(settings, [DAY.date()]) == SUMMARY
    monkeypatch.setattr(unchanged, "today", lambda zone: (DAY + timedelta(days=2)).date())
    assert kept_outcome(settings, [DAY.date()]) is None


@pytest.mark.parametrize("waits", ["problems", "set_aside", "days_unfinished", "days_by_words"])
def test_what_waits_or_is_not_well_is_looked_for_again(settings: Settings, waits: str) -> None:
    keep(settings, **{waits: ["something"]})
    assert kept_outcome(settings, [DAY.date()]) is None


def test_a_damaged_file_counts_as_none(settings: Settings) -> None:
    keep(settings)
    (kept,) = settings.dagster_home.glob("*.json")
    for damage in (b"", b"\0\0", b"[]", b'{"state": 1}'):
        kept.write_bytes(damage)
        assert kept_outcome(settings, [DAY.date()]) is None
