"""The observed facts of some days, and the lines that the first level is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime

import polars as pl

from memory_pipeline.distillation.lines import NARRATIVE, Line, count_words
from memory_pipeline.lake.rows import distinct
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.flags import DOUBTED
from memory_pipeline.text.priorities import HIGH, LOW

INPUTS = ("windows", "segments", "observations")


@dataclass(frozen=True, slots=True)
class Observed:
    """An observation as it is distilled."""

    observation_id: str
    segment_id: str
    priority: str
    kind: str
    observed_at: datetime
    text: str
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Narrative:
    """A segment as it is distilled, with the time at which its window began."""

    segment_id: str
    narrative: str
    began_at: datetime


@dataclass(frozen=True)
class Facts:
    """The facts observed in some days, without outdated ones."""

    observed: list[Observed] = field(default_factory=list)
    narratives: list[Narrative] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [*(o.text for o in self.observed), *(t.narrative for t in self.narratives)]

    @property
    def words(self) -> int:
        return sum(map(count_words, self.texts))

    def by_id(self) -> dict[str, str]:
        return {o.observation_id: o.text for o in self.observed} | {t.segment_id: t.narrative for t in self.narratives}

    def projects(self) -> dict[str, list[str]]:
        """The projects by observation, and by segment those of its observations."""
        of_segment: dict[str, set[str | None]] = defaultdict(set)
        for o in self.observed:
            of_segment[o.segment_id].add(o.project)
        of_segment |= {o.observation_id: {o.project} for o in self.observed}
        return {source: distinct(projects) for source, projects in of_segment.items()}

    def highs(self) -> list[str]:
        """Ids of the high facts, which must be retained."""
        return [o.observation_id for o in self.observed if o.priority == HIGH]

    def lines(self) -> list[Line]:
        """One line for each fact, and one for each narrative, which begins with the first fact of its segment."""
        times: dict[str, list[datetime]] = defaultdict(list)
        for o in self.observed:
            times[o.segment_id].append(o.observed_at)
        return [
            *(
                Line(o.text, o.kind, o.priority, (o.observation_id,), o.observed_at, o.observed_at)
                for o in self.observed
            ),
            *(_narrative_line(n, times[n.segment_id] or [n.began_at]) for n in self.narratives),
        ]


def _narrative_line(narrative: Narrative, times: list[datetime]) -> Line:
    return Line(narrative.narrative, NARRATIVE, LOW, (narrative.segment_id,), min(times), max(times))


def facts_of(lake: Lake, days: Iterable[date]) -> Facts:
    """The facts of these days, oldest first."""
    days = list(days)
    held = pl.col("flags").list.set_intersection(list(DOUBTED)).list.len().fill_null(0) == 0
    names = ["observation_id", "segment_id", "priority", "kind", "observed_at", "text", "project"]
    observed = lake.read("observations", days).filter(held).select(names).sort("observed_at", "observation_id")
    windows = lake.read("windows", days, ["dedupe_key", "started_at"])
    began = dict(windows.iter_rows())
    segments = lake.read("segments", days, ["segment_id", "dedupe_key", "narrative", "position"])
    narratives = [
        Narrative(row["segment_id"], row["narrative"], began[row["dedupe_key"]])
        for row in segments.sort("dedupe_key", "position").iter_rows(named=True)
        if row["dedupe_key"] in began and row["narrative"]
    ]
    return Facts([Observed(*row) for row in observed.iter_rows()], narratives)
