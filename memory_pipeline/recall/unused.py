"""Approved lines of MEMORY.md that were not used for long, according to the log of uses."""

from __future__ import annotations

from datetime import date, timedelta

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of
from memory_pipeline.recall.usage import last_seen, uses
from memory_pipeline.settings import Settings

UNUSED_DAYS = 30


def approved_lines(settings: Settings) -> list[MemoryLine]:
    """The lines that were promoted and hold, as they stand in MEMORY.md."""
    path = settings.memory_file
    lines = lines_of(path.read_bytes() if path.is_file() else None)
    return [line for line in lines if line.proposal_id and not line.is_struck]


def unused_lines(settings: Settings, lake: Lake, today: date) -> list[MemoryLine]:
    """The approved lines that nothing has shown or cited for `UNUSED_DAYS` days.

    A line that is younger than that, or than the log, is not counted: nobody had the time to use it.
    """
    first = next((day for day, _ in uses(settings)), None)
    if first is None:
        return []
    promoted = dict(lake.read("promotions", columns=["proposal_id", "day"]).iter_rows())
    seen, limit = last_seen(settings), today - timedelta(days=UNUSED_DAYS)
    lines = approved_lines(settings)
    return [line for line in lines if max(first, *_days(line, promoted), *_days(line, seen)) < limit]


def _days(line: MemoryLine, known: dict[str, date]) -> list[date]:
    return [known[line.proposal_id]] if line.proposal_id in known else []
