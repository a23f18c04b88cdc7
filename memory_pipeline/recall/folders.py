"""The project of a folder on this machine, by the name that the pipeline gave its sessions."""

from __future__ import annotations

import configparser
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipeline.errors import MisuseError
from memory_pipeline.scope import repository_of
from memory_pipeline.sessions.projects import Place, Projects
from memory_pipeline.text.sentences import clip

if TYPE_CHECKING:
    from memory_pipeline.lake.store import Lake

MAX_NAME = 80
"""Maximum characters of an unknown name in a message."""
MAX_NAMED = 10
"""Maximum number of projects that a message lists."""


class UnknownProjectError(MisuseError):
    """No session belongs to that project."""


def place_of_folder(folder: Path) -> Place:
    """The place that a session in this folder would report. Reads a few small files, and runs no git."""
    path = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links, which sessions name as they are
    top = next((parent for parent in (path, *path.parents) if _exists(parent / ".git")), None)
    if top is None:
        return Place(str(path))
    own = _git_folder(top)
    repository, is_worktree, _ = str(own).partition("/.git/worktrees/")
    common = Path(repository) / ".git" if is_worktree else own
    head = _text(own / "HEAD").removeprefix("ref: refs/heads/").strip()
    cwd = repository if is_worktree else str(top)
    return Place(cwd, head or "HEAD", _remote(common))


def project_of_place(lake: Lake, place: Place) -> str | None:
    """The project that a session at this place would belong to; None if it is outside any project."""
    return Projects([*_places(lake), place]).of(place)


def existing_path(given: str) -> Path | None:
    """The file or folder at this path; None if there is none."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # path too long, with NUL, or with an unknown `~user`
        path = Path(given).expanduser()
        return path if path.exists() else None
    return None


def existing_folder(given: str) -> Path | None:
    """The folder at this path; None if there is none."""
    path = existing_path(given)
    return path if path and path.is_dir() else None


def place_asked_for(lake: Lake, given: str) -> Place:
    """The place of a folder, or of the newest session of the project with that name. Raises `UnknownProjectError`."""
    folder = existing_folder(given)
    return place_of_folder(folder) if folder else places_of_project(lake, given)[0]


def places_of_project(lake: Lake, given: str) -> list[Place]:
    """The places of the project's sessions, newest first. Raises `UnknownProjectError` with a message that also
    mentions folders."""
    try:
        name = project_named(lake, given)
    except UnknownProjectError as error:
        raise UnknownProjectError(f"There is no folder {clip(given, MAX_NAME)!r}. {error}") from None
    known = _places(lake)
    projects = Projects(known)
    own = [place for place in known if name and projects.of(place) == name]
    if not own:
        raise UnknownProjectError(
            f"No session says where the project {clip(given, MAX_NAME)!r} is; name its folder instead."
        )
    return sorted(own, key=lambda place: (place.began_at is not None, place.began_at, place), reverse=True)


def project_named(lake: Lake, name: str) -> str | None:
    """The project of that name, in any case; None for an empty one. Raises `UnknownProjectError`."""
    if not name.strip():
        return None
    known: list[str] = sorted(set(lake.read("sessions", columns=["project"])["project"].drop_nulls()))
    found = next((project for project in known if project.casefold() == name.strip().casefold()), None)
    if found is None:
        known_names = f"known are {', '.join(known[:MAX_NAMED])}" if known else "none is known"
        more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
        raise UnknownProjectError(f"No session of a project {clip(name, MAX_NAME)!r} was read; {known_names}{more}.")
    return found


def _places(lake: Lake) -> list[Place]:
    columns = ["cwd", "branch", "repository", "began_at", "repository_dir"]
    rows = lake.read("files", columns=columns).unique().iter_rows()
    return [
        Place(cwd, branch or "", remote or "", began, folder or "")
        for cwd, branch, remote, began, folder in rows
        if cwd
    ]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no permission for the folder
        return False


def _git_folder(top: Path) -> Path:
    """`.git`, or the folder to which the `.git` file of a worktree or submodule points."""
    link = _text(top / ".git").removeprefix("gitdir:").strip()
    return Path(os.path.normpath(top / link)) if link else top / ".git"


def _remote(git: Path) -> str:
    config = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string(_text(git / "config"))
        return repository_of(config['remote "origin"']["url"])
    except (configparser.Error, KeyError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""
