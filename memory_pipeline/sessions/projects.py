"""The project that a session worked on: its repository or folder, by a readable name.

It is derived from the session's data (folder, branch and repository) and from git's pointer of a worktree to its
repository, which the catalogue looks up while the folder exists (`worktrees.py`). No folder is read here, as sessions
may come from another machine: the same catalogue always gives the same names. All places of a repository are one
project: its worktrees, subfolders, and copies in other homes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from memory_pipeline.text.regex import deferred

if TYPE_CHECKING:  # the harnesses import the redactor and its patterns, which takes .5 s
    from memory_pipeline.harnesses.model import ParsedSession

_HOME = r"(?:/(?:Users|home)/[^/]+|(?:/var)?/root|/data/data/com\.termux/files/home|[A-Z]:/Users/[^/]+)"
_TEMPORARY = rf"(?:(?:/private)?(?:/var)?/tmp|(?:/private)?/var/folders/[^/]+/[^/]+/T|{_HOME}/AppData/Local/Temp)"
_BELOW_HOME = deferred(rf"(?P<home>{_HOME})(?:/|$)")
_NO_PROJECT = deferred(
    rf"/?|[A-Z]:/?|/(?:Users|home)|[A-Z]:/Users|{_HOME}|{_HOME}(?:/OneDrive)?/(?:Desktop|Documents|Downloads)"
    rf"|{_TEMPORARY}(?:/[tT](?:e?mp)[\w.-]*)?"
)
"""A home, the standard folders of a home, and the folders of `mktemp`: work there belongs to no project."""
_DRIVE = deferred(r"(?:[\\/]{2}\?[\\/])?([A-Za-z]):(?=[\\/]|$)|/mnt/([a-z])(?=/|$)")
"""A drive letter of Windows, or its mount point in WSL."""
_LINUX_IN_WINDOWS = deferred(r"[\\/]{2}wsl(?:\$|\.localhost)[\\/][^\\/]+", re.I)
_REPOSITORY_WORKTREES = deferred(r"(?P<repository>[^.].*?)[-._]worktrees", re.I)
_WORKTREES = deferred(r"(?:\.[\w.-]*?)?[-._]?worktrees?", re.I)
_ID = deferred(r"[0-9a-f]{4,}", re.I)
_COMMON_BRANCHES = ("", "HEAD", "main", "master", "trunk", "dev", "develop")
"""Branch names that are not used for worktrees. Outside a repository the name is empty or HEAD."""


class Place(NamedTuple):
    """The place of a session's work, from the session's data."""

    cwd: str
    branch: str = ""
    repository: str = ""
    """`owner/name` of the remote."""
    began_at: datetime | None = None
    repository_dir: str = ""
    """The folder of the repository of `cwd` according to git, if it was looked up."""

    @property
    def is_in_repository(self) -> bool:
        return bool(self.repository) or self.branch not in ("", "HEAD")


def place_of(session: ParsedSession) -> Place:
    return Place(session.cwd, session.branch, session.repository, session.began_at)


class _Root(NamedTuple):
    """The folder of a project; `path` is empty if only its name is known."""

    path: str
    name: str


class Projects:
    """The projects of all known sessions, named in the order in which they began.

    If another folder below the same home has the name, the parent's name is prepended: `work/api` after `api`. So a new
    session does not rename an older project, unless it reveals the repository for the first time.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        known = sorted(places, key=lambda p: (p.began_at is None, p.began_at, p.cwd, p.branch, p.repository))
        roots = [(place, root) for place in known if (root := _find_root(place))]
        self._of_git = {root.path for place in known if (root := _root_of_git(place))}
        self._repositories = {root.path for place, root in roots if place.is_in_repository and root.path}
        self._remotes: dict[str, str] = {}
        for place, root in roots:
            if place.repository:
                self._remotes.setdefault(self._top(root.path), place.repository)
        self._names: dict[str, str] = {}
        taken: dict[tuple[str, str], str] = {}
        for top in dict.fromkeys(self._top(root.path) for _, root in roots if root.path):
            self._names[top] = self._free_name(top, taken)

    def of(self, place: Place) -> str | None:
        """The name of the project; None if there is none."""
        root = _find_root(place)
        if root is None:
            return None
        if not root.path:
            return root.name
        top = self._top(root.path)
        return self._names.get(top) or _name(top)

    def _top(self, path: str) -> str:
        """The repository according to git, else the outermost folder reported to be in one, else the folder."""
        ends = [i for i, character in enumerate(path) if character == "/" and i]
        if of_git := next((path[:end] for end in (len(path), *reversed(ends)) if path[:end] in self._of_git), ""):
            return of_git
        return next((path[:end] for end in ends if path[:end] in self._repositories), path)

    def _free_name(self, top: str, taken: dict[tuple[str, str], str]) -> str:
        """The shortest name that is unique below the same home."""
        home = _home(top)
        remote = self._remotes.get(top)
        identity = remote or top
        parts = top.removeprefix(home).strip("/").split("/")
        name = remote.rsplit("/", 1)[-1] if remote else _name(top)
        longer = (f"{'/'.join(parts[i:-1])}/{name}" for i in range(len(parts) - 2, -1, -1))
        for free in (name, *longer):
            if taken.setdefault((home, free), identity) == identity:
                return free
        return top


