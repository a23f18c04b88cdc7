"""A full disk is one sentence, before anything is begun and where it comes about later."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from memory_pipeline.cli import main as command
from memory_pipeline.embeddings.index import IndexUnavailableError
from memory_pipeline.embeddings.opening import open_collection
from memory_pipeline.workspace.free_space import MIN_FREE_BYTES, DiskFullError, disk_full, is_disk_full, require_space
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import workspace


def with_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))


def test_too_little_room_is_said_before_anything_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, MIN_FREE_BYTES)
    require_space(tmp_path / "not/there/yet")
    with_free(monkeypatch, MIN_FREE_BYTES - 1_000_000)
    with pytest.raises(
        DiskFullError, match=r"is full: 249 MB are free, and 250 are needed\. Make room and run it again"
    ):
        require_space(tmp_path / "not/there/yet")


def test_the_index_is_not_opened_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded engine would write into a hole of a mapped file, and the system would kill the process."""
    settings, _ = workspace(tmp_path)
    with_free(monkeypatch, MIN_FREE_BYTES - 1)
    with pytest.raises(IndexUnavailableError, match="is full"):
        open_collection(settings, "any", 4, wait=1)
    assert not settings.index_dir.exists()


def chained(cause: Exception) -> Exception:
    try:
        try:
            raise cause
        except Exception as error:
            raise RuntimeError("a library has other words for it") from error
    except RuntimeError as error:
        return error


@each(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        sqlite3.OperationalError("database or disk is full"),
        pl.exceptions.ComputeError("No space left on device (os error 28)"),
    ],
)
def test_it_is_known_in_the_words_of_each_library(error: Exception, tmp_path: Path) -> None:
    assert is_disk_full(error, tmp_path) and is_disk_full(chained(error), tmp_path)


@each("error", [OSError(errno.EACCES, "Permission denied"), ValueError("full of errors"), None])
def test_nothing_else_is_taken_for_it_unless_there_is_no_room_at_all(
    error: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_disk_full(error, tmp_path)
    with_free(monkeypatch, 4096)
    assert is_disk_full(error, tmp_path)


def test_the_command_says_it_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise chained(sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setenv("MEMORY_WORKSPACE", f"{tmp_path}")
    monkeypatch.setattr(command, "app", full)
    with pytest.raises(SystemExit):
        command.main()
    assert capsys.readouterr().err.strip() == disk_full(tmp_path)
