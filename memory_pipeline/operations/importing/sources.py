"""Where other tools keep what they remember, by the name of `memory import --from`. Nothing here is ever written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from memory_pipeline.harnesses.folders import expand
from memory_pipeline.operations.importing.claude_mem import is_database, read_database
from memory_pipeline.operations.importing.files import Importer, MemoryFile, Scope
from memory_pipeline.operations.importing.lines import TakenApart, TextLine, lines_in, why_no_line
from memory_pipeline.recall.folders import existing_folder
from memory_pipeline.reflections.types import ARCHITECTURE, PATTERNS, RULES, USER

CLAUDE_CODE, CODEX, GEMINI, CLAUDE_MEM, PROJECT, FILE = (
    *("claude-code", "codex", "gemini"),
    *("claude-mem", "project", "file"),
)
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""Files of a project that agents read."""
MAX_FILES = 500
"""Files of a source; an agent's memory has some dozens."""
GEMINI_HEADING = "gemini added memories"
_SECTIONS_OF_CODEX = {
    "user preferences": USER,
    "general tips": RULES,
    "reusable knowledge": PATTERNS,
    "failures and how to do differently": PATTERNS,
}
"""The headings below which Codex's MEMORY.md and memory_summary.md have what holds; the others list and index."""
_TASKS = re.compile(r"(?:\s*\[Task \d+\])+\.?$")
_CODEX_GROUP = re.compile(r"^(?:# |applies_to:.*?\bcwd=(?P<cwd>/[^;,\s]+))", re.MULTILINE)
"""Where a group of tasks begins, and where it names its folder."""
_SECTIONS_OF_TYPES = {"user": USER, "feedback": RULES, "project": ARCHITECTURE, "reference": PATTERNS}
"""Of what Claude Code calls the type of a memory."""
_FRONT_MATTER = re.compile(r"---\n(?P<body>.*?\n)---\n", re.DOTALL)
_FIELD = re.compile(r"^\s*(?P<name>type|description):\s*[\"']?(?P<value>[^\n]*?)[\"']?\s*$", re.MULTILINE)
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_HEAD = 100_000
"""Bytes of a transcript in which its folder is looked for."""

ScopeOf = Callable[[TextLine], Scope]
Read = Callable[[Importer, Path, Mapping[str, str], Path], Iterator[MemoryFile]]
"""Reads what a source has; given are the home, the environment and the folder of the project."""


def claude_code(importer: Importer, home: Path, env: Mapping[str, str], _: Path) -> Iterator[MemoryFile]:
    """Claude Code's auto memory, a folder for each project: MEMORY.md, which mostly points to the others, and these."""
    errors: list[OSError] = []
    for base in expand("${CLAUDE_CONFIG_DIR:-~/.claude,~/.config/claude}/projects", home, env):
        for folder in _entries(base, errors):
            cwd = _folder_of(importer, folder)
            project = importer.project_of(cwd) if cwd else _without_home(folder.name, home)
            for path in _markdown_below(folder / "memory", errors):
                yield importer.markdown(CLAUDE_CODE, path, partial(_parse_claude, project=project, cwd=cwd))
    for error in errors:
        why = (error.strerror or "cannot be read").lower()
        yield MemoryFile(CLAUDE_CODE, Path(error.filename), problem=f"{error.filename}: {why}. Let it be read.")


def _parse_claude(text: str, project: str | None, cwd: str | None) -> tuple[TakenApart, ScopeOf]:
    """The lines, or where the body of a typed memory has none, its description. What is about the user holds in every
    project."""
    found = lines_in(text)
    front = _FRONT_MATTER.match(text)
    fields = {field["name"]: field for field in _FIELD.finditer(front["body"])} if front else {}
    named = fields["type"]["value"] if "type" in fields else ""
    told = fields.get("description")
    if front and named and told and not found.lines and not why_no_line(told["value"]):
        number = text.count("\n", 0, front.start("body") + told.start("value")) + 1
        found.lines.append(TextLine(number, told["value"], ""))
    position = _SECTIONS_OF_TYPES.get(named, ARCHITECTURE)
    scope = Scope("Claude Code's memory", position, None if named == "user" else project, cwd)
    return found, lambda _: scope


def _folder_of(importer: Importer, folder: Path) -> str | None:
    """The folder that Claude Code's folder of a project is named after: by its transcripts, or by what is known."""
    for path in sorted(folder.glob("*.jsonl"))[:5]:
        try:
            with path.open("rb") as file:
                found = _CWD.search(file.read(_HEAD))
        except OSError:
            continue
        if found:
            return str(json.loads(found[1].decode("utf-8", "replace")))
    known = [*importer.known_folders, *(str(parent) for parent in (Path.cwd(), *Path.cwd().parents))]
    return next((cwd for cwd in known if re.sub(r"[^A-Za-z0-9]", "-", cwd) == folder.name), None)


def _without_home(name: str, home: Path) -> str | None:
    """A project name made from the name of a folder whose path is not known."""
    prefix = re.sub(r"[^A-Za-z0-9]", "-", str(home))
    return name.removeprefix(prefix).strip("-") or None


def codex(importer: Importer, home: Path, env: Mapping[str, str], _: Path) -> Iterator[MemoryFile]:
    """The memories that Codex has condensed. Raw memories, summaries of rollouts and skills are left out."""
    folder = expand("${CODEX_HOME:-~/.codex}/memories", home, env)[0]
    for path in (folder / "memory_summary.md", folder / "MEMORY.md"):
        if _is_there(path):
            yield importer.markdown(CODEX, path, partial(_parse_codex, importer))


