"""Old logs into the archive: none that is not done with, none over another one, and no crash loses a byte."""

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.settings import Settings
from memory_pipeline.workspace.daily_log.archive import Archived, archive_logs, move_log, old_logs
from memory_pipeline.workspace.daily_log.render import write_log_blocks
from memory_pipeline_tests.rows import DAY, bytes_of, day_after, workspace

TODAY = day_after(30)
TEXT = "# 2025-03-05\n\nMine.\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings, _ = workspace(tmp_path / "workspace", archive_after_days=30)
    settings.log_dir.mkdir(parents=True)
    settings.daily_log(DAY).write_text(TEXT)
    return settings


def done(day: date) -> None:
    """Every day is done with."""


def archive(settings: Settings, why_not: Callable[[date], str | None] = done, *, dry_run: bool = False) -> Archived:
    return archive_logs(settings, TODAY, why_not, dry_run=dry_run)


def test_an_old_log_moves_with_its_bytes(settings: Settings) -> None:
    assert archive(settings) == Archived([DAY])
    assert [p.name for p in settings.log_dir.iterdir()] == ["archive"]
    assert settings.archived_log(DAY).read_text() == TEXT
    assert archive(settings) == Archived()  # and again changes nothing


def test_logs_that_are_not_old_enough_or_no_logs_stay(settings: Settings, tmp_path: Path) -> None:
    for name in (f"{day_after(1)}", "notes", "2025-02-30", "2025-01-01.bak"):
        (settings.log_dir / f"{name}.md").write_text("x")
    assert old_logs(settings, TODAY) == [DAY]
    off, _ = workspace(settings.workspace)
    assert old_logs(off, TODAY) == []


def test_what_is_not_done_with_stays_and_says_why(settings: Settings) -> None:
    before = bytes_of(settings.log_dir)
    assert archive(settings, lambda day: "it waits") == Archived(waiting={DAY: "it waits"})
    assert bytes_of(settings.log_dir) == before


def test_a_dry_run_moves_nothing(settings: Settings) -> None:
    before = bytes_of(settings.workspace)
    assert archive(settings, dry_run=True) == Archived([DAY])
    assert bytes_of(settings.workspace) == before


def test_never_over_another_file(settings: Settings) -> None:
    settings.archived_log(DAY).parent.mkdir()
    settings.archived_log(DAY).write_text("another")
    before = bytes_of(settings.log_dir)
    for dry_run in (True, False):
        found = archive(settings, dry_run=dry_run)
        assert "already exists with other text" in found.stuck[DAY]
    assert bytes_of(settings.log_dir) == before


@pytest.mark.parametrize("hard", [True, False])
def test_over_the_same_bytes_there_is_one_left(settings: Settings, hard: bool) -> None:
    settings.archived_log(DAY).parent.mkdir()
    if hard:
        settings.archived_log(DAY).hardlink_to(settings.log_dir / f"{DAY}.md")
    else:
        settings.archived_log(DAY).write_text(TEXT)
    assert archive(settings) == Archived([DAY])
    assert bytes_of(settings.log_dir) == {f"archive/{DAY}.md": TEXT.encode()}


def test_a_log_that_is_a_link_stays(settings: Settings, tmp_path: Path) -> None:
    path = settings.log_dir / f"{DAY}.md"
    path.rename(tmp_path / "vault.md")
    path.symlink_to(tmp_path / "vault.md")
    assert "is a link" in archive(settings).stuck[DAY]
    assert path.is_symlink()


def test_one_that_cannot_be_moved_does_not_keep_the_others(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.daily_log(day_after(-1)).write_text("x")
    replace = Path.replace

    def fails_once(self: Path, target: Path) -> Path:
        if self.stem == f"{day_after(-1)}":
            raise OSError(18, "Invalid cross-device link", str(self))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails_once)
    found = archive(settings)
    assert (found.moved, found.stuck.keys()) == ([DAY], {day_after(-1)})
    assert found.stuck[day_after(-1)].endswith("invalid cross-device link")


def test_the_log_goes_on_where_it_lies(settings: Settings, tmp_path: Path) -> None:
    archive(settings)
    path = settings.daily_log(DAY)
    assert path == settings.archived_log(DAY)
    write_log_blocks(path, DAY, {"reflection": "Said later."}, backups=settings.backups)
    assert [p.name for p in settings.log_dir.iterdir()] == ["archive"]
    assert path.read_text().startswith(TEXT) and "Said later." in path.read_text()


def test_a_person_who_begins_the_log_anew_has_the_last_word(settings: Settings) -> None:
    archive(settings)
    (settings.log_dir / f"{DAY}.md").write_text("New.")
    assert settings.daily_log(DAY) == settings.log_dir / f"{DAY}.md"
    assert "already exists with other text" in archive(settings).stuck[DAY]


class Killed(BaseException):
    """As by kill -9, as far as files go."""


@pytest.mark.parametrize("at", range(12))
def test_killed_between_any_two_calls_and_run_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    calls = 0

    def counted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Killed(name)
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in ("replace", "unlink", "mkdir", "read_bytes"):
            patched.setattr(Path, name, counted(name, getattr(Path, name)))
        for name in ("fsync", "open"):
            patched.setattr(os, name, counted(name, getattr(os, name)))
        try:
            move_log(settings, DAY)
        except Killed:
            held = [p for p in settings.log_dir.rglob("*.md") if p.read_text() == TEXT]
            assert len(held) == 1
    assert move_log(settings, DAY) is None
    assert bytes_of(settings.log_dir) == {f"archive/{DAY}.md": TEXT.encode()}
