"""The record of the hooks of tool calls: what sessions were shown, and which calls broke a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from memory_pipeline.settings import Settings

SHOWN = "shown.jsonl"


@dataclass(frozen=True)
class ShownLine:
    """A line that a session was shown, or a call that a rule stopped or would have stopped."""

    at: datetime
    session_id: str
    line_id: str
    """The id of the rule or of the pattern."""
    shown_as: str
    """`hint`, or the mode of the rule: `observe`, `ask` or `deny`."""
    event: str
    """`before` the call, or `after` it."""


def shown_lines(settings: Settings) -> Iterator[ShownLine]:
    """The record of the hooks, oldest first. Unreadable entries are skipped."""
    for name in (f"{SHOWN}.1", SHOWN):
        with suppress(OSError):
            for line in (settings.actions_dir / name).read_bytes().splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    entry = json.loads(line)
                    at = datetime.fromisoformat(entry["at"])
                    named = (entry["session"], entry["id"], entry["as"], entry.get("event", "before"))
                    yield ShownLine(at, *map(str, named))
