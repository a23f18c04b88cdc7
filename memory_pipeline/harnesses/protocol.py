"""The interface of a harness: how its sessions are found, recognised and read.

A pattern of folders is a path in the notation of a shell: `~` is the home, `${NAME:-default}` an environment variable
with its default, `*` any folder. A default with commas lists alternatives, and so may the value of its variable.
Without a default the pattern counts only if the variable is set; an absolute value replaces the path before it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from memory_pipeline.harnesses.model import Problem, Source
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject
from memory_pipeline.harnesses.transcript import Transcript

_VARIABLE = re.compile(r"\$\{(\w+):-((?:[^{}]|\{[^{}]*\})*)\}")


class Harness:
    """A coding agent whose sessions are JSON Lines files."""

    name: str
    """The value of the column `harness`, and the prefix of message ids."""
    folders: tuple[str, ...] = ()
    """Patterns of the folders with its sessions, in the notation above."""
    side_files: tuple[str, ...] = ()
    """Patterns for the ends of paths of files next to sessions, which are not reported as unread. A file that is a
    session is read anyway."""
    reader: Callable[[Transcript], RecordReader]
    """A class whose instance reads one session and adds its messages to the transcript."""

    def __init__(self, name: str = "", *folders: str) -> None:
        """Another agent with this format has its own name and folders."""
        self.format = self.name
        """The prefix of its message ids: the name of the agent whose format it shares."""
        if name:
            self.name, self.folders = name, folders

    @property
    def moved_by(self) -> list[str]:
        """The environment variables that change the folders of its sessions."""
        return list(dict.fromkeys(name for pattern in self.folders for name in re.findall(r"\$\{(\w+)", pattern)))

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """The directories of its sessions, existing or not."""
        return [folder for pattern in self.folders for folder in expand(pattern, home, env)]

    def retention_days(self, settings: JsonObject) -> float | None:
        """Days after which it deletes an unchanged session, according to the settings.json next to its folder; None if
        it deletes none.
        """
        return None

    def recognises(self, record: JsonObject) -> bool:
        """Whether a file that begins with this record is one of its sessions; any JSON object may come."""
        return False


class HarnessWithRecords(Harness):
    """A harness whose sessions are not JSON Lines files, so that it reads the records itself."""

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        """The records of one session, each with its line or number; unreadable parts go to `problems`."""
        raise NotImplementedError

    def images_of(self, record: JsonObject) -> list[JsonObject]:
        """The images in such a record, in the order of `Image.block`; none by default."""
        return []


class HarnessWithFolders(HarnessWithRecords):
    """A harness that does not store each session in one file."""

    marks: tuple[str, ...] = ()
    """Patterns of names by which a folder may be its own; in other folders than its `folders`, only those with such a
    name are offered to it."""

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        """The sessions in a folder with these entries, and the names of unrelated entries; None if the folder is not
        its own."""
        raise NotImplementedError


def expand(pattern: str, home: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders of a pattern, in order; with a `*` only existing ones, sorted."""
    folders: list[Path] = []
    for path in _without_variables(pattern, env):
        fixed, star, _ = path.partition("*")
        if not star:
            folders.append(_from_home(path, home))
            continue
        start, rest = _from_home(fixed.rpartition("/")[0], home), path[fixed.rindex("/") + 1 :]
        # pathlib's glob stops at an inaccessible folder
        folders += [start / found for found in sorted(glob.glob(rest, root_dir=start))]  # noqa: PTH207
    return folders


def _without_variables(pattern: str, env: Mapping[str, str]) -> Iterator[str]:
    found = _VARIABLE.search(pattern)
    if not found:
        yield pattern
        return
    default = found[2]
    value = env.get(found[1], "").strip() or default
    for choice in value.split(",") if "," in default else [value]:
        if choice := choice.strip():
            before = "" if choice.startswith("/") else pattern[: found.start()]
            yield from _without_variables(before + choice + pattern[found.end() :], env)


def _from_home(path: str, home: Path) -> Path:
    return home / path[2:] if path.startswith("~/") else home if path == "~" else Path(path)
