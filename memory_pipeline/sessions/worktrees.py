"""The git repository of a folder of this machine, of a worktree by git's own pointers.

A linked worktree has a small file `.git`, which names a folder `<git folder>/worktrees/<name>` of its repository, and a
file `commondir` there, which leads back to the git folder. Nothing else is read, neither is followed to anywhere else,
and no git is run: the folder may be anybody's.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MAX_BYTES = 4096
"""Maximum bytes of either file: no path is longer."""
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
    except (OSError, ValueError):  # it may not be entered, or is no path
        return None
    return ""


def _repository(top: Path) -> str:
    """A repository that the pointer of a folder names, if it is a worktree; a submodule is one of its own."""
    pointer = _text(top / ".git")
    own = Path(os.path.normpath(Path(os.path.realpath(top)) / pointer.removeprefix("gitdir:").strip()))
    git = own.parent.parent
    if not pointer.startswith("gitdir:") or own.parent.name != "worktrees" or str(own).startswith("//"):
        return str(top)
    back = _text(own / "commondir").strip()
    if not back or Path(os.path.normpath(own / back)) != git or git.parent.name == "modules":
        return str(top)
    return _as_named(str(git.parent if git.name.startswith(".") else git), top)


def _as_named(repository: str, worktree: Path) -> str:
    """The folder as it is named where the worktree is: git knows it without the links that lead to both."""
    named, real = worktree.parts, Path(os.path.realpath(worktree)).parts
    same = 0
    while same < min(len(named), len(real)) and named[-1 - same] == real[-1 - same]:
        same += 1
    linked, target = Path(*named[: len(named) - same]), Path(*real[: len(real) - same])
    below = Path(repository)
    return str(linked / below.relative_to(target)) if same and below.is_relative_to(target) else repository


def _text(path: Path) -> str:
    """The content of a small regular file on one line; "" of anything else."""
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
