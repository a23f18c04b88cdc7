"""A file system without locks: whatever is locked, a user gets one sentence that says what to do."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import filelock
import pytest

import memory_pipeline
from memory_pipeline.cli import main as command
from memory_pipeline.locks import FileLock, LocksUnsupportedError
from memory_pipeline.markdown.safe_write import update_file
from memory_pipeline.operations.doctor import PROBLEM, examine
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.conftest import conversation, write_session


@pytest.fixture(params=[errno.ENOLCK, errno.ENOTSUP])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_file: int, _operation: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("without_locks")
def test_a_lock_tells_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(LocksUnsupportedError, match=r"x\.lock cannot be locked.*Set MEMORY_WORKSPACE"),
        FileLock(tmp_path / "x.lock"),
    ):
        pytest.fail("it was locked")
    with pytest.raises(LocksUnsupportedError):
        update_file(tmp_path / "MEMORY.md", lambda _: b"x", backups=tmp_path / "backups")


def test_a_lock_that_is_held_is_none_of_it(tmp_path: Path) -> None:
    with FileLock(tmp_path / "x.lock"), pytest.raises(filelock.Timeout), FileLock(tmp_path / "x.lock", timeout=0):
        pytest.fail("it was locked twice")


@pytest.mark.usefixtures("without_locks")
def test_a_command_says_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_session(tmp_path / "sessions/a.jsonl", *conversation("2025-03-05T09:00:00"))
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(tmp_path / "sessions"))
    for arguments in (["run"], ["status"]):
        monkeypatch.setattr("sys.argv", ["memory", *arguments])
        with pytest.raises(SystemExit) as ended:
            command.main()
        told = capsys.readouterr().err
        assert ended.value.code == 1
        assert ".lock cannot be locked: its file system does not support locks." in told
        assert "Traceback" not in told
    settings = load_settings()
    (settings.backups).mkdir(parents=True, exist_ok=True)
    (settings.backups / "proposals.lock").touch()
    found = {finding.about: finding for finding in examine(settings, lambda: None, lambda: None)}
    assert found["locks"].level == PROBLEM
    assert "does not support locks" in found["locks"].said


def test_every_lock_of_the_product_is_this_one() -> None:
    root = Path(memory_pipeline.__file__).parent
    assert [path.name for path in root.rglob("*.py") if "from filelock import FileLock" in path.read_text()] == []
