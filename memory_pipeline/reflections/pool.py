"""Pool-wide reflection: the lines of all days except the last few, condensed once.

Rows of `pool_reflections` are only added, never changed and never condensed again, as that would lose names. Rows of
`reflections` are kept. All rows of a run are added atomically.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import polars as pl
from filelock import Timeout

from memory_pipeline.days import day_of
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.lake.rows import PoolReflectionRow, ReflectionRow, distinct, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.locks import FileLock
from memory_pipeline.observations.types import row_id
from memory_pipeline.reflections.types import Observation, ReflectionLine, Reflector, section_at, section_name
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace

STAY_DAYS = 3
"""Number of recent days, including today, whose reflections are not pooled: their details still matter."""
MIN_TOKENS, MAX_TOKENS = 150, 600
"""Minimum and maximum tokens of a row. A section with fewer waits for the next run."""


@dataclass(frozen=True)
class Pooled:
    """The result of a pool-wide reflection."""

    lines: int = 0
    """Lines of reflections that were considered."""
    rows: int = 0
    """Rows that were added."""
    waiting: int = 0
    """Lines that wait for more lines of their section."""
    input_tokens: int = 0
    output_tokens: int = 0
    dropped: int = 0
    """Lines of a model that their sources do not support."""


def reflect_pool(workspace: Workspace, reflector: Reflector, encoder: Encoder, now: datetime) -> Pooled:
    """Condense the lines that are not in the pool yet, and add them to the table.

    Raises the errors of the reflector; then nothing is added, and cached answers are not paid for again. Raises
    `TryAgainLaterError` while another run is in progress, as both would add the same rows.
    """
    lock = FileLock(workspace.settings.lake_dir / "pool_reflections.lock", timeout=0)
    workspace.settings.lake_dir.mkdir(parents=True, exist_ok=True)
    try:
        with lock:
            return _reflect(workspace, reflector, encoder, now)
    except Timeout:
        raise TryAgainLaterError("Another pool-wide reflection is running; wait for it to end.") from None


def _reflect(workspace: Workspace, reflector: Reflector, encoder: Encoder, now: datetime) -> Pooled:
    made = workspace.lake.read("pool_reflections")
    today = day_of(now, workspace.settings.zone)
    eligible = eligible_rows(workspace.lake, made, today - timedelta(days=STAY_DAYS))
    if not eligible:
        return Pooled()
    lines = [observed_of(row, workspace.settings) for row in eligible]
    spent = sum(line.tokens for line in lines)
    reflection = reflector.pool(today, lines, _vectors(workspace.settings, encoder, eligible))
    packed, waiting = pack(reflection.lines)
    by_id = {row["reflection_id"]: row for row in eligible}
    rows = [_row(workspace.settings, lines, by_id, reflector.name, now) for lines in packed]
    if rows:
        waits = {o for line in waiting for i in line.sources for o in by_id[i]["sources"]}
        kept = {o for row in rows for o in row["observations"]}
        rows[0]["left_out"] = sorted({o for row in eligible for o in row["sources"]} - kept - waits)
        added = pl.DataFrame(rows, schema=TABLES["pool_reflections"].columns)
        workspace.lake.update("pool_reflections", lambda stored: pl.concat([stored, added]).unique("pool_id"))
    tokens = sum(row["tokens"] for row in rows)
    return Pooled(len(eligible), len(rows), len(waiting), spent, tokens, reflection.dropped)


def eligible_rows(lake: Lake, made: pl.DataFrame, last: date) -> list[ReflectionRow]:
    """Rows of `reflections` up to a day whose contents are neither in the pool nor in a later row. A fact is in the
    reflections of all days whose lookback covers it; the latest represents them."""
    known = {i for name in ("observations", "left_out") for ids in made[name].to_list() for i in ids or ()}
    found = []
    for day in sorted((day for day in lake.days("reflections") if day <= last), reverse=True):
        for row in typed_rows(lake.read("reflections", [day]).sort("reflection_id"), ReflectionRow):
            if not known.issuperset(row["sources"]):
                found.append(row)
        known.update(i for row in found for i in (*row["sources"], *(row["superseded"] or ())) if row["day"] == day)
    return found


def pack(lines: Sequence[ReflectionLine]) -> tuple[list[list[ReflectionLine]], list[ReflectionLine]]:
    """The lines of each section as rows of `MIN_TOKENS` to `MAX_TOKENS`, newest first, and the lines that wait."""
    by_section: dict[int, list[ReflectionLine]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: (-line.last_seen.timestamp(), RANK[line.priority], line.sources)):
        by_section[line.section].append(line)
    packed: list[list[ReflectionLine]] = []
    waiting: list[ReflectionLine] = []
    for section in sorted(by_section):
        rows: list[list[ReflectionLine]] = [[]]
        for line in by_section[section]:
            if rows[-1] and _tokens([*rows[-1], line]) > MAX_TOKENS:
                rows.append([])
            rows[-1].append(line)
        if _tokens(rows[-1]) < MIN_TOKENS:
            waiting += rows.pop()
        packed += rows
    return packed, waiting


def _tokens(lines: Sequence[ReflectionLine]) -> int:
    return estimate(_text(lines))


def _text(lines: Sequence[ReflectionLine]) -> str:
    return "\n".join(line.text for line in lines)


def observed_of(row: ReflectionRow, settings: Settings) -> Observation:
    """A row of `reflections` as an observation for `Reflector.pool`."""
    return Observation(
        observation_id=row["reflection_id"],
        day=day_of(row["last_seen"], settings.zone),
        session_id=row["reflection_id"],
        priority=row["priority"],
        kind=row["kind"],
        trust=row["trust"] or "user",
        observed_at=row["last_seen"],
        text=row["text"],
        tokens=row["tokens"],
        section=section_at(settings.sections, row["section"]),
        cwds=tuple(row["cwds"] or ()),
        projects=tuple(row["projects"] or ()),
    )


def _vectors(settings: Settings, encoder: Encoder, rows: Sequence[ReflectionRow]) -> Mapping[str, Sequence[float]]:
    """The vector of each line: that of the observation whose words it has."""
    leads = {row["reflection_id"]: row["sources"][0] for row in rows}
    known = vectors_of(settings, encoder, sorted(set(leads.values())))
    return {line: known[lead] for line, lead in leads.items() if lead in known}


def _row(
    settings: Settings,
    lines: Sequence[ReflectionLine],
    by_id: Mapping[str, ReflectionRow],
    reflector: str,
    now: datetime,
) -> PoolReflectionRow:
    sources = list(dict.fromkeys(i for line in lines for i in line.sources))
    observations = list(dict.fromkeys(o for i in sources for o in by_id[i]["sources"]))
    return {
        "pool_id": row_id("g", sources, _text(lines)),
        "section": section_name(settings.sections, lines[0].section),
        "text": _text(lines),
        "priority": min((line.priority for line in lines), key=RANK.__getitem__),
        "support": len(observations),
        "sources": sources,
        "observations": observations,
        "left_out": [],
        "first_seen": min(by_id[i]["first_seen"] for i in sources),
        "last_seen": max(line.last_seen for line in lines),
        "tokens": _tokens(lines),
        "reflector": reflector,
        "reflected_at": now,
        "cwds": distinct(cwd for i in sources for cwd in by_id[i]["cwds"] or ()),
        "projects": distinct(project for i in sources for project in by_id[i]["projects"] or ()),
        "owner": settings.owner,
    }
