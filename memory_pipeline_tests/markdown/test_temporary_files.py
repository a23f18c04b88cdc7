"""What a killed process left anywhere in a workspace goes with the next run, and nothing of a user does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.defs.proposals import memory_file_asset
from memory_pipeline.markdown import safe_write
from memory_pipeline.markdown.safe_write import remove_temporary_files
from memory_pipeline.settings.marks import salt
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import bytes_of, proposal, put, workspace

OURS = (
    f".memory-{'0a' * 8}.tmp",
    f"backups/lake/decisions/.memory-{'0b' * 8}.tmp",
    f"memory/archive/.memory-{'0c' * 8}.tmp",
    "lake/messages/.2025-03-05.parquet.4711.tmp",
    "lake/files/.all.parquet.4711.tmp",
    "lake/.salt.4711.140.tmp",
    f"llm/cache/ab/.{'ab' * 32}.{'0d' * 4}.tmp",
    ".examples-ab12_xyz/sessions/pi/one.jsonl",
)
THEIRS = (
    "notes.tmp",
    ".memory-notes.tmp",
    "memory/.2025-03-05.md.tmp",
    "memory/2025-03-05.md",
    ".examples/mine.jsonl",
    "lake/messages/2025-03-05.parquet.tmp",
    f"dagster/history/.memory-{'0e' * 8}.tmp",
)


def lay_out(folder: Path, age: float) -> None:
    for name in (*OURS, *THEIRS):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
        for entry in (path, *path.relative_to(folder).parents[:-1]):
            os.utime(folder / entry, (time.time() - age, time.time() - age))


@each("age", [7_200, 90_000_000, -90_000_000])  # the last by a clock that ran ahead
def test_all_of_ours_go_and_nothing_else(tmp_path: Path, age: float) -> None:
    lay_out(tmp_path, age)
    remove_temporary_files(tmp_path, but_in=tmp_path / "dagster")
    assert bytes_of(tmp_path).keys() == set(THEIRS)
    assert not (tmp_path / ".examples-ab12_xyz").exists()


def test_what_may_be_in_use_stays(tmp_path: Path) -> None:
    lay_out(tmp_path, 600)
    assert remove_temporary_files(tmp_path, but_in=tmp_path / "dagster") == []
    assert bytes_of(tmp_path).keys() == {*OURS, *THEIRS}


def test_the_names_are_those_that_writers_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the rename, each writer leaves a file that is found."""
    settings, lake = workspace(tmp_path)
    (tmp_path / "lake").mkdir(exist_ok=True)

    def killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        patch.setattr(os, "link", killed)
        for write in (
            lambda: put(lake, "proposals", proposal(1, "Use uv.")),
            lambda: safe_write.write_atomically(settings.memory_file, b"x", expected=None, backups=None),
            lambda: salt(settings.workspace),
        ):
            with pytest.raises(SystemExit):
                write()
    left = list(tmp_path.rglob("*.tmp"))
    assert len(left) == 3
    for path in left:
        os.utime(path, (0, 0))
    assert sorted(remove_temporary_files(tmp_path, but_in=settings.dagster_home)) == sorted(left)


def test_a_run_takes_them_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _ = workspace(tmp_path)
    lay_out(tmp_path, 7_200)
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{settings.workspace}")
    with dg.DagsterInstance.ephemeral() as instance:
        asset, resources = memory_file_asset(Placement(settings)), {"workspace": WorkspaceResource()}
        dg.materialize([asset], instance=instance, resources=resources)
    assert not list(tmp_path.rglob(f".memory-{'0b' * 8}.tmp"))
