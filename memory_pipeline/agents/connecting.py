"""Connection of an agent: a block in its instruction file, which is kept up to date and can be removed.

If the agent supports imports, the block imports our file with the lines that apply to every project. Otherwise, and in
the file of a project, the block contains the lines. Connections are listed in `connected.json`; disconnecting works
without it, but no block is updated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from filelock import Timeout

from memory_pipeline.agents.agents import (
    AGENTS,
    Agent,
    CannotConnectError,
    bytes_of,
    edit_file,
    read_entries,
    tilde_path,
    write_entries,
)
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.markdown.blocks import append_block, body_of, cut_block, damage, has_block, put_block
from memory_pipeline.markdown.safe_write import decode, encode, write_atomically
from memory_pipeline.settings import Settings

IMPORT, LINES = "connect-import", "connect-lines"
"""The keys of the blocks."""
LIST = "connected.json"


class Line(NamedTuple):
    """An active line of MEMORY.md; `project` is its project, None if it applies everywhere."""

    section: str
    text: str
    project: str | None


@dataclass(frozen=True)
class Connection:
    """A block in the file at `path`, which several agents may read, such as the AGENTS.md of a project."""

    agent: str
    path: str
    key: str
    project: str | None = None

    @classmethod
    def new(cls, agent: Agent, project: tuple[Path, str] | None) -> Self:
        folder, name = project or (None, None)
        key = IMPORT if agent.imports and not project else LINES
        return cls(agent.name, str(agent.instructions(folder)), key, name)


def connections(settings: Settings) -> list[Connection]:
    """The connections of this workspace. Raises `CannotConnectError` for an unreadable list."""
    return read_entries(settings, LIST, Connection, "memory agents connect")


def imported_file(settings: Settings) -> Path:
    """The file that agents import: the lines of MEMORY.md that apply to every project."""
    return settings.workspace / "connections" / "MEMORY.md"


def connected_text(settings: Settings, connection: Connection, lines: Sequence[Line], old: bytes | None) -> bytes:
    """The agent's file with the block. Raises `CannotConnectError` if an existing block is damaged or was edited."""
    text = None if old is None else decode(old)
    _refuse_damage(connection, text or "")
    body = _body(settings, connection, lines)
    if has_block(text or "", connection.key):
        return encode(put_block(text or "", connection.key, body).text)
    return encode(append_block(text, connection.key, body))


def disconnected_text(connection: Connection, old: bytes) -> bytes | None:
    """The agent's file without the block, as it was before; None if there was none. Raises `CannotConnectError`."""
    text = decode(old)
    _refuse_damage(connection, text)
    if not has_block(text, connection.key):
        return old
    left = cut_block(text, connection.key)
    return None if left is None else encode(left)


def connect(settings: Settings, connection: Connection, lines: Sequence[Line]) -> None:
    """Write the block and the imported file. Raises the errors of `connected_text`, and OSError."""
    known = connections(settings)
    if connection.key == IMPORT:
        _write_import(settings, lines)
    edit_file(settings, Path(connection.path), lambda old: connected_text(settings, connection, lines, old))
    if connection not in known:
        write_entries(settings, LIST, [*known, connection])


def disconnect(settings: Settings, connection: Connection) -> None:
    """Remove the block, unless another agent reads it too. Raises the errors of `disconnected_text`, and OSError."""
    left = [other for other in connections(settings) if other != connection]
    path = Path(connection.path)
    if not is_shared(left, connection) and path.exists():
        edit_file(settings, path, lambda old: None if old is None else disconnected_text(connection, old))
    if not any(other.key == IMPORT for other in left):
        imported_file(settings).unlink(missing_ok=True)
    write_entries(settings, LIST, left)


def is_shared(others: Sequence[Connection], connection: Connection) -> bool:
    """Whether one of the others is the same block, for another agent."""
    same = (other for other in others if other.agent != connection.agent)
    return any((other.path, other.key) == (connection.path, connection.key) for other in same)


