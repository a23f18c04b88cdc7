"""Sessions as friction reads them, in a few words.

::

    turns("user: Push it.", "call: Bash(command=git push)", "fails: permission denied", session="s1")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from memory_pipeline.friction.attempts import REFUSED_CALL, Session, Turn
from memory_pipeline.friction.failures import Failure, failures_in
from memory_pipeline.friction.failures import find_patterns as find_failure_patterns
from memory_pipeline.friction.messages import corrects
from memory_pipeline.friction.patterns import FrictionEvent, Pattern
from memory_pipeline_tests.rows import DAY, at, day_after

TOOL_ROLES = ("call", "result", "fails", "refused")


def turns(*lines: str, session: str = "s1", day: date = DAY, minutes: float = 1.0) -> list[Turn]:
    """A message a line, so many minutes apart.

    A line is `user: text`, `call: Tool(…)`, or of what came of a call `result: text`,
    `fails: text` and `refused: text`; these answer the tool that was called last, unless they name
    one: `fails Bash: …`.
    """
    made, tool = list[Turn](), ""
    for position, line in enumerate(lines):
        mark, text = line.split(": ", 1)
        mark, _, named = mark.partition(" ")
        if mark == "call":
            tool = text.split("(", 1)[0]
        is_tool = mark in TOOL_ROLES
        made.append(
            Turn(
                *(f"{session}-{position}", day, session, "tool" if is_tool else mark),
                *(at(day=day) + timedelta(minutes=minutes * position), text, (named or tool) if is_tool else ""),
                *(mark in ("fails", "refused"), REFUSED_CALL if mark == "refused" else None, None),
            )
        )
    return made


def event(
    text: str, session: str, *, ago: int = 0, project: str | None = None, cwd: str | None = None
) -> FrictionEvent:
    """Words of a user, so many days ago."""
    day = day_after(-ago)
    name = f"{text}/{session}/{ago}"
    return FrictionEvent(
        *(name, day, session, at(day=day), text, ((name, 0, len(text)),), cwd, project), is_correction=corrects(text)
    )


def failures_of(*sessions: Sequence[str], projects: Sequence[str | None] = ()) -> list[Failure]:
    """Of sessions, each a day after the one before and of its own project if any is named."""
    found = []
    for i, lines in enumerate(sessions):
        project = projects[i] if projects else None
        made = turns(*lines, session=f"s{i}", day=day_after(i - len(sessions) + 1))
        found += failures_in(Session(made, "/src/kiln", project))
    return found


def failing(*sessions: Sequence[str], projects: Sequence[str | None] = ()) -> list[Pattern]:
    """Patterns of failures in the sessions."""
    return find_failure_patterns(failures_of(*sessions, projects=projects))
