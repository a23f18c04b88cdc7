"""The lines that the first level is made from: the facts and narratives observed in some days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from memory_pipeline.distillation.lines import NARRATIVE, Line, count_words
from memory_pipeline.lake.rows import distinct
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.flags import DOUBTED
from memory_pipeline.text.priorities import HIGH, LOW

INPUTS = ("windows", "segments", "observations")


@dataclass(frozen=True)
class Facts:
    """A line for each fact that is not outdated, oldest first, then one for each narrative. A line has one source."""

    lines: list[Line]
    projects: dict[str, list[str]]
    """The projects by id: of an observation, and of a segment those of its observations."""

    @property
    def texts(self) -> dict[str, str]:
        """The texts by id of the observation or segment."""
        return {line.sources[0]: line.text for line in self.lines}

    @property
    def words(self) -> int:
        return sum(count_words(line.text) for line in self.lines)

    @property
    def highs(self) -> list[str]:
        """Ids of the high facts, which must be retained."""
        return [line.sources[0] for line in self.lines if line.priority == HIGH]


def facts_of(lake: Lake, days: Iterable[date]) -> Facts:
    """The facts of these days."""
    days = list(days)
    is_certain = pl.col("flags").list.set_intersection(list(DOUBTED)).list.len().fill_null(0) == 0
    observed = lake.read("observations", days).filter(is_certain).sort("observed_at", "observation_id")
    began = dict(lake.read("windows", days, ["dedupe_key", "started_at"]).iter_rows())
    segments = lake.read("segments", days, ["segment_id", "dedupe_key", "narrative", "position"])
    lines: list[Line] = []
    times: dict[str, list[datetime]] = defaultdict(list)
    projects: dict[str, set[str | None]] = defaultdict(set)
    for o in observed.iter_rows(named=True):
        times[o["segment_id"]].append(o["observed_at"])
        for source in (o["observation_id"], o["segment_id"]):
            projects[source].add(o["project"])
        at = o["observed_at"]
        lines.append(Line(o["text"], o["kind"], o["priority"], (o["observation_id"],), at, at))
    for s in segments.sort("dedupe_key", "position").iter_rows(named=True):
        if s["dedupe_key"] in began and s["narrative"]:
            within = times.get(s["segment_id"]) or [began[s["dedupe_key"]]]
            lines.append(Line(s["narrative"], NARRATIVE, LOW, (s["segment_id"],), min(within), max(within)))
    return Facts(lines, {source: distinct(found) for source, found in projects.items()})
