"""The identity files that an agent reads first, in order, and the links by which each harness finds them.

They are written by the user and only read here. A problem is reported with advice, as an agent that starts without its
instructions, or with outdated ones, does not report it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from memory_pipeline.settings import IDENTITY_FILES, Settings

NOT_SET = "The identity files are not checked; MEMORY_IDENTITY_DIRECTORY names their directory."

FileState = Literal["present", "missing", "empty", "unreadable"]
LinkState = Literal["resolves", "missing", "broken", "points elsewhere", "a copy"]


@dataclass(frozen=True)
class CheckedPath:
    """A file or a link with its state."""

    path: Path
    state: FileState | LinkState
    is_broken: bool
    detail: str = ""
    """The target of a link, or the problem."""
    remedy: str = ""
    """An instruction; empty if nothing is broken."""

    @property
    def line(self) -> str:
        reported = f"{self.path}: {self.state}" + (f" ({self.detail})" if self.detail else "")
        return f"{reported}. {self.remedy}" if self.remedy else reported


@dataclass(frozen=True)
class Identity:
    """The files in read order, and the links."""

    files: tuple[CheckedPath, ...]
    links: tuple[CheckedPath, ...]

    @property
    def broken(self) -> list[CheckedPath]:
        return [looked for looked in (*self.files, *self.links) if looked.is_broken]


def look_at_identity(settings: Settings, today: date) -> Identity | None:
    """The current state of files and links; None if no directory is set."""
    directory = settings.identity.directory
    if directory is None:
        return None
    own = [_file_state(directory / name, is_needed=True) for name in IDENTITY_FILES]
    ours = [_file_state(path, is_needed=False) for path in (settings.memory_file, settings.daily_log(today))]
    return Identity((*own, *ours), tuple(_link_state(path, directory) for path in settings.identity.links))


def _file_state(path: Path, *, is_needed: bool) -> CheckedPath:
    """The state of a file. `is_needed`: the user has to write it; others are created when there is content."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)  # reading a pipe would block
        text = path.read_text("utf-8-sig") if is_file else ""
    except (FileNotFoundError, NotADirectoryError):
        detail = f"a link to {path.readlink()}, which does not exist" if path.is_symlink() else ""
        remedy = "Write it, or set MEMORY_IDENTITY_DIRECTORY to its directory."
        is_broken = is_needed or bool(detail)
        return CheckedPath(path, "missing", is_broken, detail or "not written yet", remedy if is_broken else "")
    except UnicodeDecodeError:
        return CheckedPath(path, "unreadable", True, "it is not UTF-8", "Save it as UTF-8.")
    except OSError as error:
        return CheckedPath(path, "unreadable", True, _reason(error), f"Make it readable: `ls -l {_quoted(path)}`.")
    if not is_file:
        return CheckedPath(path, "unreadable", True, "it is not a file", "Put a file in its place.")
    if not text.strip():
        return CheckedPath(path, "empty", is_needed, "", "Write it, or restore a copy of it." if is_needed else "")
    return CheckedPath(path, "present", False)


def _link_state(path: Path, directory: Path) -> CheckedPath:
    """The state of a path that should lead to a file in the directory, by symbolic links or as a hard link."""
    wanted = directory / path.name
    if path.name not in IDENTITY_FILES and not os.path.lexists(wanted):
        wanted = directory / "AGENTS.md"  # target of CLAUDE.md and the like
    link = f"Link it: `ln -sfn {_quoted(wanted, path)}`."
    if not os.path.lexists(path):
        return CheckedPath(path, "missing", True, "", link)
    try:
        target = path.resolve(strict=True)
        is_file, same = target.is_file(), _same_file(target, directory)
    except (OSError, RuntimeError):  # the second for a loop, before Python 3.13
        return CheckedPath(path, "broken", True, f"to {path.readlink()}" if path.is_symlink() else "", link)
    if is_file and same:
        return CheckedPath(path, "resolves", False, f"to {same}")
    if path.is_symlink():
        return CheckedPath(path, "points elsewhere", True, f"to {target}", link)
    if not is_file:
        return CheckedPath(path, "points elsewhere", True, "it is not a file", f"Move it away first. {link}")
    remedy = f"Merge its differences into {wanted}: `diff {_quoted(wanted, path)}`. {link}"
    return CheckedPath(path, "a copy", True, f"it is not linked to {wanted}", remedy)


def _same_file(target: Path, directory: Path) -> Path | None:
    """The file of the directory that is the same as the target, or None."""
    if target.is_relative_to(os.path.realpath(directory)):
        return target
    for name in IDENTITY_FILES:
        with contextlib.suppress(OSError):
            if (directory / name).samefile(target):
                return directory / name
    return None


def _quoted(*paths: Path) -> str:
    return shlex.join(map(str, paths))


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be used").lower()
