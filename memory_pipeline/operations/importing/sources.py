"""The memories of other tools, by the name of `memory import --from`. They are only read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from memory_pipeline.harnesses.protocol import expand
from memory_pipeline.harnesses.sqlite import is_database
from memory_pipeline.operations.importing.claude_mem import read_database
from memory_pipeline.operations.importing.lines import Importer, MemoryFile, TextLine, is_importable, lines_in
from memory_pipeline.recall.folders import existing_folder
from memory_pipeline.reflections.types import ARCHITECTURE, PATTERNS, RULES, USER

CLAUDE_CODE, CODEX, GEMINI, CLAUDE_MEM, PROJECT, FILE = (
    *("claude-code", "codex", "gemini"),
    *("claude-mem", "project", "file"),
)
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""Files of a project that agents read."""
GEMINI_HEADING = "gemini added memories"
_SECTIONS_OF_CODEX = {
    "user preferences": USER,
    "general tips": RULES,
    "reusable knowledge": PATTERNS,
    "failures and how to do differently": PATTERNS,
}
"""The headings under which Codex stores lasting facts; others are lists and indexes."""
_TASKS = re.compile(r"(?:\s*\[Task \d+\])+\.?$")
_CODEX_GROUP = re.compile(r"^(?:# |applies_to:.*?\bcwd=(?P<cwd>/[^;,\s]+))", re.MULTILINE)
"""The beginning of a group of tasks, with its folder."""
_SECTIONS_OF_TYPES = {"user": USER, "feedback": RULES, "project": ARCHITECTURE, "reference": PATTERNS}
"""The section for each type of Claude Code memory."""
_FRONT_MATTER = re.compile(r"---\n(?P<body>.*?\n)---\n", re.DOTALL)
_FIELD = re.compile(r"^\s*(?P<name>type|description):\s*[\"']?(?P<value>[^\n]*?)[\"']?\s*$", re.MULTILINE)
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_HEAD = 100_000
"""Maximum bytes of a transcript that are searched for its folder."""


def claude_code(importer: Importer, _: Path) -> Iterator[MemoryFile]:
    """Claude Code's memory: a folder for each project, whose MEMORY.md mostly refers to the other files."""
    errors: list[OSError] = []
    for base in _places("${CLAUDE_CONFIG_DIR:-~/.claude,~/.config/claude}/projects"):
        for name in sorted(next(os.walk(base, onerror=errors.append), ("", [], []))[1]):
            cwd = _folder_of(importer, base / name)
            project = importer.project_of(cwd) if cwd else name.removeprefix(_encoded(Path.home())).strip("-") or None
            walked = os.walk(base / name / "memory", onerror=errors.append)
            paths = [Path(at) / file for at, _, files in walked for file in files if file.endswith(".md")]
            for path in sorted(paths, key=lambda path: (path.name == "MEMORY.md", path)):
                parse = partial(_parse_claude, project=project, cwd=cwd)
                yield importer.markdown(CLAUDE_CODE, path, "Claude Code's memory", parse)
    for error in errors:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            why = (error.strerror or "cannot be read").lower()
            yield MemoryFile(CLAUDE_CODE, Path(error.filename), problem=f"{error.filename}: {why}. Make it readable.")


def _parse_claude(text: str, project: str | None, cwd: str | None) -> list[TextLine]:
    """The lines of a memory, or its description if its body has none. Facts about the user apply to all projects."""
    found = lines_in(text)
    front = _FRONT_MATTER.match(text)
    fields = {field["name"]: field for field in _FIELD.finditer(front["body"])} if front else {}
    kind = fields["type"]["value"] if "type" in fields else ""
    about = fields.get("description")
    if front and kind and about and not found and is_importable(about["value"]):
        number = text.count("\n", 0, front.start("body") + about.start("value")) + 1
        found.append(TextLine(number, about["value"], ""))
    own, position = None if kind == "user" else project, _SECTIONS_OF_TYPES.get(kind, ARCHITECTURE)
    return [replace(n, position=position, project=n.project or own, cwd=cwd) for n in found]


def _folder_of(importer: Importer, folder: Path) -> str | None:
    """The project folder of one of Claude Code's folders, from its transcripts or the known folders."""
    for path in sorted(folder.glob("*.jsonl"))[:5]:
        try:
            with path.open("rb") as file:
                found = _CWD.search(file.read(_HEAD))
        except OSError:
            continue
        if found:
            return str(json.loads(found[1].decode("utf-8", "replace")))
    known = [*importer.known_folders, *map(str, (Path.cwd(), *Path.cwd().parents))]
    return next((cwd for cwd in known if _encoded(cwd) == folder.name), None)


