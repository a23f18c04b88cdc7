"""What friction looks like: which messages are signs of it, of which kind, and what would end it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

from memory_pipeline.text.specifics import VARYING

REPEATED_CORRECTION = "repeated_correction"
RECURRING_FAILURE = "recurring_failure"
TOOL_MISUSE = "tool_misuse"
CONFIGURATION_DRIFT = "configuration_drift"
STALE_MEMORY = "stale_memory"

IMPACT = {
    REPEATED_CORRECTION: 3.0,
    STALE_MEMORY: 4.0,
    RECURRING_FAILURE: 2.0,
    TOOL_MISUSE: 1.0,
    CONFIGURATION_DRIFT: 2.0,
}
"""What one occurrence costs a user: a correction interrupts, a rule that is there and not kept annoys,
a failing tool costs a turn, a misused tool part of one."""

_MISUSE = re.compile(
    r"has not been read yet|old_?string|old text|must be unique|not found in file|no such tool|unknown option|"
    r"unrecognized (arguments|option)|invalid (arguments?|input|option)|missing required|usage:|validation error",
    re.I,
)
_CONFIGURATION = re.compile(
    r"command not found|no module named|modulenotfounderror|cannot find module|permission denied|eacces|not installed|"
    r"already (in use|allocated)|address already|connection refused|could not connect|environment variable|"
    r"version mismatch",
    re.I,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TELLING = re.compile(
    r"error|fail|denied|not found|refused|in use|cannot|exception|invalid|missing|unknown|no such", re.I
)
_CANCELLED = re.compile(r"doesn't want to proceed|rejected by user|request interrupted|sibling tool call", re.I)


@dataclass(frozen=True, slots=True)
class FrictionEvent:
    """One occurrence of friction: a user's correction, or a tool's failure."""

    event_id: str
    day: date
    session_id: str
    at: datetime
    text: str
    evidence: tuple[tuple[str, int, int], ...]
    """(message id, start, end)"""
    tool: str | None = None
    """The tool that failed; None for words of a user."""
    cwd: str | None = None
    project: str | None = None


def error_line(text: str) -> str | None:
    """The line of a failed tool's output that tells what went wrong; None when a user stopped it."""
    if _CANCELLED.search(text):
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if _TELLING.search(line)), lines[-1] if lines else None)


def signature(line: str) -> str:
    """The error without what differs from time to time: numbers, hashes, paths, quoted values. Without the
    tool too: every harness names its shell differently."""
    return " ".join(VARYING.sub("…", _COLOUR.sub("", line)).lower().split())[:160]


def kind_of_failure(line: str) -> str:
    if _MISUSE.search(line):
        return TOOL_MISUSE
    return CONFIGURATION_DRIFT if _CONFIGURATION.search(line) else RECURRING_FAILURE
