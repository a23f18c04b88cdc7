"""Ids of patterns: a continued pattern keeps its id, and one without an event during the lookback is closed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import count

from memory_pipeline.friction.patterns import Pattern
from memory_pipeline.lake.rows import FrictionRow


def numbered(day: date, patterns: Sequence[Pattern], known: Sequence[FrictionRow]) -> list[FrictionRow | str]:
    """For each pattern, the newest row that it continues, else a new id of the day.

    ``known`` are the newest rows of open patterns, and the rows that the day had before, so that a rebuilt day keeps
    its ids.
    """
    by_place: dict[tuple[str, str], FrictionRow] = {}
    for old in known:
        for span in old["evidence"]:
            by_place.setdefault((old["kind"], span["message_id"]), old)
    taken: set[str] = set()
    numbers = {int(r["pattern_id"].rsplit("-", 1)[1]) for r in known if r["pattern_id"][2:10] == f"{day:%Y%m%d}"}
    free = (n for n in count(1) if n not in numbers)
    found: list[FrictionRow | str] = []
    for pattern in patterns:
        places = [(pattern.kind, span[0]) for member in pattern.members for span in member.evidence]
        rows = (by_place[place] for place in places if place in by_place)
        row = next((r for r in rows if r["pattern_id"] not in taken), None)
        if row is None:
            row = next((r for r in known if _is_same(r, pattern) and r["pattern_id"] not in taken), None)
        taken.add(row["pattern_id"] if row else "")
        found.append(row or f"f-{day:%Y%m%d}-{next(free):03d}")
    return found


def _is_same(row: FrictionRow, pattern: Pattern) -> bool:
    """Whether a row and a pattern without common evidence are the same, judged by their titles."""
    return row["kind"] == pattern.kind and (row["template"] or row["title"], row["projects"] or []) == (
        pattern.title,
        sorted({m.project for m in pattern.members if m.project}),
    )
