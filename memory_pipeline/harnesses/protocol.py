"""The interface of a harness: how its sessions are found, recognised and read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from memory_pipeline.harnesses.folders import expand, variables
from memory_pipeline.harnesses.model import ParsedSession, Problem, Source
from memory_pipeline.harnesses.records import JsonObject
from memory_pipeline.harnesses.transcript import Transcript

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class SessionReader(Protocol[R_contra]):
    """Reads one session, record by record, into its transcript."""

    def record(self, line: int, record: R_contra, /) -> None:
        """Read the next record, with its line or number; called for every record in order."""

    def finish(self) -> ParsedSession:
        """The session so far. More records may follow, and then another call."""


class Harness(Generic[R]):
    """A coding agent whose sessions are JSON Lines files. `R` is the decoded type of a line."""

    name: str
    """The value of the column `harness`, and the prefix of message ids."""
    folders: tuple[str, ...] = ()
    """Patterns of the folders with its sessions, in the notation of `folders.py`."""
    side_files: tuple[str, ...] = ()
    """Patterns for the ends of paths of files next to sessions, which are not reported as unread. A file that is a
    session is read anyway."""
    record_type: type[R]
    """A struct with the fields to read, as other fields are skipped while decoding, or `dict`."""
    reader: Callable[[Transcript], SessionReader[R]]
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
        return variables(self.folders)

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


class HarnessWithRecords(Harness[R]):
    """A harness whose sessions are not JSON Lines files, so that it reads the records itself."""

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, R]]:
        """The records of one session, each with its line or number; unreadable parts go to `problems`."""
        raise NotImplementedError

    def images_of(self, record: R) -> list[JsonObject]:
        """The images in such a record, in the order of `Image.block`; none by default."""
        return []


class HarnessWithFolders(HarnessWithRecords[R]):
    """A harness that does not store each session in one file."""

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        """The sessions in a folder with these entries, and the names of unrelated entries; None if the folder is not
        its own."""
        raise NotImplementedError
