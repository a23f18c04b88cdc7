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
        """The next record, with its line or number; called for every record in order."""

    def finish(self) -> ParsedSession:
        """The session as far as it was read. More records may follow, and then another call."""


class Harness(Protocol[R]):
    """A coding agent whose sessions are files of JSON lines. `R` is what a line is decoded to."""

    folders: tuple[str, ...] = ()
    """Patterns of the folders in which it keeps sessions; `folders.py` has their notation."""
    side_files: tuple[str, ...] = ()
    """Patterns for the ends of paths of files beside sessions, which are not reported as unread. One that is a session
    all the same is read."""

    @property
    def name(self) -> str:
        """The value of the column `harness`."""

    @property
    def format(self) -> str:
        """The prefix of its message ids: its name, or that of the agent whose format it shares."""
        return self.name

    @property
    def moved_by(self) -> list[str]:
        """The environment variables that say where its sessions are."""
        return variables(self.folders)

    @property
    def record_type(self) -> type[R]:
        """A struct with the fields that are read; what it does not name is skipped while decoding."""

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        """The directories where it keeps sessions, whether they are there or not."""
        return [folder for pattern in self.folders for folder in expand(pattern, home, env)]

    def retention_days(self, settings: JsonObject) -> float | None:
        """Days after which it deletes a session that nothing is written to, as the settings.json beside its folder
        says; None where it deletes none.
        """
        return None

    def recognises(self, record: JsonObject) -> bool:
        """Whether a file that begins with this record is one of its sessions; any JSON object may come."""

    def reader(self, transcript: Transcript) -> SessionReader[R]:
        """A reader of one session, which adds its messages to the transcript."""


@runtime_checkable
class HarnessWithRecords(Harness[R], Protocol[R]):
    """A harness whose sessions are not files of JSON lines, so that it finds the records itself."""

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, R]]:
        """The records of one session, each with its line or number; what cannot be read goes to `problems`."""

    def images_of(self, record: R) -> list[JsonObject]:
        """The images in such a record, in the order in which `Image.block` counts them; none by default."""
        return []


@runtime_checkable
class HarnessWithFolders(HarnessWithRecords[R], Protocol[R]):
    """A harness that keeps sessions in something else than one file each."""

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        """The sessions in a folder with these entries, and the names of unrelated entries; None if the folder is not
        its own."""
