"""Replay of the hints on tool calls: for each call of the recorded sessions, what the hook would have said.

    python -m benchmarks.actions [--list] [DIR]...

The sessions of `../shared/fixtures` and `../shared/more-sessions` (or of each DIR) are walked in the order of time. At
a call only the friction patterns count that were active on the evening before the session. A failure repeats if the
same program failed with the same error in an earlier session of the project; its cure is known if it was cured or
replaced there. Printed are the repeats with a known cure that had a line before the call or directly after the
failure, and false lines, about a call that did not fail, per 100 calls. Baselines: a line for a command that failed
before, word for word, and for a program of which any command failed before.

The projects cli and pi-mono were looked at when the hints were made, the others were not.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import FIXTURES, MORE, parser
from memory_pipeline.actions.files import hints_of, patterns_with_cure
from memory_pipeline.agents.kit.tool_calls import commands_in, runs, signature, signatures_in
from memory_pipeline.friction.attempts import Attempt, Session, sessions_in
from memory_pipeline.friction.failures import Failure, failures_in
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

LOOKED_AT = ("cli", "pi-mono")
NOW = datetime(2027, 1, 1, tzinfo=UTC)
"""When every session has been idle for long."""


@dataclass
class Counts:
    """What was found in the calls of some projects."""

    calls: int = 0
    failures: int = 0
    repeats: int = 0
    with_cure: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """Repeats with a known cure that had a line, by method."""
    said: Counter[str] = field(default_factory=Counter)
    """Lines before or after a call, by method."""
    false: Counter[str] = field(default_factory=Counter)
    """Lines about a call that did not fail, by method."""


@dataclass
class Memory:
    """What is known of a project from its earlier sessions."""

    failed: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Program and error of each failure, with whether a cure is known."""
    commands: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)


def main() -> None:
    options = parser("actions", __doc__)
    options.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="folders of sessions")
    options.add_argument("--list", action="store_true", help="print each line that would have been shown")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        workspace, days = prepared(Path(temporary), asked.folders or [FIXTURES, MORE])
        by_group = {"looked at": Counts(), "others": Counts()}
        known: defaultdict[str | None, Memory] = defaultdict(Memory)
        for session in sorted(sessions_of(workspace, days), key=lambda s: s.turns[0].at):
            counts = by_group["looked at" if session.project in LOOKED_AT else "others"]
            walk(session, workspace, known[session.project], counts, asked.list)
    print(f"{'projects':12}{'calls':>8}{'failures':>10}{'repeats':>9}{'cured':>7}", end="")
    print(f"{'method':>16}{'told':>6}{'lines':>7}{'false per 100 calls':>21}")
    for group, counts in by_group.items():
        for method in ("hints", "same command", "same program"):
            print(f"{group:12}{counts.calls:8}{counts.failures:10}{counts.repeats:9}{counts.with_cure:7}", end="")
            share = 100 * counts.false[method] / max(1, counts.calls)
            print(f"{method:>16}{counts.told[method]:6}{counts.said[method]:7}{share:20.2f}")


def prepared(folder: Path, sessions: list[Path]) -> tuple[Workspace, list[Any]]:
    """A workspace with the sessions and the friction of every day."""
    settings = Settings(workspace=folder, session_dirs=sessions, default_session_dirs=False, timezone="UTC")
    workspace = Workspace.open(settings)
    catalogue = Catalogue(workspace.lake, settings)
    reading = SessionsStage(workspace, catalogue, NOW)
    reading.look()
    days = sorted(catalogue.days())
    for day in days:
        bring_up_to_date(reading, workspace.lake, day)
    friction = FrictionStage(workspace)
    for day in days:
        bring_up_to_date(friction, workspace.lake, day)
    return workspace, days


def sessions_of(workspace: Workspace, days: list[Any]) -> list[Session]:
    return [session for session in sessions_in(workspace.lake, days) if session.project]


def walk(session: Session, workspace: Workspace, known: Memory, counts: Counts, is_listed: bool) -> None:
    evening = session.turns[0].at.date() - timedelta(days=1)
    rows = [
        row
        for row in patterns_with_cure(workspace.settings, workspace.lake, evening)
        if not row["projects"] or session.project in row["projects"]
    ]
    hints = hints_of(rows, workspace.lake)
    failures = {f.event.event_id: f for f in failures_in(session)}
    new = Memory()
    for call in session.attempts:
        command = call.command
        if not command:
            continue
        counts.calls += 1
        program = next((c.words[0] for c in commands_in(command)), "")
        lines = {
            "hints": said_by_hints(hints, call, command),
            "same command": ["what followed"] if command in known.commands else [],
            "same program": ["what followed"] if program in known.programs else [],
        }
        failure = failures.get(call.result.message_id)
        has_failed = call.has_failed and failure is not None
        key = (program, signature(failure.error)) if failure and failure.error else None
        is_repeat = has_failed and key in known.failed
        has_cure = is_repeat and key is not None and known.failed[key]
        counts.failures += has_failed
        counts.repeats += is_repeat
        counts.with_cure += has_cure
        for method, said in lines.items():
            counts.said[method] += bool(said)
            counts.told[method] += bool(said) and has_cure
            counts.false[method] += bool(said) and not call.has_failed
        if is_listed and (lines["hints"] or is_repeat):
            mark = "FAILED" if call.has_failed else "ok"
            print(
                f"{session.turns[0].at:%Y-%m-%d} {session.project} {mark} {has_cure=} {' '.join(command.split())[:90]}"
            )
            for line in lines["hints"]:
                print(f"    {line}")
        if has_failed and key and failure:
            new.failed[key] = new.failed.get(key, False) or is_cured(failure)
            new.commands.add(command)
            new.programs.add(program)
    for key, cured in new.failed.items():
        known.failed[key] = known.failed.get(key, False) or cured
    known.commands |= new.commands
    known.programs |= new.programs


def is_cured(failure: Failure) -> bool:
    return bool(failure.cure or failure.instead)


def said_by_hints(hints: dict[str, Any], call: Attempt, command: str) -> list[str]:
    """The line before the call, else the one after its failure."""
    before = [hint["line"] for hint in hints["before"] if runs(command, hint["words"])]
    if before or not call.has_failed:
        return before[:1]
    for found in signatures_in(call.result.text):
        for hint in hints["after"].get(found, ()):
            if not hint["words"] or runs(command, hint["words"]):
                return [hint["line"]]
    return []


if __name__ == "__main__":
    main()