def _parse_codex(importer: Importer, text: str) -> tuple[TakenApart, ScopeOf]:
    """Each group of tasks names the folder that its lines are of."""
    found = lines_in(text)
    found.left_out.update(_keep(found, lambda line: line.heading.casefold() in _SECTIONS_OF_CODEX, "list or index"))
    found.lines = [replace(line, text=_TASKS.sub("", line.text)) for line in found.lines]
    begun = [(text.count("\n", 0, group.start()) + 1, group["cwd"]) for group in _CODEX_GROUP.finditer(text)]

    def scope_of(line: TextLine) -> Scope:
        cwd = next((cwd for number, cwd in reversed(begun) if number < line.number), None)
        position = _SECTIONS_OF_CODEX[line.heading.casefold()]
        return Scope("Codex's memory", position, importer.project_of(cwd) if cwd else None, cwd)

    return found, scope_of


def gemini(importer: Importer, home: Path, env: Mapping[str, str], _: Path) -> Iterator[MemoryFile]:
    """The facts that Gemini CLI was told to remember: a section of its GEMINI.md."""
    path = expand("${GEMINI_CLI_HOME:-~}/.gemini/GEMINI.md", home, env)[0]
    if _is_there(path):
        yield importer.markdown(GEMINI, path, _parse_gemini)


def _parse_gemini(text: str) -> tuple[TakenApart, ScopeOf]:
    found = lines_in(text)
    found.left_out.update(
        _keep(found, lambda line: line.heading.casefold() == GEMINI_HEADING, "line of another section")
    )
    return found, lambda _: Scope("Gemini's memory", USER)


def claude_mem(importer: Importer, home: Path, env: Mapping[str, str], _: Path) -> Iterator[MemoryFile]:
    """claude-mem's database."""
    path = expand("${CLAUDE_MEM_DATA_DIR:-~/.claude-mem}/claude-mem.db", home, env)[0]
    if _is_there(path):
        yield read_database(importer, CLAUDE_MEM, path)


def project(importer: Importer, _: Path, __: Mapping[str, str], folder: Path) -> Iterator[MemoryFile]:
    """The files of a project that its agents read, each real file once."""
    top = _repository(folder) or folder
    seen = set[Path]()
    for path in (top / name for name in INSTRUCTIONS):
        if _is_there(path) and path.resolve() not in seen:
            seen.add(path.resolve())
            yield _instructions(importer, PROJECT, path, top)


def _instructions(importer: Importer, source: str, path: Path, top: Path) -> MemoryFile:
    scope = Scope("the project's instructions", ARCHITECTURE, importer.project_of(str(top)), str(top))
    return importer.plain_markdown(source, path, scope)


SOURCES: dict[str, Read] = {
    CLAUDE_CODE: claude_code,
    CODEX: codex,
    GEMINI: gemini,
    CLAUDE_MEM: claude_mem,
    PROJECT: project,
}
"""In the order in which they are read: of two lines that say the same the first is offered."""


def read_sources(importer: Importer, names: Sequence[str], folder: Path) -> list[MemoryFile]:
    """What these sources have; the instructions are those of the project that the folder lies in."""
    home, env = Path.home(), os.environ
    return [found for name in names for found in SOURCES[name](importer, home, env, folder)]


def read_path(importer: Importer, path: Path) -> list[MemoryFile]:
    """A file, or the instructions of the project in a folder."""
    if existing_folder(str(path)):
        found = list(project(importer, path, {}, path))
        names = ", ".join(INSTRUCTIONS[:3])
        return found or [MemoryFile(PROJECT, path, problem=f"{path} has no {names} or other file of instructions.")]
    if is_database(path):
        return [read_database(importer, CLAUDE_MEM, path)]
    top = _repository(path.parent)
    if top and path.name in {Path(name).name for name in INSTRUCTIONS}:
        return [_instructions(importer, PROJECT, path, top)]
    return [importer.plain_markdown(FILE, path, Scope("a memory file", ARCHITECTURE))]


def _repository(folder: Path) -> Path | None:
    """The repository that the folder lies in."""
    for one in (folder, *folder.parents):
        with suppress(OSError):  # a folder that may not be entered
            if (one / ".git").exists():
                return one
    return None


def _entries(folder: Path, errors: list[OSError]) -> list[Path]:
    """The entries of a folder; none where there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            errors.append(error)
        return []


def _markdown_below(folder: Path, errors: list[OSError]) -> list[Path]:
    """The Markdown files of a memory, its index last."""

    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            errors.append(error)

    walked = os.walk(folder, onerror=failed)
    found = sorted(Path(at) / name for at, _, names in walked for name in names if name.endswith(".md"))
    if len(found) > MAX_FILES:
        errors.append(OSError(0, f"{len(found):,} files, of which the first {MAX_FILES} were read", str(folder)))
    return sorted(found[:MAX_FILES], key=lambda path: path.name == "MEMORY.md")


def _is_there(path: Path) -> bool:
    """Whether there is such a file; one that may not be looked at is there, and who reads it says what is wrong."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _keep(found: TakenApart, holds: Callable[[TextLine], bool], reason: str) -> dict[str, int]:
    """Keep only the lines for which it holds; how many others there were, by what they are."""
    kept = [line for line in found.lines if holds(line)]
    gone = len(found.lines) - len(kept)
    found.lines = kept
    return {reason: gone} if gone else {}
