"""A file of another tool's memory, and the reader of its lines. A problem with one file does not stop the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memory_pipeline.operations.importing.lines import TextLine, lines_in
from memory_pipeline.operations.memory_text import UnreadableMemoryError, read_text, without_secrets
from memory_pipeline.proposals.remembering import ImportLine
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True)
class MemoryFile:
    """A file with the lines that can be imported."""

    source: str
    path: Path
    lines: tuple[ImportLine, ...] = ()
    problem: str = ""
    """The reason why it was not read completely."""


class Importer:
    """Reads files for one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._projects: dict[str, str | None] = {}

    @cached_property
    def redactor(self) -> Redactor:
        return redactor_of(self.workspace.settings)

    @cached_property
    def known_folders(self) -> list[str]:
        """The folders of sessions, newest first."""
        rows = self.workspace.lake.read("files", columns=["cwd", "began_at"]).drop_nulls("cwd")
        return list(dict.fromkeys(rows.sort("began_at", descending=True, nulls_last=True)["cwd"]))

    def project_of(self, folder: str) -> str | None:
        """The project of a session in this folder, or None."""
        if folder not in self._projects:
            self._projects[folder] = project_of_place(self.workspace.lake, place_of_folder(Path(folder)))
        return self._projects[folder]

    def masked(self, text: str) -> str:
        """The text with the same line numbers, without secrets and forgotten text."""
        shown, _ = without_secrets(text, self.redactor)
        return "\n".join(self.redactor.redact(row) for row in shown.split("\n"))

    def markdown(
        self, source: str, path: Path, origin: str, parse: Callable[[str], list[TextLine]] = lines_in
    ) -> MemoryFile:
        """The lines of a Markdown file, parsed by ``parse``."""
        try:
            text = read_text(path)
        except UnreadableMemoryError as error:
            return MemoryFile(source, path, problem=str(error))
        return MemoryFile(source, path, tuple(import_line(origin, path, line) for line in parse(self.masked(text))))


def import_line(origin: str, path: Path, line: TextLine) -> ImportLine:
    """The line in the form in which it is offered."""
    return ImportLine(line.text, origin, path, line.number, line.position, line.heading, line.project, line.cwd)
