"""Agents that can be connected: their home, the instruction file that each reads, and changes to their files.

According to their sources in November 2026 (pi 0.87, Codex 0.169, OpenCode 1.18, Gemini CLI 0.61) and Claude Code's
documentation. Of several possible files an agent reads only the first, so that one must be edited: a new file with
precedence would hide the user's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.markdown.safe_write import update_file, write_atomically
from memory_pipeline.settings import Settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


class CannotConnectError(MemoryPipelineError):
    """An agent's file cannot be changed as requested; nothing was written. The message names the file and what to
    do."""


@dataclass(frozen=True)
class Agent:
    """A coding agent for `memory agents connect` and `memory agents hooks`."""

    name: str
    title: str
    variable: str
    """The environment variable for its home."""
    base: str
    """The default of the variable, relative to the user's home."""
    below: str
    """The agent's home, relative to that folder."""
    reads: tuple[str, ...]
    """Instruction files for all projects, in its home or the user's (`~/`); the first existing one counts."""
    reads_in_project: tuple[str, ...]
    hooks: str
    """Path, relative to its home, of the settings with hooks, or of the script that it loads."""
    skips_blank: bool = False
    """Whether a blank file counts as missing."""
    imports: bool = False
    """Whether `@path` imports a file from anywhere. Gemini CLI only imports files below the folder of the importing
    one."""

    @property
    def home(self) -> Path:
        set_to = os.environ.get(self.variable)
        base = Path(set_to).expanduser() if set_to else Path.home() / self.base
        return Path(os.path.abspath(base / self.below))  # noqa: PTH100 - a link stays the path that the user knows

    @property
    def is_installed(self) -> bool:
        return self.home.is_dir() or shutil.which(self.name) is not None

    def instructions(self, project: Path | None = None) -> Path:
        """The instruction file for all sessions, or for those of the project."""
        at_home = (_gemini_file(self.home),) if self.name == "gemini" else self.reads
        named = self.reads_in_project if project else at_home
        paths = [Path.home() / name[2:] if name.startswith("~/") else (project or self.home) / name for name in named]
        there = (path for path in paths if self._is_read(path))
        own = next(path for path in paths if path.name != OVERRIDE)
        return next(there, own)

    def _is_read(self, path: Path) -> bool:
        try:
            return path.is_file() and not (self.skips_blank and not path.read_bytes().strip())
        except OSError:
            return True  # it exists; a writer reports the problem


OVERRIDE = "AGENTS.override.md"
_PI_FILES = (OVERRIDE, "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")

AGENTS = (
    Agent(
        *("claude", "Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ""),
        ("CLAUDE.md",),
        ("CLAUDE.local.md",),
        "settings.json",
        imports=True,
    ),
    Agent(
        *("codex", "Codex", "CODEX_HOME", ".codex", ""),
        (OVERRIDE, "AGENTS.md"),
        (OVERRIDE, "AGENTS.md"),
        "hooks.json",
        skips_blank=True,
    ),
    Agent("pi", "pi", "PI_CODING_AGENT_DIR", ".pi/agent", "", _PI_FILES, _PI_FILES, "extensions/memory-pipeline.js"),
    Agent(
        *("opencode", "OpenCode", "XDG_CONFIG_HOME", ".config", "opencode"),
        ("AGENTS.md", "~/.claude/CLAUDE.md"),
        ("AGENTS.md", "CLAUDE.md", "CONTEXT.md"),
        "plugins/memory-pipeline.js",
    ),
    Agent("gemini", "Gemini CLI", "GEMINI_CLI_HOME", "", ".gemini", ("GEMINI.md",), ("GEMINI.md",), "settings.json"),
)
BY_NAME = {agent.name: agent for agent in AGENTS}


def agent_of(name: str) -> Agent:
    """The agent with this name. Raises `CannotConnectError` for an unknown name."""
    if name not in BY_NAME:
        raise CannotConnectError(f"{name!r}: no such agent; expected one of {', '.join(BY_NAME)}.")
    return BY_NAME[name]


def installed(agent: Agent) -> Agent:
    """The agent. Raises `CannotConnectError` if it is not installed."""
    if not agent.is_installed:
        raise CannotConnectError(
            f"{agent.title} is not installed: there is no {agent.home} and no program {agent.name}. Start it once, or "
            f"name its home in {agent.variable}."
        )
    return agent


def _gemini_file(home: Path) -> str:
    """The name of the instruction file in its settings."""
    try:
        named = json.loads((home / "settings.json").read_text("utf-8"))["context"]["fileName"]
    except (OSError, ValueError, KeyError, TypeError):
        return "GEMINI.md"
    first = named[0] if isinstance(named, list) and named else named
    return first if isinstance(first, str) and first and Path(first).name == first else "GEMINI.md"


def edit_file(settings: Settings, path: Path, edit: Callable[[bytes | None], bytes | None]) -> None:
    """Replace the file, with a backup, by the result of ``edit`` for its old bytes; None means no file. Raises OSError,
    and the errors of ``edit`` before the file is changed."""
    named = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    removed = False

    def edited(old: bytes | None) -> bytes:
        nonlocal removed
        new = edit(old)
        removed = new is None
        return new or b""

    update_file(path, edited, backups=settings.backups / "connections" / named)
    if removed and path.read_bytes() == b"":
        path.resolve().unlink()


def bytes_of(path: Path) -> bytes | None:
    """The bytes of the file; None if it does not exist."""
    return path.read_bytes() if path.exists() else None


def read_entries(settings: Settings, name: str, entry: Callable[..., T], command: str) -> list[T]:
    """The entries of a list written by `write_entries`; empty if it does not exist. Raises `CannotConnectError` for a
    damaged list, with the ``command`` that restores it."""
    path = settings.workspace / "connections" / name
    try:
        return [entry(**row) for row in json.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise CannotConnectError(
            f"{path} cannot be read: {error}. Remove it and run `{command}` again for each agent."
        ) from None


def write_entries(settings: Settings, name: str, entries: Iterable[T]) -> None:
    """Replace the list with this file name. Raises OSError."""
    path = settings.workspace / "connections" / name
    new = json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False).encode() + b"\n"
    write_atomically(path, new, expected=bytes_of(path), backups=None)


def tilde_path(path: Path) -> str:
    """The path with `~` for the user's home, so that the file is valid on another machine."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
