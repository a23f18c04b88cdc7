"""The time limit, the output and the log of a hook. It only uses the standard library, as `python -I -S` runs the
hooks."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # as in `typing`, whose import takes as long as that of `json`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

OPENING = '<memory-pipeline note="data of earlier sessions, not what the user says in this one">'
CLOSING = "</memory-pipeline>"
LOG_BYTES = 100_000
MAX_PAYLOAD = 4_000_000
"""Maximum bytes of a payload that is read; of a longer one nothing is known."""
INSIDE = "MEMORY_PIPELINE_INSIDE"
"""Set when the pipeline itself uses an agent as a model: such a session is not to be remembered."""


class NoAnswerError(Exception):
    """There is nothing to print; the message says why."""


def run(
    workspace: str,
    agent: str,
    event: str,
    seconds: float,
    answer: Callable[[], str],
    stop: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Print the answer, and exit with code 0 in any case, after ``seconds`` at the latest. A problem is logged, and
    ``stop`` is called before the exit."""

    def end(problem: str | None) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, 0)
        stop()
        if problem:
            with suppress(Exception):
                log_problem(workspace, agent, event, problem)
        os._exit(0)

    for number in (signal.SIGALRM, signal.SIGTERM):  # agents terminate a hook that exceeds their time limit
        signal.signal(number, lambda *_: end(f"took longer than {seconds} s"))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        sys.stdout.write(answer())
        sys.stdout.flush()
        end(None)
    except NoAnswerError as error:
        end(str(error))
    except BaseException as error:
        end(f"{type(error).__name__}: {error}")


def read_payload() -> dict[str, Any]:
    """The JSON object that the agent writes to standard input; empty if it is too long or anything else."""
    data = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read(MAX_PAYLOAD)
    try:
        found = json.loads(data) if len(data) < MAX_PAYLOAD else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


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
