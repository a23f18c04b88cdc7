"""Worktrees with names of their own belong to their repository, also after their folders are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions import file_rows
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.worktrees import repository_of_folder
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.conftest import conversation, write_session


def repository(folder: Path, git: str = ".git") -> Path:
    (folder / git / "worktrees").mkdir(parents=True)
    (folder / git / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def worktree(folder: Path, git: Path, *, pointer: str | None = None, back: str = "../..\n") -> Path:
    """As `git worktree add` makes it."""
    own = git / "worktrees" / folder.name
    own.mkdir(parents=True, exist_ok=True)
    (own / "commondir").write_text(back)
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {own}\n" if pointer is None else pointer)
    return folder


def test_the_repository_is_found_by_gits_pointer(tmp_path: Path) -> None:
    repo = repository(tmp_path / "my-repo")
    feature = worktree(tmp_path / "feature", repo / ".git")
    (feature / "src/deep").mkdir(parents=True)
    (repo / "web/.git").mkdir(parents=True)  # which is empty
    relative = worktree(tmp_path / "relative", repo / ".git", pointer="gitdir: ../my-repo/.git/worktrees/relative\n")
    bare = repository(tmp_path / "held", ".bare")
    beside = worktree(tmp_path / "held/main", bare / ".bare")
    old = repository(tmp_path / "old.git", ".")
    of_old = worktree(tmp_path / "of-old", old)
    (tmp_path / "link").symlink_to(tmp_path)
    wanted = {
        feature: str(repo),
        feature / "src/deep": str(repo),
        relative: str(repo),
        beside: str(bare),
        of_old: str(old),
        tmp_path / "link/feature": str(tmp_path / "link/my-repo"),
        repo: str(repo),
        repo / "web": str(repo),
        tmp_path: "",
        tmp_path / "gone": None,
    }
    assert {folder: repository_of_folder(str(folder)) for folder in wanted} == wanted
    assert [repository_of_folder(path) for path in ("", "src", "C:\\x", "//host/x", "/\0", "/" + "x" * 5000)] == [
        None
    ] * 6


def test_a_pointer_that_git_does_not_write_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be anybody's; nothing is read but the two files, and nothing can hang or crash the reader."""
    git = repository(tmp_path / "repo") / ".git"
    (git / "modules/sub/worktrees/x").mkdir(parents=True)
    (git / "modules/sub/worktrees/x/commondir").write_text("../..")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "commondir").write_text("../..")
    fifo = tmp_path / "worktrees/fifo"
    fifo.mkdir(parents=True)
    os.mkfifo(fifo / "commondir")
    good = f"gitdir: {git}/worktrees/x"
    pointers = {
        "submodule": f"gitdir: {git}/modules/sub",
        "worktree-of-a-submodule": f"gitdir: {git}/modules/sub/worktrees/x",
        "elsewhere": f"gitdir: {secret}",
        "to-a-pipe": f"gitdir: {fifo}",
        "two-lines": f"{good}\ngitdir: {secret}\n",
        "nul": f"{good}\0",
        "remote": "gitdir: //host/share/.git/worktrees/x",
        "long": f"gitdir: {'/x' * 5000}/worktrees/x",
        "empty": "",
        "prose": "not a pointer",
    }
    for name, pointer in pointers.items():
        worktree(tmp_path / name, tmp_path / "unused", pointer=pointer)
    worktree(tmp_path / "back-elsewhere", git, back=str(secret))
    (tmp_path / "not-utf-8").mkdir()
    (tmp_path / "not-utf-8/.git").write_bytes(b"gitdir: \xff")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe/.git")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to(tmp_path / "elsewhere/.git")
    opened: list[str] = []
    real_open = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: opened.append(str(path)) or real_open(path, *rest, **more)
    )
    names = [*pointers, "back-elsewhere", "not-utf-8", "pipe", "linked"]
    found = {name: repository_of_folder(str(tmp_path / name)) for name in names}
    assert found == {name: "" if name == "pipe" else str(tmp_path / name) for name in names}
    assert {Path(path).name for path in opened} == {".git", "commondir"}
    assert str(secret / "commondir") not in opened


class Machine:
    """Sessions in one folder, read by a new process each time."""

    def __init__(self, root: Path) -> None:
        self.root, self.sessions = root, root / "sessions"
        self.sessions.mkdir()
        self.repo = repository(root / "my-repo")
        self.feature = worktree(root / "feature", self.repo / ".git")

    def write(self, name: str, cwd: Path, hour: int) -> None:
        talk = conversation(f"2025-03-05T{hour:02}:00:00", topic=name)
        write_session(self.sessions / f"{name}.jsonl", *talk, cwd=str(cwd))

    def projects(self) -> dict[str, str | None]:
        file_rows._STORED.clear()
        settings = load_settings()
        catalogue = Catalogue(Lake(settings.lake_dir), settings)
        catalogue.refresh(find_sources([self.sessions]))
        return {Path(key).stem: catalogue.projects.of(catalogue.place(key)) for key in sorted(catalogue.rows)}


def test_a_worktree_stays_its_repositorys_when_its_folder_is_gone(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write("a", machine.repo, 8)
    machine.write("b", machine.feature, 9)
    assert machine.projects() == {"a": "my-repo", "b": "my-repo"}
    shutil.rmtree(machine.feature)
    machine.write("b", machine.feature, 11)  # goes on, and is read again
    machine.write("c", machine.feature, 12)
    machine.write("d", machine.feature / "src", 13)
    machine.write("e", tmp_path / "never-there", 14)
    wanted = {**dict.fromkeys("abcd", "my-repo"), "e": "never-there"}
    assert machine.projects() == wanted
    worktree(machine.feature, repository(tmp_path / "other") / ".git")  # what comes to lie there is something else
    worktree(tmp_path / "never-there", tmp_path / "other/.git")
    assert machine.projects() == wanted


def test_git_is_believed_before_the_names_of_folders(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    super_project = repository(tmp_path / "worktree/x/super")
    worktree(super_project / "sub", tmp_path / "unused", pointer="gitdir: ../.git/modules/sub\n")
    (super_project / "web").mkdir()
    machine.write("a", super_project, 8)
    machine.write("b", super_project / "sub", 9)
    machine.write("c", super_project / "web", 10)
    assert machine.projects() == {"a": "super", "b": "sub", "c": "super"}


def test_rows_that_an_earlier_version_read_are_filled(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write("b", machine.feature, 9)
    machine.projects()
    lake = Lake(load_settings().lake_dir)
    lake.update("files", lambda rows: rows.with_columns(repository_dir=pl.lit(None, pl.String())))
    (machine.sessions / "b.jsonl").unlink()
    assert machine.projects() == {"b": "my-repo"}
    before = lake.path("files").stat().st_mtime_ns
    assert machine.projects() == {"b": "my-repo"}
    assert lake.path("files").stat().st_mtime_ns == before


def test_a_folder_of_another_machine_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path)
    machine.write("b", machine.feature, 9)
    monkeypatch.setattr(Catalogue, "is_of_this_machine", lambda *_: False)
    assert machine.projects() == {"b": "feature"}
