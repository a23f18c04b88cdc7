"""A person's file is at every moment entirely old or entirely new, and what it was is in the backups.

The crash tests let every single call of os.replace and os.fsync fail in turn, in the way a full or dying disk would.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.markdown import safe_write
from memory_pipeline.markdown.safe_write import ChangedMeanwhileError, decode, encode, update_file, write_atomically

OLD, NEW = "\ufeff# Memory\r\n- alt \udcff\r\n".encode("utf-8", "surrogateescape"), b"# Memory\n- new\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "MEMORY.md"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def held_in(backups: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(backups.glob("MEMORY.md.2*"))]


def strays_in(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.suffix == ".tmp"]


@given(st.binary())
def test_any_bytes_survive_reading_as_text(data: bytes) -> None:
    assert encode(decode(data)) == data


def test_reading_keeps_mark_line_endings_and_broken_bytes(file: Path) -> None:
    assert decode(file.read_bytes()) == "\ufeff# Memory\r\n- alt \udcff\r\n"


def test_writing_replaces_and_backs_up(file: Path, backups: Path) -> None:
    assert write_atomically(file, NEW, expected=OLD, backups=backups)
    assert file.read_bytes() == NEW
    assert held_in(backups) == [OLD]
    assert strays_in(file.parent.parent) == []


def test_equal_bytes_touch_nothing(file: Path, backups: Path) -> None:
    before = file.stat()
    assert not write_atomically(file, OLD, expected=OLD, backups=backups)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not backups.exists()


@pytest.mark.parametrize("expected", [None, b"", b"what we read a minute ago"])
def test_a_file_that_changed_is_left_alone(file: Path, backups: Path, expected: bytes | None) -> None:
    with pytest.raises(ChangedMeanwhileError, match=r"MEMORY\.md"):
        write_atomically(file, NEW, expected=expected, backups=backups)
    assert file.read_bytes() == OLD


def test_a_file_that_vanished_is_not_brought_back(file: Path, backups: Path) -> None:
    file.unlink()
    with pytest.raises(ChangedMeanwhileError):
        write_atomically(file, NEW, expected=OLD, backups=backups)
    assert not file.exists()


def test_a_save_at_the_last_moment_is_seen(file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = safe_write._temporary_in

    def save_meanwhile(*args: object, **kwargs: object) -> Path:
        file.write_bytes(b"saved by hand")
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(safe_write, "_temporary_in", save_meanwhile)
    with pytest.raises(ChangedMeanwhileError):
        write_atomically(file, NEW, expected=OLD, backups=backups)
    assert file.read_bytes() == b"saved by hand"
    assert strays_in(file.parent.parent) == []


def test_missing_folders_are_made_and_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "MEMORY.md"
    (tmp_path / "by-hand").touch()
    assert write_atomically(path, NEW, expected=None, backups=tmp_path / "backups")
    assert path.read_bytes() == NEW
    assert path.stat().st_mode == (tmp_path / "by-hand").stat().st_mode
    assert not (tmp_path / "backups").exists()


def test_permissions_are_kept_and_a_backup_is_private(file: Path, backups: Path) -> None:
    file.chmod(0o640)
    write_atomically(file, NEW, expected=OLD, backups=backups)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [stat.S_IMODE(path.stat().st_mode) for path in backups.iterdir()] == [0o600]


def test_a_read_only_file_is_not_written(file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: bool(Path(path).stat().st_mode & 0o200))  # also for root
    with pytest.raises(PermissionError, match=r"MEMORY\.md"):
        write_atomically(file, NEW, expected=OLD, backups=backups)
    assert file.read_bytes() == OLD


@pytest.mark.parametrize("exists", [True, False], ids=["target exists", "dangling"])
def test_a_symbolic_link_stays_and_its_target_is_written(file: Path, backups: Path, exists: bool) -> None:
    link = backups.parent / "link" / "MEMORY.md"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "home" / "MEMORY.md")
    if not exists:
        file.unlink()
    write_atomically(link, NEW, expected=OLD if exists else None, backups=backups)
    assert link.is_symlink()
    assert file.read_bytes() == NEW


def test_the_newest_twenty_backups_are_kept(file: Path, backups: Path) -> None:
    backups.mkdir()
    (backups / "MEMORY.md.mine").write_bytes(b"a person's own copy")
    versions = [b"%d" % number for number in range(25)]
    for version in versions:
        write_atomically(file, version, expected=file.read_bytes(), backups=backups)
    assert held_in(backups) == versions[4:24]
    assert (backups / "MEMORY.md.mine").exists()


def crash_at(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> Iterator[int]:
    """Make the call ``number`` of ``os.<name>`` fail; the iterator tells how many calls there were."""
    real, calls = getattr(os, name), count()

    def failing(*args: object, **kwargs: object) -> object:
        if next(calls) == number:
            raise OSError(28, "No space left on device")
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, failing)
    return calls


@pytest.mark.parametrize(
    ("name", "number"),
    [("replace", 0), ("replace", 1), ("fsync", 0), ("fsync", 1), ("fsync", 2), ("fsync", 3), ("fsync", 4)],
)
def test_a_crash_leaves_the_file_old_or_new(
    file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    crash_at(monkeypatch, name, number)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, NEW, expected=OLD, backups=backups)
    replaced = name == "fsync" and number == 4  # only the folder was not flushed; the first is that of the new backups
    assert file.read_bytes() == (NEW if replaced else OLD)
    assert set(held_in(backups)) <= {OLD}
    if replaced:
        assert held_in(backups) == [OLD]
    assert strays_in(file.parent.parent) == []

    monkeypatch.undo()
    assert update_file(file, lambda _: NEW, backups=backups) is not replaced
    assert file.read_bytes() == NEW
    assert held_in(backups) == [OLD], "the retry adds no second copy of the same version"


def test_the_crash_test_covers_every_call(file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {name: crash_at(monkeypatch, name, -1) for name in ("replace", "fsync")}
    write_atomically(file, NEW, expected=OLD, backups=backups)
    assert {name: next(counter) for name, counter in calls.items()} == {"replace": 2, "fsync": 5}


def test_what_a_killed_process_left_is_removed_by_a_later_write(file: Path, backups: Path) -> None:
    left, in_use = file.parent / ".memory-0.tmp", file.parent / ".memory-1.tmp"
    left.touch()
    in_use.touch()
    os.utime(left, (0, 0))
    write_atomically(file, NEW, expected=OLD, backups=backups)
    assert (left.exists(), in_use.exists()) == (False, True)


def test_a_folder_that_cannot_be_flushed_is_no_error(
    file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    assert write_atomically(file, NEW, expected=OLD, backups=backups)


def saving_meanwhile(file: Path, saves: list[bytes]) -> Callable[[bytes | None], bytes]:
    """An edit that appends a line, during which a person saves the file, as often as there are ``saves``."""

    def edit(current: bytes | None) -> bytes:
        if saves:
            file.write_bytes(saves.pop(0))
        return (current or b"") + b"ours\n"

    return edit


def test_an_edit_is_made_again_on_what_a_person_saved_meanwhile(file: Path, backups: Path) -> None:
    assert update_file(file, saving_meanwhile(file, [b"one\n", b"two\n"]), backups=backups)
    assert file.read_bytes() == b"two\nours\n"
    assert held_in(backups) == [b"two\n"]


def test_it_gives_up_after_its_attempts_and_leaves_the_persons_version(file: Path, backups: Path) -> None:
    with pytest.raises(ChangedMeanwhileError):
        update_file(file, saving_meanwhile(file, [b"%d" % number for number in range(9)]), backups=backups, attempts=3)
    assert file.read_bytes() == b"2"


def test_a_failing_edit_changes_nothing(file: Path, backups: Path) -> None:
    def edit(current: bytes | None) -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        update_file(file, edit, backups=backups)
    assert file.read_bytes() == OLD


def test_the_lock_lies_in_the_backups_and_not_beside_the_file(file: Path, backups: Path) -> None:
    update_file(file, lambda _: NEW, backups=backups)
    assert [path.name for path in file.parent.iterdir()] == ["MEMORY.md"]


def test_our_own_writers_take_turns(file: Path, backups: Path) -> None:
    def work(number: int) -> None:
        update_file(file, lambda current: (current or b"") + b"- %d\n" % number, backups=backups, attempts=1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = file.read_bytes()
    assert text.startswith(OLD)
    assert sorted(text[len(OLD) :].splitlines()) == [b"- %d" % number for number in range(8)]
