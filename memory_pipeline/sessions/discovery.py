"""Where sessions lie. Directories are only ever listed; nothing in them is written or locked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from memory_pipeline.sessions import harnesses
from memory_pipeline.sessions.harnesses.protocol import HarnessWithFolders
from memory_pipeline.sessions.model import Source
from memory_pipeline.settings import SettingError, Settings

SUFFIXES = (".jsonl", ".json")


def default_roots() -> dict[Path, str]:
    """Where the harnesses keep their sessions, each with the name of the first harness that does."""
    found: dict[Path, str] = {}
    for harness in harnesses.HARNESSES:
        for root in harness.default_roots(Path.home(), os.environ):
            found.setdefault(Path(os.path.abspath(root)), harness.name)  # noqa: PTH100 - resolve() would follow links
    return found


def moving_variables() -> list[str]:
    """The environment variables by which agents' folders can be moved."""
    return list(dict.fromkeys(name for harness in harnesses.HARNESSES for name in harness.moved_by))


def roots(settings: Settings) -> list[Path]:
    """The directories to read: the named ones, then those default places that exist, which may be databases.

    Raises `SettingError` when a named one is not a readable directory, because then files that the user
    counts on would silently be missing.
    """
    for root in settings.session_dirs:
        if not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
            raise SettingError(f"{root} is not a directory that can be read; name a directory with session files.")
        if settings.workspace.is_relative_to(root):
            raise SettingError(
                f"MEMORY_WORKSPACE={settings.workspace} lies in the session directory {root}; move it out."
            )
    standard = default_roots() if settings.default_session_dirs else {}
    found = [root for root, name in standard.items() if _is_there(root, name)]
    return list(dict.fromkeys([*settings.session_dirs, *found]))


def _is_there(root: Path, agent: str) -> bool:
    """Whether the place exists, a directory or, of an agent that keeps sessions in databases, one of them."""
    return root.is_dir() or (root.is_file() and isinstance(harnesses.named(agent), HarnessWithFolders))


def find_sources(directories: Iterable[Path]) -> Iterator[Source]:
    """What may be sessions, each once, sorted within its directory.

    Links to directories are not followed, so a loop cannot trap the walk. A folder that cannot be listed is a source
    too, which then cannot be read, and so is a pipe with the name of a session: it must not be missing silently.
    """
    claiming = [harness for harness in harnesses.HARNESSES if isinstance(harness, HarnessWithFolders)]
    seen: set[str] = set()
    agents = {str(root): name for root, name in default_roots().items()}
    waiting = [(str(directory), "") for directory in reversed(list(directories))]
    while waiting:
        folder, agent = waiting.pop()
        agent = agents.get(folder, agent)
        if folder in seen:
            continue
        seen.add(folder)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=attrgetter("name"))
        except NotADirectoryError:  # a database that a variable names
            if os.path.dirname(folder) not in seen:  # noqa: PTH120
                yield from _database(claiming, Path(folder), agent)
            continue
        except OSError:
            yield Source(folder, agent=agent)
            continue
        claimed = _claimed(claiming, Path(folder), {entry.name for entry in entries}, agent)
        if claimed:
            yield from claimed[0]
            entries = [entry for entry in entries if entry.name in claimed[1]]
        for entry in entries:
            if entry.name.endswith(SUFFIXES) and entry.path not in seen and (source := _source(entry)):
                seen.add(entry.path)
                yield source._replace(agent=agent)
        waiting += [(entry.path, agent) for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]


def _claimed(
    claiming: Iterable[HarnessWithFolders[Any]], folder: Path, names: set[str], agent: str
) -> tuple[list[Source], list[str]] | None:
    """What a harness says of a folder: its sessions, and the names that are not its own. The one whose folder it is
    is asked first.
    """
    for harness in sorted(claiming, key=lambda harness: harness.name != agent):
        if (claimed := harness.claims(folder, names)) is not None:
            sources, names_left = claimed
            return [source._replace(agent=harness.name) for source in sources], names_left
    return None


def _database(claiming: Iterable[HarnessWithFolders[Any]], file: Path, agent: str) -> list[Source]:
    claimed = _claimed(claiming, file.parent, {file.name}, agent)
    return claimed[0] if claimed else []


def _source(entry: os.DirEntry[str]) -> Source | None:
    """The file; without a state when it cannot be looked at."""
    try:
        if entry.is_dir():
            return None
        stat = entry.stat()
    except FileNotFoundError:  # a link to nothing, or it is gone by now
        return None
    except OSError:
        return Source(entry.path)
    return Source(entry.path, "", stat.st_size, stat.st_mtime_ns)
