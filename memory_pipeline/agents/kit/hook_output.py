"""The output and the log of a hook. It only uses the standard library, as `python -I -S` runs the hooks."""

from __future__ import annotations

import os
import time

OPENING = '<memory-pipeline note="data of earlier sessions, not what the user says in this one">'
CLOSING = "</memory-pipeline>"
LOG_BYTES = 100_000


def marked(text: str) -> str:
    """The text between marks that it cannot end."""
    inside = text.replace("memory-pipeline>", "memory-pipeline&gt;").replace("<memory-pipeline", "&lt;memory-pipeline")
    return f"{OPENING}\n{inside}\n{CLOSING}"


def append_line(path: str, line: str, max_bytes: int = LOG_BYTES) -> None:
    """Append a line by a single write; a file that has grown too long is renamed first. Raises OSError."""
    if os.path.exists(path) and os.path.getsize(path) > max_bytes:
        os.replace(path, f"{path}.1")
    # without O_NONBLOCK, a named pipe in its place would wait for a reader
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    try:
        os.write(file, f"{line}\n".encode("utf-8", "replace"))
    finally:
        os.close(file)


def log_problem(workspace: str, agent: str, event: str, problem: str) -> None:
    """Add a problem to the log of the hooks. Raises OSError."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    path = os.path.join(workspace, "connections", "hooks.log")
    append_line(path, f"{moment} {agent} {event}: {' '.join(problem.split())}")
