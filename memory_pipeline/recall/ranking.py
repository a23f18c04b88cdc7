"""Lines of other sessions for a context pack, and their ranking."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import polars as pl

from memory_pipeline.lake.rows import ObservationRow, PoolReflectionRow, ProposalState, ReflectionRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.types import COMPLETED, DOUBTED
from memory_pipeline.proposals.events import SUPERSEDED, ProposalLog
from memory_pipeline.proposals.memory_file import normalised
from memory_pipeline.recall.remembered import OTHER, Remembered, memory_bytes, nearness, remembered, safe, settled
from memory_pipeline.recall.usage import last_cited
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM

WEIGHTS = {HIGH: 3.0, MEDIUM: 2.0, LOW: 1.0}
"""Weights of priorities. With a half-life of a week, a high line ranks like a low one that is used eleven days
later."""
HALF_LIFE_DAYS = 7
"""Days without use that halve the rank of a line."""
REFLECTION_BIAS = 1.3
"""Factor for a condensed line over an observation of the same priority."""
HALF_LIVES = 8
"""Number of half-lives after which an observation is not read, as it would rank last."""
SPEAKERS = ("user", "assistant", "model")


@dataclass(frozen=True)
class Row:
    """A line with the inputs of its score: the days on which it was last `said` and last `cited`."""

    id: str
    text: str
    priority: str
    said: date
    bias: float = 1.0
    cited: date | None = None

    def score(self) -> float:
        """The score: ln(priority) + ln(kind) + recency. Recency depends on the day alone, so the order does not change
        within a day."""
        recency = math.log(2) * max(self.said, self.cited or self.said).toordinal() / HALF_LIFE_DAYS
        return math.log(WEIGHTS[self.priority]) + math.log(self.bias) + recency


def approved_rows(settings: Settings, lake: Lake, project: str | None) -> list[Remembered]:
    """The lines of MEMORY.md that apply to the project, nearest first."""
    rows = typed_rows(ProposalLog(lake).frame, ProposalState)
    projects = {row["proposal_id"]: row["projects"] or [] for row in rows}
    lines = remembered(memory_bytes(settings), projects, project, settings.sections)
    return sorted((line for line in lines if line.nearness != OTHER), key=lambda line: line.nearness)


def ranked_rows(settings: Settings, lake: Lake, project: str | None, without_session: str | None = None) -> list[Row]:
    """Unique reflections and observations of other sessions that the project may see, best first.

    Replaced ones are left out, however often they were cited since.
    """
    proposals = typed_rows(ProposalLog(lake).frame, ProposalState)
    over = settled(memory_bytes(settings), proposals)
    reflections = typed_rows(lake.read("reflections"), ReflectionRow)
    superseded = {one for row in reflections for one in row["superseded"] or ()}
    superseded.update(one for row in proposals if row["status"] == SUPERSEDED for one in row["sources"])
    found = [
        *_condensed_rows(lake, reflections, project, superseded),
        *_observation_rows(lake, project, over.ids | superseded, without_session),
    ]
    cited = last_cited(settings)
    found = [replace(row, cited=cited.get(row.id)) for row in found]
    best: dict[str, Row] = {}
    for row in sorted(found, key=lambda row: (-row.score(), row.id)):
        words = normalised(row.text)
        if words not in over.words:
            best.setdefault(words, row)
    return list(best.values())


def _condensed_rows(
    lake: Lake, reflections: Sequence[ReflectionRow], project: str | None, superseded: set[str]
) -> Iterator[Row]:
    """Reflections and pool reflections, without those of other projects and those whose sources all have been
    replaced."""
    own = [r for r in reflections if r["trust"] in SPEAKERS and r["kind"] != "question"]
    rows: list[tuple[str, Collection[str] | None, ReflectionRow | PoolReflectionRow]]
    rows = [(row["reflection_id"], row["sources"], row) for row in own]
    pool = typed_rows(lake.read("pool_reflections"), PoolReflectionRow)
    rows += [(row["pool_id"], row["observations"], row) for row in pool]
    for name, sources, row in rows:
        is_over = bool(sources) and superseded.issuperset(sources or ())
        if nearness(row["projects"], project) != OTHER and not is_over:
            yield Row(name, safe(row["text"]), row["priority"], row["last_seen"].date(), REFLECTION_BIAS)


def _observation_rows(lake: Lake, project: str | None, over: set[str], without_session: str | None) -> list[Row]:
    days = lake.days("observations")
    since = max(days, default=date.max) - timedelta(days=math.ceil(HALF_LIVES * HALF_LIFE_DAYS))
    frame = lake.read("observations", [day for day in days if day >= since])
    frame = frame.filter(pl.col("session_id") != without_session) if without_session else frame
    return [
        Row(row["observation_id"], safe(row["text"]), row["priority"], row["day"])
        for row in typed_rows(frame, ObservationRow)
        if nearness([row["project"]] if row["project"] else [], project) != OTHER
        and row["trust"] in SPEAKERS
        and row["kind"] != "question"
        and row["observation_id"] not in over
        and not {*DOUBTED, COMPLETED} & set(row["flags"] or ())
    ]
