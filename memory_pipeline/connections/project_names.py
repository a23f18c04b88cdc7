"""The name under which the memory knows a folder of this machine."""

from __future__ import annotations

import configparser
from collections import Counter
from pathlib import Path

from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.projects import Place, Projects, repository_of


def project_named(folder: Path, lake: Lake) -> str:
    """The project of the sessions in the folder, or in the repository around it; without any, the name it would get."""
    top = _repository(folder) or folder
    frame = lake.read("sessions", columns=["cwd", "project"]).drop_nulls()
    counted = Counter(
        project for cwd, project in frame.iter_rows() if cwd and (Path(cwd) == top or top in Path(cwd).parents)
    )
    if counted:
        return str(counted.most_common(1)[0][0])
    place = Place(str(top), repository=_remote(top))
    return Projects([place]).of(place) or top.name


def _repository(folder: Path) -> Path | None:
    """The top of the repository around the folder; of a worktree, the repository that it belongs to."""
    top = next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)
    if top is None or (top / ".git").is_dir():
        return top
    names = (top / ".git").read_text("utf-8", "replace").removeprefix("gitdir:").strip()
    repository, is_worktree, _ = names.partition("/.git/worktrees/")
    return Path(repository) if is_worktree else top


def _remote(top: Path) -> str:
    config = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string((top / ".git/config").read_text("utf-8"))
        return repository_of(config['remote "origin"']["url"])
    except (OSError, UnicodeDecodeError, configparser.Error, KeyError):
        return ""
