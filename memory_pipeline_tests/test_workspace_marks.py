"""What a workspace keeps is whole or not there, and nobody else may look at it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.settings.marks import keep_first_day, keep_private, keep_zone, salt, stored_first_day, stored_zone
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import workspace

DAY = date(2025, 3, 5)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_one_from_before_becomes_private_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere.md"
    elsewhere.write_text("mine")
    elsewhere.chmod(0o644)
    (folder / "memory").mkdir(parents=True)
    (folder / "memory/2025-03-05.md").write_text("said")
    (folder / "hook.sh").write_text("true")
    (folder / "MEMORY.md").symlink_to(elsewhere)
    for path, bits in ((folder, 0o755), (folder / "memory", 0o775), (folder / "hook.sh", 0o755)):
        path.chmod(bits)
    settings, _ = workspace(folder)
    Workspace.open(settings)
    assert (mode(folder), mode(folder / "memory"), mode(folder / "hook.sh")) == (0o700, 0o700, 0o700)
    assert mode(folder / "memory/2025-03-05.md") == 0o600
    assert mode(elsewhere) == 0o644


def test_one_that_is_not_there_stays_so(tmp_path: Path) -> None:
    keep_private(tmp_path / "workspace")
    assert not (tmp_path / "workspace").exists()


@each("content", ["", "\n"])
def test_an_empty_mark_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "lake").mkdir()
    for name in ("timezone", "start_date", "salt"):
        (tmp_path / "lake" / name).write_text(content)
    assert (stored_zone(tmp_path), stored_first_day(tmp_path)) == (None, None)
    keep_zone(tmp_path, "Asia/Tokyo")
    keep_first_day(tmp_path, [DAY], DAY)
    assert (stored_zone(tmp_path), stored_first_day(tmp_path)) == ("Asia/Tokyo", DAY)
    assert len(salt(tmp_path)) == 16 == len(salt(tmp_path))


def test_a_mark_that_is_there_stays(tmp_path: Path) -> None:
    keep_zone(tmp_path, "Asia/Tokyo")
    keep_zone(tmp_path, "Europe/London")
    assert stored_zone(tmp_path) == "Asia/Tokyo" and salt(tmp_path) == salt(tmp_path)


@each("failing", ["write", "fsync", "rename"])
def test_a_disk_that_is_full_leaves_no_half_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = {"write": "os.fdopen", "fsync": "os.fsync", "rename": "os.replace"}[failing]
    with monkeypatch.context() as patched:
        patched.setattr(target, full)
        with pytest.raises(OSError, match="No space left"):
            keep_zone(tmp_path, "Asia/Tokyo")
        assert stored_zone(tmp_path) is None and not list(tmp_path.glob("lake/*"))
    keep_zone(tmp_path, "Asia/Tokyo")
    assert stored_zone(tmp_path) == "Asia/Tokyo"


@each("damage", [None, b"", bytes(16), b"short"])
def test_a_salt_that_is_lost_is_put_back(tmp_path: Path, damage: bytes | None) -> None:
    """With another one, every mark of a secret and every id of a message would be another."""
    before = salt(tmp_path)
    path = tmp_path / "lake/salt"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    assert salt(tmp_path) == path.read_bytes() == before
    assert mode(path) == mode(tmp_path / "backups/marks/salt") == 0o600


def test_a_workspace_of_an_older_version_gets_copies(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/salt").write_bytes(b"0123456789abcdef")
    (tmp_path / "lake/timezone").write_text("Asia/Tokyo\n")
    assert salt(tmp_path) == b"0123456789abcdef"
    keep_zone(tmp_path, "UTC")
    (tmp_path / "lake/salt").unlink()
    (tmp_path / "lake/timezone").write_bytes(bytes(11))
    assert (salt(tmp_path), stored_zone(tmp_path)) == (b"0123456789abcdef", "Asia/Tokyo")
    keep_zone(tmp_path, "UTC")
    assert (tmp_path / "lake/timezone").read_text() == "Asia/Tokyo\n"


@each("damage", [b"U\xbf\xff\n", b"Mars/Olympus\n", b"../../etc/passwd\n"])
def test_a_zone_that_is_none_is_put_back(tmp_path: Path, damage: bytes) -> None:
    keep_zone(tmp_path, "Asia/Tokyo")
    (tmp_path / "lake/timezone").write_bytes(damage)
    assert stored_zone(tmp_path) == "Asia/Tokyo"
    keep_zone(tmp_path, "UTC")
    assert (tmp_path / "lake/timezone").read_text() == "Asia/Tokyo\n"


def test_a_first_day_that_is_lost_is_put_back(tmp_path: Path) -> None:
    keep_first_day(tmp_path, [], DAY)
    (tmp_path / "lake/start_date").unlink()
    assert stored_first_day(tmp_path) == DAY
    keep_first_day(tmp_path, [], date(2026, 1, 1))
    assert (tmp_path / "lake/start_date").read_text() == f"{DAY}\n"