def refresh(settings: Settings, lines: Sequence[Line]) -> list[str]:
    """Update every block. Returns problems as sentences; a problem with one block does not affect the others.

    A block that a user edited or removed stays so, and so does one that another workspace has taken over.
    """
    problems: list[str] = []
    try:
        known = connections(settings)
    except (CannotConnectError, OSError) as error:
        return [str(error)]
    if any(connection.key == IMPORT for connection in known):
        with _collecting_problem(problems, imported_file(settings)):
            _write_import(settings, lines)
    for path in dict.fromkeys(connection.path for connection in known if connection.key == LINES):
        connection = next(c for c in known if (c.path, c.key) == (path, LINES))
        with _collecting_problem(problems, Path(path)):
            _refresh(settings, connection, lines)
    return problems


def describe(settings: Settings) -> dict[str, str]:
    """The connections of each agent in a few words."""
    found: dict[str, list[str]] = {}
    for connection in connections(settings):
        is_there = Path(connection.path).exists() and has_block(
            decode(Path(connection.path).read_bytes()), connection.key
        )
        words = f"connected in {connection.project}" if connection.project else "connected"
        found.setdefault(connection.agent, []).append(
            words if is_there else f"{words}, but its lines are missing from {connection.path}"
        )
    return {agent.name: ", ".join(found[agent.name]) for agent in AGENTS if agent.name in found}


def _refresh(settings: Settings, connection: Connection, lines: Sequence[Line]) -> None:
    path = Path(connection.path)
    old = path.read_bytes()
    body = body_of(decode(old), connection.key)
    if body is None or tilde_path(settings.memory_file) not in body:
        raise CannotConnectError(
            f"{path}: the block of `memory agents connect` is missing, was edited, or belongs to another workspace, "
            f"so it is not updated. `memory agents connect {connection.agent}` explains."
        )
    if body != _body(settings, connection, lines):
        edit_file(settings, path, lambda now: connected_text(settings, connection, lines, now))


@contextlib.contextmanager
def _collecting_problem(problems: list[str], path: Path) -> Iterator[None]:
    try:
        yield
    except (MemoryPipelineError, Timeout) as error:
        problems.append(str(error))
    except OSError as error:
        problems.append(f"{path} was not updated: {(error.strerror or 'cannot be used').lower()}.")


def _body(settings: Settings, connection: Connection, lines: Sequence[Line]) -> str:
    if connection.key == IMPORT:
        return "@" + tilde_path(imported_file(settings)).replace(" ", "\\ ")
    return rendered(lines, tilde_path(settings.memory_file), connection.project)


def _refuse_damage(connection: Connection, text: str) -> None:
    if found := damage(text, connection.key):
        line, what = found
        raise CannotConnectError(
            f"{connection.path}, line {line}: {what}. Expected one `<!-- memory:{connection.key} … -->` with one "
            f"`<!-- /memory:{connection.key} -->`, unchanged. Remove the whole block by hand, including its closing "
            f"mark, then run this again; keep the text around it."
        )


def _write_import(settings: Settings, lines: Sequence[Line]) -> None:
    path = imported_file(settings)
    old = bytes_of(path)
    new = f"{rendered(lines, tilde_path(settings.memory_file), None)}\n".encode("utf-8", "replace")
    write_atomically(path, new, expected=old, backups=None)


def rendered(lines: Iterable[Line], source: str, project: str | None) -> str:
    """Markdown of the lines of this project only, or of those that apply everywhere; ``source`` is the file that
    contains them."""
    scope = f"the project {project}" if project else "every project"
    parts = [
        f"## Remembered for {scope}",
        "",
        f"Lines from earlier sessions that the user approved. `memory` copies them from {source}: change them there.",
    ]
    sections: dict[str, list[str]] = {}
    for line in lines:
        if line.project == project:
            sections.setdefault("" if line.section == project else line.section, []).append(f"- {line.text}")
    for section, texts in sections.items():
        parts += ["", *([f"### {section}", ""] if section else []), *dict.fromkeys(texts)]
    if not sections:
        parts += ["", "None yet."]
    return "\n".join(parts)
