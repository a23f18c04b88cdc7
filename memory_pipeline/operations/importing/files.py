"""A file of another tool's memory, read and taken apart. What is wrong with one is a sentence, and stops no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from memory_pipeline.operations.audit_file import NotAuditedError, text_of, without_secrets
from memory_pipeline.operations.importing.lines import TakenApart, TextLine, lines_in
from memory_pipeline.proposals.importing import ImportLine
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True)
class MemoryFile:
    """A file with its lines, and how much of it is none, by what it is."""

    source: str
    path: Path
    lines: tuple[ImportLine, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why nothing, or not all of it, was read."""


@dataclass(frozen=True)
class Scope:
    """The origin, section and reach of the lines of a file."""

    origin: str
    position: int
    """That of the section for lines whose words tell none."""
    project: str | None = None
    cwd: str | None = None

    def line(self, path: Path, line: TextLine) -> ImportLine:
        project = line.project or self.project
        return ImportLine(line.text, self.origin, path, line.number, self.position, line.heading, project, self.cwd)


Parse = Callable[[str], tuple[TakenApart, Callable[[TextLine], Scope]]]
"""Takes a text without secrets apart; the second part says what each line is of."""


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
        """The folders in which sessions worked, the newest first."""
        rows = self.workspace.lake.read("files", columns=["cwd", "began_at"]).drop_nulls("cwd")
        return list(dict.fromkeys(rows.sort("began_at", descending=True, nulls_last=True)["cwd"]))

    def project_of(self, folder: str) -> str | None:
        """The project that a session in this folder would be of."""
        if folder not in self._projects:
            self._projects[folder] = project_of_place(self.workspace.lake, place_of_folder(Path(folder)))
        return self._projects[folder]

    def masked(self, text: str) -> str:
        """The text on the same lines, without secrets and what was forgotten."""
        shown, _ = without_secrets(text, self.redactor)
        return "\n".join(self.redactor.redact(row) for row in shown.split("\n"))

    def markdown(self, source: str, path: Path, parse: Parse) -> MemoryFile:
        """The file's lines."""
        try:
            text = text_of(path)
        except NotAuditedError as error:
            return MemoryFile(source, path, problem=str(error))
        found, scope_of = parse(self.masked(text))
        lines = tuple(scope_of(line).line(path, line) for line in found.lines)
        return MemoryFile(source, path, lines, dict(found.left_out))

    def plain_markdown(self, source: str, path: Path, scope: Scope) -> MemoryFile:
        """Likewise, where all lines are of one scope."""
        return self.markdown(source, path, lambda text: (lines_in(text), lambda _: scope))
