"""Approved rules with their checks, and the mode of each.

A rule that has a check is in one of four modes. In `hint`, the default, an agent that breaks it is told the rule. In
`observe` the violation is only recorded, in `ask` the user is asked, and in `deny` the call is stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.friction.rules import handwritten_id
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings

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
