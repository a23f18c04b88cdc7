"""Back-test of a check: the past tool calls that it would have stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import polars as pl

from memory_pipeline.friction.attempts import TOOL
from memory_pipeline.friction.checks import Check, arguments_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.text.sentences import clip

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
    for day in lake.days("messages"):
        columns = ("session_id", "role", "tool_name", "text", "said_at", "is_error", "voided")
        rows = lake.read("messages", [day], columns)
        rows = rows.filter((pl.col("role") == TOOL) & pl.col("tool_name").is_not_null() & (pl.col("tool_name") != ""))
        rows = rows.filter(~pl.col("voided").fill_null(False) & ~pl.col("is_error").fill_null(False))
        for session_id, tool, text in rows.sort("said_at").select("session_id", "tool_name", "text").iter_rows():
            if text.startswith(f"{tool}("):
                yield PastCall(day, session_id, projects.get(session_id), tool, text)


def back_test(check: Check, project: str | None, calls: list[PastCall]) -> BackTest:
    """The result for a rule of a project, or of all projects if it names none."""
    own = [call for call in calls if project is None or call.project in (project, None)]
    return BackTest(tuple(call for call in own if check.stops(call.tool, call.text)), len(own))


def describe(call: PastCall) -> str:
    """The call on one line."""
    arguments = arguments_of(call.tool, call.text)
    return clip(" ".join(str(arguments.get("command") or arguments.get("path") or call.text).split()), MAX_SHOWN)