def _encoded(folder: str | Path) -> str:
    """The name that Claude Code gives its folder of a project."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(folder))


def codex(importer: Importer, _: Path) -> Iterator[MemoryFile]:
    """Codex's condensed memories, without raw memories, summaries of rollouts and skills."""
    folder = _places("${CODEX_HOME:-~/.codex}/memories")[0]
    for path in (folder / "memory_summary.md", folder / "MEMORY.md"):
        if _exists(path):
            yield importer.markdown(CODEX, path, "Codex's memory", partial(_parse_codex, importer))


def _parse_codex(importer: Importer, text: str) -> list[TextLine]:
    """The lines under lasting headings; each group of tasks names the folder of its lines."""
    begun = [(text.count("\n", 0, group.start()) + 1, group["cwd"]) for group in _CODEX_GROUP.finditer(text)]

    def placed(line: TextLine) -> TextLine:
        cwd = next((cwd for number, cwd in reversed(begun) if number < line.number), None)
        project = line.project or (importer.project_of(cwd) if cwd else None)
        position = _SECTIONS_OF_CODEX[line.heading.casefold()]
        return replace(line, text=_TASKS.sub("", line.text), position=position, project=project, cwd=cwd)

    return [placed(line) for line in lines_in(text) if line.heading.casefold() in _SECTIONS_OF_CODEX]


def gemini(importer: Importer, _: Path) -> Iterator[MemoryFile]:
    """The facts that Gemini CLI remembers: a section of its GEMINI.md."""
    path = _places("${GEMINI_CLI_HOME:-~}/.gemini/GEMINI.md")[0]
    if _exists(path):
        yield importer.markdown(GEMINI, path, "Gemini's memory", _parse_gemini)


def _parse_gemini(text: str) -> list[TextLine]:
    return [replace(line, position=USER) for line in lines_in(text) if line.heading.casefold() == GEMINI_HEADING]


def claude_mem(importer: Importer, _: Path) -> Iterator[MemoryFile]:
    """claude-mem's database."""
    path = _places("${CLAUDE_MEM_DATA_DIR:-~/.claude-mem}/claude-mem.db")[0]
    if _exists(path):
        yield read_database(importer, CLAUDE_MEM, path)


def project(importer: Importer, folder: Path) -> Iterator[MemoryFile]:
    """The instruction files of a project, each real file once."""
    top = _repository(folder) or folder
    paths = {path.resolve(): path for path in (top / name for name in reversed(INSTRUCTIONS)) if _exists(path)}
    for path in reversed(paths.values()):
        yield _instructions(importer, path, top)


def _instructions(importer: Importer, path: Path, top: Path) -> MemoryFile:
    def parse(text: str) -> list[TextLine]:
        own = importer.project_of(str(top))
        return [replace(line, project=line.project or own, cwd=str(top)) for line in lines_in(text)]

    return importer.markdown(PROJECT, path, "the project's instructions", parse)


SOURCES: dict[str, Callable[[Importer, Path], Iterator[MemoryFile]]] = {
    CLAUDE_CODE: claude_code,
    CODEX: codex,
    GEMINI: gemini,
    CLAUDE_MEM: claude_mem,
    PROJECT: project,
}
"""The sources in order of reading: of two equal lines the first is offered."""


def read_sources(importer: Importer, names: Sequence[str], folder: Path) -> list[MemoryFile]:
    """The files of these sources; instructions are those of the project that contains the folder."""
    return [found for name in names for found in SOURCES[name](importer, folder)]


def read_path(importer: Importer, path: Path) -> list[MemoryFile]:
    """A file, or the instructions of the project in a folder."""
    if existing_folder(str(path)):
        names = ", ".join(INSTRUCTIONS[:3])
        problem = MemoryFile(PROJECT, path, problem=f"{path} has no {names} or other file of instructions.")
        return list(project(importer, path)) or [problem]
    if is_database(path):
        return [read_database(importer, CLAUDE_MEM, path)]
    top = _repository(path.parent)
    if top and path.name in {Path(name).name for name in INSTRUCTIONS}:
        return [_instructions(importer, path, top)]
    return [importer.markdown(FILE, path, "a memory file")]


def _places(template: str) -> list[Path]:
    return list(expand(template, Path.home(), os.environ))


def _repository(folder: Path) -> Path | None:
    """The repository that contains the folder."""
    return next((one for one in (folder, *folder.parents) if _exists(one / ".git", unknown=False)), None)


def _exists(path: Path, *, unknown: bool = True) -> bool:
    """Whether the path exists; ``unknown`` if its folder is not accessible, so that the reader reports the problem."""
    try:
        path.stat()  # in newer versions of Python, `exists` is False for an inaccessible folder
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return unknown
    return True
