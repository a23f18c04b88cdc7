"""Discovery of sessions. Directories are only listed; nothing in them is written or locked."""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path, PurePath
from typing import NamedTuple

from memory_pipeline import harnesses
from memory_pipeline.harnesses.model import COMPRESSED, Source
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.settings import SettingError, Settings

SUFFIXES = (".jsonl", ".json", COMPRESSED)


def default_roots() -> dict[Path, str]:
    """The default session folders, each with the name of the first harness that keeps sessions there."""
    found: dict[Path, str] = {}
    for harness in harnesses.HARNESSES:
        for root in harness.default_roots(Path.home(), os.environ):
            found.setdefault(Path(os.path.abspath(root)), harness.name)  # noqa: PTH100 - resolve() would follow links
    return found


def moving_variables() -> list[str]:
    """The environment variables by which agents' folders can be moved."""
    return list(dict.fromkeys(name for harness in harnesses.HARNESSES for name in harness.moved_by))


def roots(settings: Settings) -> list[Path]:
    """The directories to read: those in the settings, then existing default places, which may be databases.

    Raises `SettingError` if one in the settings is not a readable directory, as expected files would silently be
    missing.
    """
    for root in settings.session_dirs:
        if not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
            raise SettingError(f"{root} is not a directory that can be read; name a directory with session files.")
        if settings.workspace.is_relative_to(root):
            raise SettingError(
                f"MEMORY_WORKSPACE={settings.workspace} lies in the session directory {root}; move it out."
            )
    standard = default_roots() if settings.default_session_dirs else {}
    found = [root for root, name in standard.items() if _exists(root, name)]
    return list(dict.fromkeys([*settings.session_dirs, *found]))


def _exists(root: Path, agent: str) -> bool:
    """Whether the place exists: a directory, or a database of an agent that stores sessions in one."""
    return root.is_dir() or (root.is_file() and isinstance(harnesses.named(agent), HarnessWithFolders))


def owner_of_side_file(source: Source) -> str | None:
    """The agent that stores side files at such paths; the agent whose folder contains the file is asked first."""
    place = PurePath(source.path)
    asked = sorted(harnesses.HARNESSES, key=lambda harness: harness.name != source.agent)
    return next((harness.name for harness in asked if any(map(place.match, harness.side_files))), None)


def find_sources(directories: Iterable[Path]) -> Iterator[Source]:
    """Candidate sessions, each real file once, sorted within its directory."""
    return iter(_Walk(directories))


class _Folder(NamedTuple):
    path: str
    real: str
    """The path without links."""
    agent: str = ""
    """The agent to whose folder it belongs."""


class _Walk:
    """A recursive walk through directories.

    Links are followed after everything else is listed, so a file with several paths gets the one without a link, and
    loops of links end. A folder that cannot be listed is returned as an unreadable source, and so is a pipe with the
    name of a session, as neither must be missing silently.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self.claiming = [harness for harness in harnesses.HARNESSES if isinstance(harness, HarnessWithFolders)]
        self.agents = {str(root): name for root, name in default_roots().items()}
        self.tops = [_Folder(str(directory), os.path.realpath(directory)) for directory in directories]
        self.waiting = self.tops[::-1]
        self.links = deque[tuple[os.DirEntry[str], str]]()
        """Links, each with the agent whose folder contains it."""
        self.seen = set[str]()
        """Paths without links."""

    def __iter__(self) -> Iterator[Source]:
        while self.waiting or self.links:
            if self.waiting:
                yield from self._folder(self.waiting.pop())
            else:
                yield from self._link(*self.links.popleft())

    def _folder(self, folder: _Folder) -> Iterator[Source]:
        if not self._is_new(folder.real):
            return
        agent = self.agents.get(folder.path, folder.agent)
        try:
            with os.scandir(folder.path) as listing:
                entries = _without_duplicates(sorted(listing, key=attrgetter("name")))
        except NotADirectoryError:  # a database given by an environment variable
            file = Path(folder.path)
            if os.path.dirname(folder.real) not in self.seen:  # noqa: PTH120
                claimed = _claimed_sessions(self.claiming, file.parent, {file.name}, agent)
                yield from claimed[0] if claimed else ()
            return
        except OSError:
            yield Source(folder.path, agent=agent)
            return
        claimed = _claimed_sessions(self.claiming, Path(folder.path), {entry.name for entry in entries}, agent)
        if claimed:
            yield from claimed[0]
            entries = [entry for entry in entries if entry.name in claimed[1]]
        inside, below = _path_prefix(folder.real), list[_Folder]()
        for entry in entries:
            if entry.is_symlink():
                self.links.append((entry, agent))
            elif _is_folder(entry):
                below.append(_Folder(entry.path, inside + entry.name, agent))
            elif entry.name.endswith(SUFFIXES) and self._is_new(inside + entry.name):
                yield from _source(entry, agent)
        self.waiting += below[::-1]

    def _link(self, link: os.DirEntry[str], agent: str) -> Iterator[Source]:
        real = os.path.realpath(link.path)
        try:
            is_folder = link.is_dir()
        except OSError:  # a circular link, or one without permission
            if real not in self.seen:
                yield Source(link.path, agent=agent)
            return
        if not is_folder:
            if link.name.endswith(SUFFIXES) and self._is_new(real):
                yield from _source(link, agent)
        elif any(top.real.startswith(_path_prefix(real)) for top in self.tops):
            if self._is_new(real):  # following it would list everything outside the directories that are read
                yield Source(link.path, agent=agent)
        else:
            self.waiting.append(_Folder(link.path, real, agent))

    def _is_new(self, real: str) -> bool:
        """Whether the path was not seen before. It is marked as seen."""
        before = len(self.seen)
        self.seen.add(real)
        return len(self.seen) > before


def _claimed_sessions(
    claiming: Iterable[HarnessWithFolders], folder: Path, names: set[str], agent: str
) -> tuple[list[Source], list[str]] | None:
    """The sessions that a harness claims in a folder, and the remaining names. The harness whose folder it is is asked
    first.
    """
    for harness in sorted(claiming, key=lambda harness: harness.name != agent):
        if harness.name != agent and not any(fnmatch.filter(names, mark) for mark in harness.marks):
            continue
        if (claimed := harness.claims(folder, names)) is not None:
            sources, names_left = claimed
            return [source._replace(agent=harness.name) for source in sources], names_left
    return None


def _path_prefix(folder: str) -> str:
    """The path prefix of everything in the folder."""
    return f"{folder.rstrip(os.sep)}{os.sep}"


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _without_duplicates(entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The entries without compressed files whose originals still exist, as a harness is about to remove one of the
    two."""
    names = {entry.name for entry in entries}
    return [e for e in entries if not e.name.endswith(COMPRESSED) or e.name.removesuffix(".zst") not in names]


def _source(entry: os.DirEntry[str], agent: str) -> Iterator[Source]:
    """The file as a source, without a state if it cannot be examined."""
    try:
        stat = entry.stat()
    except FileNotFoundError:  # a broken link, or deleted meanwhile
        return
    except OSError:
        yield Source(entry.path, agent=agent)
    else:
        yield Source(entry.path, "", stat.st_size, stat.st_mtime_ns, agent)