def _find_root(place: Place) -> _Root | None:
    """The folder from git's pointer or from the place's own path and branch; None if it belongs to no project."""
    return _root_of_git(place) or _root_in(place.cwd, place.branch)


def _root_of_git(place: Place) -> _Root | None:
    """The repository according to git; a home directory that is a repository is no project."""
    return _root(_normal(place.repository_dir)) if place.repository_dir else None


@lru_cache(maxsize=10_000)
def _root_in(cwd: str, branch: str) -> _Root | None:
    """The root for a folder and branch; cached, as a year has thousands of sessions in a few dozen folders."""
    path = _normal(cwd)
    parts = path.split("/")
    for i, part in enumerate(parts[:-1]):
        if found := _REPOSITORY_WORKTREES.fullmatch(part):  # repo.worktrees/feature
            return _root("/".join([*parts[:i], found["repository"]]))
        if part == ".git" or _WORKTREES.fullmatch(part):
            above = parts[:i]
            while above and above[-1].startswith("."):  # repo/.claude/worktrees/feature
                above.pop()
            return _root("/".join(above)) or _root_in_tool_folder(parts[i + 1 :])
    return _root(_without_branch(path, branch))


def _root_in_tool_folder(below: list[str]) -> _Root:
    """The repository of a worktree in a tool's common folder: `repo/id` or `id/repo`."""
    named = below[1:] if len(below) > 1 and _ID.fullmatch(below[0]) else below
    return _Root("", named[0])


def _root(path: str) -> _Root | None:
    path = path.removesuffix("/.git")
    return None if _NO_PROJECT.fullmatch(path) else _Root(path, _name(path))


def _without_branch(path: str, branch: str) -> str:
    """`repo` for `repo-feature`, an adjacent worktree of the branch `feature`."""
    if branch in _COMMON_BRANCHES:
        return path
    folder, _, name = path.rpartition("/")
    for ending in (branch.replace("/", "-"), branch.replace("/", "_"), branch.rsplit("/", 1)[-1]):
        repository = name.removesuffix(ending)
        if ending and repository != name and repository[-1:] in ("-", "_", ".") and repository.strip("-_."):
            return f"{folder}/{repository.rstrip('-_.')}"
    return path


def _normal(cwd: str) -> str:
    """The path with slashes, without `.` and `..`; empty if it is not absolute."""
    path = _LINUX_IN_WINDOWS.sub("", cwd.strip(), count=1)
    if drive := _DRIVE.match(path):
        path = f"{(drive[1] or drive[2]).upper()}:{path[drive.end() :]}".replace("\\", "/")
    elif path != cwd.strip():
        path = path.replace("\\", "/")
    if not path.startswith("/") and not drive:
        return ""
    return posixpath.normpath(path).replace("//", "/") if path else ""


def _home(path: str) -> str:
    found = _BELOW_HOME.match(path)
    return found["home"] if found else ""


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".git")
