"""The interface of a harness: how its sessions are found, recognised and read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

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


class Harness(Protocol[R]):
    """A coding agent whose sessions are JSON Lines files. `R` is the decoded type of a line."""

    folders: tuple[str, ...] = ()
    """Patterns of the folders with its sessions, in the notation of `folders.py`."""
    side_files: tuple[str, ...] = ()
    """Patterns for the ends of paths of files next to sessions, which are not reported as unread. A file that is a
    session is read anyway."""

    @property
    def name(self) -> str:
        """The value of the column `harness`."""

    @property
    def format(self) -> str:
        """The prefix of its message ids: its name, or that of the agent whose format it shares."""
        return self.name

    @property
    def moved_by(self) -> list[str]:
        """The environment variables that change the folders of its sessions."""
        return variables(self.folders)

    @property
    def record_type(self) -> type[R]:
        """A struct with the fields to read; other fields are skipped while decoding."""

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

    def reader(self, transcript: Transcript) -> SessionReader[R]:
        """A reader of one session, which adds its messages to the transcript."""


@runtime_checkable
class HarnessWithRecords(Harness[R], Protocol[R]):
    """A harness whose sessions are not JSON Lines files, so that it reads the records itself."""

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, R]]:
        """The records of one session, each with its line or number; unreadable parts go to `problems`."""

    def images_of(self, record: R) -> list[JsonObject]:
        """The images in such a record, in the order of `Image.block`; none by default."""
        return []


@runtime_checkable
class HarnessWithFolders(HarnessWithRecords[R], Protocol[R]):
    """A harness that does not store each session in one file."""

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        """The sessions in a folder with these entries, and the names of unrelated entries; None if the folder is not
        its own."""
