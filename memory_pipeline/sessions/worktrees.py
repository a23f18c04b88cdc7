"""The git repository of a folder on this machine; for a worktree it is found by git's pointer files.

A linked worktree has a small file `.git`, which names a folder `<git folder>/worktrees/<name>` of its repository, with
a file `commondir` that points back to the git folder. Nothing else is read, pointers to other places are not followed,
and git is not run: the folder may be anybody's.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MAX_BYTES = 4096
"""Maximum bytes of either file, more than any path."""
_MAX_PARENTS = 64


def repository_of_folder(folder: str) -> str | None:
    """The git repository of this folder, for a linked worktree that of its repository; "" if there is none, None if the
    folder itself does not exist."""
    path = Path(folder)
    try:
        if not path.is_absolute() or folder.startswith("//") or not path.is_dir():
            return None
        for top in [path, *path.parents][:_MAX_PARENTS]:
            if (top / ".git").is_file():
                return _repository(top)
            if (top / ".git/HEAD").is_file():
                return str(top)
    except (OSError, ValueError):  # no permission, or not a path
        return None
    return ""


def _repository(top: Path) -> str:
    """The repository that the folder's pointer names if it is a worktree; a submodule is its own repository."""
    pointer = _text(top / ".git")
    own = Path(os.path.normpath(Path(os.path.realpath(top)) / pointer.removeprefix("gitdir:").strip()))
    git = own.parent.parent
    if not pointer.startswith("gitdir:") or own.parent.name != "worktrees" or str(own).startswith("//"):
        return str(top)
    back = _text(own / "commondir").strip()
    if not back or Path(os.path.normpath(own / back)) != git or git.parent.name == "modules":
        return str(top)
    return _in_form_of(str(git.parent if git.name.startswith(".") else git), top)


def _in_form_of(repository: str, worktree: Path) -> str:
    """The repository's path in the form of the worktree's path: git resolves links that lead to both."""
    named, real = worktree.parts, Path(os.path.realpath(worktree)).parts
    same = 0
    while same < min(len(named), len(real)) and named[-1 - same] == real[-1 - same]:
        same += 1
    linked, target = Path(*named[: len(named) - same]), Path(*real[: len(real) - same])
    below = Path(repository)
    return str(linked / below.relative_to(target)) if same and below.is_relative_to(target) else repository


def _text(path: Path) -> str:
    """The content of a small regular file on one line; "" for anything else."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            content = os.read(file, _MAX_BYTES + 1) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
        text = content.decode("utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        return ""
    return "" if len(content) > _MAX_BYTES or any(mark in text for mark in "\r\n\0") else text
