"""Approved rules with their checks, the mode of each, and the past tool calls that a check would have stopped.

A rule that has a check is in one of four modes. In `hint`, the default, an agent that breaks it is told the rule. In
`observe` the violation is only recorded, in `ask` the user is asked, and in `deny` the call is stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import polars as pl

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.friction.attempts import TOOL
from memory_pipeline.friction.checks import Check, arguments_of, check_for
from memory_pipeline.friction.rules import handwritten_id
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

Mode = Literal["hint", "observe", "ask", "deny"]
MODES: tuple[Mode, ...] = get_args(Mode)


class RuleError(MemoryPipelineError):
    """A rule is unknown or cannot be set to a mode; the message says why and what to do."""


class ApprovedLine(NamedTuple):
    """A line of MEMORY.md in force."""

    line_id: str | None
    """The id of its proposal; None if it was written by hand."""
    text: str
    project: str | None
    """Its project; None if it applies everywhere."""
    since: date | None
    """The day on which it was approved, if known."""


@dataclass(frozen=True)
class Rule:
    """An approved line as a rule about tool calls."""

    rule_id: str
    text: str
    project: str | None
    since: date | None
    check: Check | None
    reason: str
    """The reason why code cannot check it; empty with a check."""
    mode: Mode


def rules_of(settings: Settings, lines: Iterable[ApprovedLine]) -> list[Rule]:
    """The lines with their checks and modes, in order. Raises `RuleError` for an unreadable list of modes."""
    modes, found = _modes(settings), list[Rule]()
    for line in lines:
        rule_id = line.line_id or handwritten_id(line.text, line.project)
        check, own = check_for(line.text), (rule_id, line.text, line.project, line.since)
        if isinstance(check, Check):
            mode, tested = modes.get(rule_id, ("hint", ""))
            found.append(Rule(*own, check, "", mode if tested == _digest(f"{check.data}") else "hint"))
        else:
            found.append(Rule(*own, None, check, "hint"))
    return found


def set_mode(settings: Settings, rule: Rule, mode: Mode) -> None:
    """Store the mode of a rule, for the check that it has now: a line that is edited is a hint again. Of `hint`, the
    default, nothing is stored. Raises `RuleError` and OSError."""
    modes = _modes(settings)
    modes.pop(rule.rule_id, None)
    if mode != "hint" and rule.check:
        modes[rule.rule_id] = mode, _digest(f"{rule.check.data}")
    path = _modes_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_bytes() if path.exists() else None
    if modes:
        new = json.dumps(dict(sorted(modes.items())), indent=1).encode() + b"\n"
        write_atomically(path, new, expected=old, backups=None)
    elif old is not None:
        path.unlink()


def _modes(settings: Settings) -> dict[str, tuple[Mode, str]]:
    """The mode of each rule, and the digest of the check that it was set for."""
    path = _modes_file(settings)
    try:
        found = json.loads(path.read_bytes())
        modes = {rule_id: (mode, check) for rule_id, (mode, check) in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise RuleError(f"{path} cannot be read: {error}. Remove it and set the modes again.") from None
    if unknown := next((mode for mode, _ in modes.values() if mode not in MODES), None):
        raise RuleError(f"{path}: {unknown!r}: expected one of {', '.join(MODES)}. Remove it and set the modes again.")
    return modes


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _modes_file(settings: Settings) -> Path:
    return settings.workspace / "connections" / "rules.json"


MAX_SHARE = 0.1
"""Maximum share of the past calls that a check may stop: one that stops more does not say what the rule says."""
MIN_CALLS = 20
"""Minimum past calls for that share to say anything."""
MAX_SHOWN = 200
"""Maximum characters of a call in the result."""


@dataclass(frozen=True)
class PastCall:
    """A tool call of a session, as it is stored."""

    day: date
    session_id: str
    project: str | None
    tool: str
    text: str
    """Tool and arguments, `name(key=value, …)`."""


@dataclass(frozen=True)
class BackTest:
    """The calls that a check would have stopped, oldest first, among all calls of its project."""

    stopped: tuple[PastCall, ...]
    calls: int

    @property
    def is_too_broad(self) -> bool:
        """Whether the check stops so many calls that it cannot be meant."""
        return self.calls >= MIN_CALLS and len(self.stopped) > MAX_SHARE * self.calls


def past_calls(lake: Lake) -> Iterator[PastCall]:
    """The tool calls of all sessions, oldest first."""
    sessions = lake.read("sessions", columns=("session_id", "project"))
    projects: dict[str, str | None] = dict(sessions.iter_rows())
    columns = ("session_id", "role", "tool_name", "text", "said_at", "is_error", "voided")
    is_call = (pl.col("tool_name") != "") & pl.col("text").str.starts_with(pl.col("tool_name") + "(")
    is_left_out = pl.col("voided").fill_null(False) | pl.col("is_error").fill_null(False)
    for day in lake.days("messages"):
        rows = lake.read("messages", [day], columns).filter(pl.col("role") == TOOL, is_call, ~is_left_out)
        for session_id, tool, text in rows.sort("said_at").select("session_id", "tool_name", "text").iter_rows():
            yield PastCall(day, session_id, projects.get(session_id), tool, text)


def back_test(check: Check, project: str | None, calls: list[PastCall]) -> BackTest:
    """The result for a rule of a project, or of all projects if it names none."""
    own = [call for call in calls if project is None or call.project in (project, None)]
    return BackTest(tuple(call for call in own if check.stops(call.tool, call.text)), len(own))


def describe(call: PastCall) -> str:
    """The call on one line."""
    arguments = arguments_of(call.tool, call.text)
    return clip(" ".join(str(arguments.get("command") or arguments.get("path") or call.text).split()), MAX_SHOWN)
